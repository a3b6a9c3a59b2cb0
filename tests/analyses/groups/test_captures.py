"""Groups against the truth that real captures hold: which neighbours one framework op launched.

The truth: two launches next to each other on a stream, both with a known innermost op on the launching thread, are
together where that is the same op instance, and apart where it isn't. An op with a single launch has no pair. Groups
are scored as if ops were not there: a pair counts as found where a group has these two names, short, next to each
other.

With ops this is mostly a check of the arithmetic, since the rule itself asks for the same op; two ranks learned on each
other are the harder test. Without ops, the limit of the host gap was chosen on these captures: no held-out score.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import inferometer
from inferometer import Trace
from inferometer.analyses.groups.groups import Groups, find_groups
from inferometer.names import decode

CAPTURES = ("a100_simple_add", "h100_qwen1.5-0.5b", "rank0_sampled", "rank1_sampled")
Pair = tuple[str, str]


def open_capture(shared_data: Path, name: str) -> Trace:
    return inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz")


def neighbours(trace: Trace) -> Iterator[tuple[Pair, bool]]:
    """Pairs whose ops are both known, and whether it is one: by looking at every op for every call."""
    calls = {(row["process"], row["correlation_id"]): row for row in trace.calls.collect().to_dicts()}
    ops: dict[Any, list[dict[str, Any]]] = {}
    for row in trace.ops.collect().to_dicts():
        ops.setdefault((row["process"], row["thread"]), []).append(row)

    def owner(launch: dict[str, Any]) -> int | None:
        call = calls.get((launch["process"], launch["correlation_id"]))
        if call is None:
            return None
        at = call["start_ns"]
        around = [
            op
            for op in ops.get((call["process"], call["thread"]), ())
            if op["start_ns"] <= at < op["start_ns"] + op["dur_ns"]
        ]
        return id(max(around, key=lambda op: (op["start_ns"], -op["dur_ns"]))) if around else None

    before: dict[Any, tuple[str, int | None]] = {}
    for launch in trace.launches.sort("start_ns").collect().to_dicts():
        lane = launch["device"], launch["stream"]
        this = decode(launch["kernel"]).short_name, owner(launch)
        last = before.get(lane)
        if last and last[1] is not None and this[1] is not None:
            yield (last[0], this[0]), last[1] == this[1]
        before[lane] = this


def pairs_of(found: Groups) -> set[Pair]:
    return {(edge["from"], edge["to"]) for group in found.groups for edge in group.edges}


def score(trace: Trace, pairs: set[Pair]) -> tuple[int, int, int]:
    """Pairs found that are true, found, and true."""
    known = list(neighbours(trace))
    hits = sum(is_one for pair, is_one in known if pair in pairs)
    return hits, sum(pair in pairs for pair, _ in known), sum(is_one for _, is_one in known)


@pytest.mark.parametrize("name", CAPTURES)
def test_groups_of_a_capture_are_what_its_ops_say(name: str, shared_data: Path) -> None:
    trace = open_capture(shared_data, name)
    hits, found, true = score(trace, pairs_of(find_groups(trace)))
    assert true >= 20
    assert hits >= 0.98 * found
    assert hits >= 0.9 * true


def test_names_learned_on_one_rank_hold_on_the_other(shared_data: Path) -> None:
    ranks = [open_capture(shared_data, f"rank{rank}_sampled") for rank in (0, 1)]
    learned = [pairs_of(find_groups(trace)) for trace in ranks]
    scores = [score(ranks[1], learned[0]), score(ranks[0], learned[1])]
    hits, found, true = (sum(each) for each in zip(*scores, strict=True))
    assert hits >= 0.98 * found
    assert hits >= 0.8 * true  # each rank has calls that the other lacks


@pytest.mark.parametrize("name", [*CAPTURES, "mi300_qwen1.5-0.5b"])
def test_without_ops_fewer_groups_are_found_but_no_false_ones(name: str, shared_data: Path) -> None:
    trace = open_capture(shared_data, name)
    tables = {table: trace.tables[table] for table in trace.tables if table != "ops"}
    hits, found, _ = score(trace, pairs_of(find_groups(Trace(trace.facts, tables, trace.losses))))
    assert hits >= 0.98 * found


def test_on_h100_a_memset_and_its_gemm_are_a_group_and_an_eager_norm_is_none(shared_data: Path) -> None:
    found = find_groups(open_capture(shared_data, "h100_qwen1.5-0.5b"))
    (group,) = found.groups
    assert [member.role for member in group.members] == ["memset device", "GEMM"]
    assert (group.count, group.by_name) == (241, 73)
    (edge,) = group.edges
    assert (edge["known"], edge["same"], edge["host_gap_ns"]) == (168, 168, 1_960)
    assert any(site.frame and "modeling_qwen2.py" in site.frame for site in group.sites)
    (refused,) = [each for each in found.refused if any("rsqrt" in kernel for kernel in each.kernels)]
    short = [decode(kernel).short_name for kernel in refused.kernels]
    order = [word for name in short for word in ("pow", "mean", "add", "rsqrt", "mul") if word in name]
    assert order[-5:] == ["pow", "mean", "add", "rsqrt", "mul"]
    assert "one op launched both in 0 of" in refused.why


def test_a_replay_learns_from_the_capture_of_its_graph(shared_data: Path) -> None:
    capture, replay = (
        open_capture(shared_data, f"mi300_sglang_qwen3-8b_{name}") for name in ("graph_capture_bs32", "decode")
    )
    taught = find_groups(capture)
    assert (taught.launches, taught.captured) == (546, 544)
    (group,) = find_groups(replay).groups
    assert (group.name, group.verdict, group.count) == ("paged attention with reduction", "declared call", 36)
    (group,) = find_groups(replay, learned=[taught]).groups
    assert (group.verdict, group.count, group.learned_on) == ("learned call", 36, capture.facts.source)
    assert group.sites[0].op == "sglang_profiler::attention_paged_attention_ragged_100"
    assert group.sites[0].frame is not None
    assert group.sites[0].frame.endswith("paged_attention_ragged")


def test_the_bundled_sample_has_three_groups() -> None:
    found = find_groups(inferometer.open(Path(__file__).resolve().parents[3] / "samples" / "decode.json.gz"))
    assert {(group.name, group.count) for group in found.groups} == {
        ("FlashInfer attention with merge", 48),
        ("split-K GEMM", 144),
        ("scan", 6),
    }
    assert found.to_polars().filter(pl.col("role") == "splitK reduce")["count"].to_list() == [144]
