"""What a call reads that was just written: on a recorded pair, told anew from its files, and on small made-up calls."""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from msgspec.structs import replace
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.op_calls import OpCalls
from inferometer.analyses.roofline import table
from inferometer.analyses.roofline.just_written import find_just_written
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.analyses.selection import Selection
from inferometer.formats.execution_trace.join import join_arguments
from inferometer.hardware.device import Device
from inferometer.hardware.known import require_device
from inferometer.reports.views.view import remarks_of

SAMPLES = Path(__file__).parents[3] / "samples" / "cpu"
H200 = require_device("H200 SXM")
KB, MB = 1_000, 1_000_000


def with_l2(size: int) -> Device:
    assert H200.l2 is not None
    return replace(H200, l2=replace(H200.l2, value=size))


def joined() -> Trace:
    return join_arguments(inferometer.open(SAMPLES / "profile.json.gz"), inferometer.open(SAMPLES / "et.json.gz"))


def found_in(trace: Trace, device: Device, **selection: Any) -> Roofline:
    return roofline(attribute(trace, with_op_calls=True), trace, device=device, selection=Selection(**selection))


@pytest.fixture(scope="module")
def recorded() -> Trace:
    return joined()


def storages_by_id() -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    """What each op of the recorded execution trace reads and writes by its id, without the reader."""
    document = json.loads(gzip.decompress((SAMPLES / "et.json.gz").read_bytes()))
    found = {}
    for node in document["nodes"]:
        named = {each["name"]: each["value"] for each in node["attrs"]}
        flat = [
            [each for value in node[side]["values"] for each in (value if _is_list(value) else [value])]
            for side in ("inputs", "outputs")
        ]
        read, gave = ([value for value in side if _is_tensor(value)] for side in flat)
        given = node["inputs"]["values"]
        changed = {
            given[place][1]
            for place, part in enumerate(_arguments(named.get("op_schema") or ""))
            if "!" in part and place < len(given) and _is_tensor(given[place])
        }
        sizes: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for number, tensors in enumerate((read, [*gave, *(each for each in read if each[1] in changed)])):
            for _, storage, _, count, each, _ in tensors:
                sizes[number][storage] = max(sizes[number].get(storage, 0), count * each)
        found[named["rf_id"]] = sizes
    return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 6 and isinstance(value[5], str) and value[1] > 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _arguments(schema: str) -> list[str]:
    """Of `aten::add.out(Tensor self, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)`, each that is handed over."""
    depth, parts = 0, [""]
    for sign in schema[schema.find("(") + 1 : schema.rfind(") ->")]:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part.strip() != "*"]


