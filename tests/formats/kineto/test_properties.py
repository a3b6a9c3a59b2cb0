"""Small random traces in any layout, cut into any blocks, packed in any members: always what a slow reader says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import polars.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.kineto_files import LAYOUTS, Event, Literal, Row, members, read_slowly, write_file
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.formats import source
from inferometer.formats.json_text import records, window
from inferometer.formats.kineto import cut, dispatch
from inferometer.trace import builder

NAMES = st.text('abé😀μ\\"}{,:[]\n\t/ ', max_size=8)
WHOLE = st.integers(0, 2**40)
MICROSECONDS = st.one_of(
    st.integers(0, 10**15).map(str),
    st.builds("{}.{}".format, st.integers(0, 10**15), st.text("0123456789", min_size=1, max_size=6)),
    st.builds("{}e{}".format, st.integers(0, 999), st.integers(-3, 6)),
).map(Literal)
DURATIONS = st.one_of(
    st.integers(0, 10**6).map(str),
    st.builds("{}.{}".format, st.integers(0, 10**6), st.text("0123456789", min_size=1, max_size=5)),
).map(Literal)
TRIPLE = st.lists(st.integers(0, 2**31), min_size=3, max_size=3)
SHAPES = st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3)
NOISE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), NAMES, st.just('},{"cat": "kernel", "ph": "X"')),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


def args(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of which any may be missing, and one that nobody knows."""
    return st.fixed_dictionaries(
        {}, optional={key.replace("_", " "): value for key, value in known.items()} | {"?": NOISE}
    )


def complete(cats: list[str], arguments: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Event]:
    return st.fixed_dictionaries(
        {
            "ph": st.just("X"),
            "cat": st.sampled_from(cats),
            "name": NAMES,
            "pid": st.integers(0, 3),
            "tid": st.integers(0, 2**33),
            "ts": MICROSECONDS,
            "dur": DURATIONS,
            "args": arguments,
        }
    ).flatmap(lambda fields: st.permutations(list(fields.items())).map(dict))


LAUNCHES = complete(
    ["kernel", "gpu_memcpy", "gpu_memset"],
    args(
        External_id=WHOLE,
        external_id=WHOLE,
        queued=WHOLE,
        device=st.integers(0, 7),
        context=WHOLE,
        stream=WHOLE,
        correlation=WHOLE,
        registers_per_thread=WHOLE,
        shared_memory=WHOLE,
        grid=TRIPLE,
        block=TRIPLE,
        graph_id=WHOLE,
        graph_node_id=WHOLE,
        bytes=WHOLE,
        **{"est._achieved_occupancy_%": st.integers(0, 100)},
    ),
)
CALLS = complete(
    ["cuda_runtime", "cuda_driver", "hip_runtime"],
    args(External_id=WHOLE, correlation=WHOLE, kernel=NAMES, grid=TRIPLE, block=TRIPLE, stream=WHOLE, bytes=WHOLE),
)
OPS = complete(
    ["cpu_op"],
    args(
        External_id=WHOLE,
        Input_Dims=SHAPES,
        Input_Strides=SHAPES,
        Input_type=st.lists(NAMES, max_size=3),
        Concrete_Inputs=st.lists(NAMES, max_size=3),
        Sequence_number=WHOLE,
    ),
)
FRAMES = complete(["python_function"], args(Python_id=WHOLE, Python_parent_id=st.one_of(st.none(), WHOLE)))
SPANS = complete(["user_annotation", "Trace", "overhead", ""], args())
DEVICE_SPANS = complete(
    ["gpu_user_annotation", "cuda_sync"], st.fixed_dictionaries({"device": st.integers(0, 7), "stream": WHOLE})
)
INSTANTS = st.fixed_dictionaries(
    {"ph": st.just("i"), "name": NAMES, "pid": WHOLE, "tid": WHOLE, "ts": MICROSECONDS, "s": st.just("t")}
)
UNKNOWN = complete(["quantum"], args())
TRACES = st.lists(
    st.one_of(LAUNCHES, LAUNCHES, CALLS, OPS, FRAMES, SPANS, DEVICE_SPANS, INSTANTS, UNKNOWN), max_size=12
)
RANKS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}), st.integers(0, 7).map(lambda rank: {"distributedInfo": {"rank": rank}})
)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Everything that is read, cut, decoded or handed on in blocks, in small ones."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (window, "READ_BYTES"),
            (records, "CHUNK_BYTES"),
            (records, "_TAIL_BYTES"),
            (cut, "BLOCK_BYTES"),
            (source, "_READ_BYTES"),
            (source, "_BLOCK_BYTES"),
        ):
            patch.setattr(module, name, size)
        patch.setattr(dispatch, "FLUSH_EVENTS", 3)
        patch.setattr(builder, "_MERGE_BATCHES", 2)
        yield