@pytest.mark.parametrize("l2", [MB // 10, MB, 50 * MB])
def test_on_a_recorded_pair_it_is_what_a_search_backwards_in_its_files_finds(
    l2: int, recorded: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def noted(*args: Any) -> pl.DataFrame:
        asked.append(args)
        return find_just_written(*args)

    monkeypatch.setattr(table, "find_just_written", noted)
    rows = found_in(recorded, with_l2(l2)).frame
    placed, modelled, *_ = asked[0]
    ids = recorded.ops.select("record_function_id").collect()["record_function_id"].to_list()
    told = storages_by_id()
    moved = {row["row"]: row for row in modelled.iter_rows(named=True)}
    order = placed.sort("start_ns", maintain_order=True).unique("call", keep="first", maintain_order=True)
    calls = [(moved[each["row"]], ids[each["op_call"]], each["row"]) for each in order.iter_rows(named=True)]
    expected: dict[int, list[int]] = {}
    for at, (work, number, row) in enumerate(calls):
        if work["read_bytes"] is None:
            continue
        own = work["read_bytes"] + work["write_bytes"]
        held = 0
        for storage, size in told[number][0].items():
            since = own
            for before, its_number, _ in reversed(calls[:at]):
                if before["read_bytes"] is None:
                    break
                since += before["read_bytes"] + before["write_bytes"]
                if since > l2:
                    break
                if storage in told[its_number][1]:
                    held += min(size, told[its_number][1][storage], before["write_bytes"])
                    break
        expected.setdefault(row, []).append(min(held, work["read_bytes"]))
    means = sorted(sum(each) / len(each) for each in expected.values())
    assert means == pytest.approx(sorted(rows["just_written_bytes"].drop_nulls().to_list()))
    assert l2 < MB or means[-1] > 0


def test_the_bound_and_the_sentence_follow_from_the_bytes(recorded: Trace) -> None:
    found = found_in(recorded, with_l2(50 * MB))
    rows = found.frame.filter(pl.col("just_written_bytes").is_not_null())
    assert H200.memory_bandwidth is not None
    for row in rows.iter_rows(named=True):
        from_memory = row["read_bytes"] + row["write_bytes"] - row["just_written_bytes"]
        least = 1e9 * from_memory / H200.memory_bandwidth.value * row["calls"]
        assert least <= row["just_written_bound_ns"] * (1 + 1e-9)
        assert row["just_written_bound_ns"] <= row["bound_ns"] * (1 + 1e-9)
        if row["binding"] == "memory" and not row["just_written_bytes"]:
            assert row["just_written_bound_ns"] == pytest.approx(row["bound_ns"])
    held = sum(row["just_written_bytes"] * row["calls"] for row in rows.iter_rows(named=True))
    sentence = next(line for line in remarks_of(found) if "had just been written" in line)
    assert f" {held / KB:.3f} kB had just been written" in sentence


def test_what_a_selection_leaves_out_has_moved_all_the_same(recorded: Trace) -> None:
    device = with_l2(MB)
    whole = found_in(recorded, device)
    ops = recorded.ops.collect()
    duration = ops.select((pl.col("start_ns") + pl.col("dur_ns")).max()).item() - ops["start_ns"].min()
    later = found_in(recorded, device, between_ns=(duration // 2, duration))
    assert later.total_ns < whole.total_ns
    assert later.frame["just_written_bytes"].drop_nulls().sum() > 0


def test_without_an_execution_trace_nothing_is_said_to_have_been_written() -> None:
    found = found_in(inferometer.open(SAMPLES / "profile.json.gz"), H200)
    assert found.frame["just_written_bytes"].is_null().all()
    assert found.frame["just_written_bound_ns"].is_null().all()
    assert not any("just been written" in line for line in remarks_of(found))


class Call(NamedTuple):
    """Kilobytes that it reads and writes, None where it has no model, and those of each storage that it does so."""

    reads: int | None
    writes: int | None
    read: dict[int, int]
    written: dict[int, int]


WRITES = Call(100, 100, {1: 100}, {2: 100})
READS = Call(100, 0, {2: 100}, {})
UNKNOWN = Call(None, None, {}, {})
IN_PARTS = Call(100, 30, {}, {2: 100})


@pytest.mark.parametrize(
    ("calls", "cached"),
    [
        pytest.param([WRITES, READS], 100, id="read at once"),
        pytest.param([WRITES, Call(50, 0, {2: 50}, {}), READS], 100, id="after a small call"),
        pytest.param([WRITES, Call(650, 0, {9: 650}, {}), READS], 100, id="as much moved since as fits"),
        pytest.param([WRITES, Call(651, 0, {9: 651}, {}), READS], 0, id="more moved since"),
        pytest.param([WRITES, UNKNOWN, READS], 0, id="unknown work between"),
        pytest.param([IN_PARTS, READS], 30, id="a part was written"),
        pytest.param([WRITES, IN_PARTS, READS], 30, id="the part that was written last"),
        pytest.param([Call(100, 100, {1: 100}, {}), READS], 0, id="nobody says what was written"),
        pytest.param([WRITES, Call(20, 0, {2: 100}, {})], 20, id="a part is read"),
        pytest.param([READS, WRITES], 0, id="never written"),
    ],
)
def test_what_was_written_counts_while_it_fits_with_all_that_moved_since(calls: list[Call], cached: int) -> None:
    places = range(len(calls))
    placed = pl.DataFrame({"row": places, "call": places, "op_source": 0, "op_call": places, "start_ns": places})
    here = placed.with_columns(rank=pl.lit(0), process=pl.lit(1), device=pl.lit("gpu:0"))
    moved = {"read_bytes": [call.reads for call in calls], "write_bytes": [call.writes for call in calls]}
    modelled = pl.DataFrame({"row": places, **moved}).with_columns(pl.col(*moved) * KB)
    ops = [
        {
            "op": "aten::x",
            "process": 1,
            "thread": 1,
            "start_ns": 10 * n,
            "dur_ns": 1,
            "input_storages": in_bytes(call.read),
            "written_storages": in_bytes(call.written),
        }
        for n, call in enumerate(calls)
    ]
    found = find_just_written(here, modelled, [OpCalls(trace_of(ops=ops))], with_l2(950 * KB))
    assert found.row(-1) == (len(calls) - 1, cached * KB)


def in_bytes(kilobytes: dict[int, int]) -> str:
    return json.dumps([(storage, size * KB) for storage, size in kilobytes.items()])