def opened(data: bytes, folder: Path, tables: set[str] | None = None) -> Trace:
    path = folder / "trace.json"
    path.write_bytes(data)
    return inferometer.open(path, tables)


def found(trace: Trace, table: str) -> list[Row]:
    """The rows of a table as plain data, in one order for all readers."""
    rows = trace.tables[table].collect().to_dicts()
    for row in rows:
        for key in ("input_dims", "input_dtypes", "input_strides", "scalars"):
            if row.get(key) is not None:
                row[key] = json.loads(row[key], parse_float=Decimal)
    return in_order(rows)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted((dict(sorted(row.items())) for row in rows), key=lambda row: json.dumps(row, default=str))


@given(
    written=TRACES,
    layout=st.sampled_from(list(LAYOUTS.values())),
    rank=RANKS,
    cuts=st.none() | st.lists(st.integers(0, 4000), max_size=4),
    block=st.sampled_from([16, 21, 64, 333, 1 << 18]),
)
@examples(150)
def test_a_trace_is_what_a_slow_reader_says(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[Event],
    layout: Any,
    rank: dict[str, Any],
    cuts: list[int] | None,
    block: int,
) -> None:
    data = write_file(written, layout, before={"schemaVersion": 1} | rank)
    want = read_slowly(data)
    packed = data if cuts is None else members(data, cuts)
    folder = tmp_path_factory.mktemp("any")
    with blocks_of(block):
        trace = opened(packed, folder)
        scanned = opened(packed, folder, {"launches"})
    for table, rows in want.items():
        assert found(trace, table) == in_order(rows)
    assert found(scanned, "launches") == in_order([row | {"process": None} for row in want["launches"]])
    unknown = sum(each["cat"] == "quantum" for each in written if "cat" in each)
    assert (trace.losses.dropped(), trace.losses.seen.total()) == (unknown, len(written))


@given(written=TRACES, order=st.randoms(use_true_random=False))
@examples(40)
def test_shuffling_events_changes_no_sum(
    tmp_path_factory: pytest.TempPathFactory, written: list[Event], order: Any
) -> None:
    folder = tmp_path_factory.mktemp("order")
    shuffled = list(written)
    order.shuffle(shuffled)
    first, second = (opened(write_file(each), folder) for each in (written, shuffled))
    one, other = (inferometer.kernel_table(trace, copies=True).frame for trace in (first, second))
    pl.testing.assert_frame_equal(one, other, check_exact=False, rel_tol=1e-12, abs_tol=0)
    assert one.select("total_ns", "count", "min_ns", "max_ns").equals(
        other.select("total_ns", "count", "min_ns", "max_ns")
    )
    for table in first.tables:
        assert found(first, table) == found(second, table)
    assert first.losses.seen == second.losses.seen


@given(written=TRACES, rank=RANKS)
@examples(25)
def test_a_store_gives_the_same_trace(
    tmp_path_factory: pytest.TempPathFactory, written: list[Event], rank: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    trace = opened(write_file(written, after=rank), folder)
    saved = inferometer.open(trace.save(folder / "saved.ifm"))
    with blocks_of(64):
        imported = inferometer.import_trace(folder / "trace.json", folder / "imported.ifm")
    for table, frame in trace.tables.items():
        assert saved.tables[table].collect().equals(frame.collect())
        assert found(imported, table) == found(trace, table)  # small blocks mix the categories' rows otherwise
    for again in (saved, imported):
        assert (again.facts, again.losses) == (stored_facts(trace), trace.losses)


@given(written=st.lists(LAUNCHES, max_size=30))
@examples(40)
def test_busy_time_lies_between_the_longest_launch_and_their_sum(
    tmp_path_factory: pytest.TempPathFactory, written: list[Event]
) -> None:
    trace = opened(write_file(written), tmp_path_factory.mktemp("busy"))
    summary = inferometer.summarize(trace)
    durations = trace.launches.group_by("device").agg(
        pl.col("dur_ns").max().alias("longest"), pl.col("dur_ns").sum().alias("summed")
    )
    times = summary.devices.join(durations.collect(), on="device")
    assert times.height == summary.devices.height
    for row in times.iter_rows(named=True):
        assert row["longest"] <= row["busy_ns"] <= min(row["summed"], row["window_ns"])
        assert row["busy_ns"] + row["idle_ns"] == row["window_ns"]
