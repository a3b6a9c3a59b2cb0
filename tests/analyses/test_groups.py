"""Kernels launched together, from launches made by hand: what is one call's, and what only repeats in order."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.groups import Groups, find_groups
from inferometer.analyses.launch_edges import rule_of
from inferometer.analyses.selection import Selection
from inferometer.errors import InputError, UnknownName
from inferometer.names import decode

SPLIT_K = "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
WIDER = "nvjet_tst_128x16_64x11_2x1_v_bz_splitK_TNT"
REDUCE = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)"
MEMSET = "Memset (Device)"
NORM = "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)"
SILU = "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu<float>>(int)"


def trace_with(calls: Iterable[tuple[str | None, list[str]]], *, gap_ns: int = 1_000, apart_ns: int = 50_000) -> Trace:
    """Each of `calls` is an op (None: not recorded) and the kernels it launches, `gap_ns` apart; 10 ns a kernel."""
    launches: list[dict[str, Any]] = []
    host: list[dict[str, Any]] = []
    ops: list[dict[str, Any]] = []
    now = 0
    for op, kernels in calls:
        began = now
        for kernel in kernels:
            number = len(launches)
            host.append({"api": "cudaLaunchKernel", "process": 1, "thread": 2, "start_ns": now, "dur_ns": 100})
            host[-1]["correlation_id"] = number
            launches.append(
                {"kernel": kernel, "process": 1, "start_ns": now + 10, "dur_ns": 10, "correlation_id": number}
            )
            now += 100 + gap_ns
        if op:
            times = {"start_ns": began, "dur_ns": now - began}
            ops.append({"op": op, "process": 1, "thread": 2, **times})
        now += apart_ns
    return trace_of(launches, calls=host, ops=ops)


def members(found: Groups) -> list[list[tuple[str, int, bool]]]:
    return [[(member.role, member.count, member.optional) for member in group.members] for group in found.groups]


def said(found: Groups) -> str:
    notes = [note for section in found.sections() for note in section.notes]
    return "\n".join([*notes, *found.remarks()])


def test_what_one_op_launches_each_time_is_a_group_with_its_variants() -> None:
    found = find_groups(trace_with([("aten::mm", [SPLIT_K, REDUCE]), ("aten::mm", [WIDER, REDUCE]), ("x", [NORM])] * 3))
    assert members(found) == [[("split-K GEMM", 6, False), ("splitK reduce", 6, False)]]
    (group,) = found.groups
    assert (group.name, group.verdict, group.count, group.total_ns) == ("split-K GEMM", "library call", 6, 120)
    assert group.members[0].kernels == [WIDER, SPLIT_K]
    assert group.call == (
        "Intercept aten::mm, or below it the cuBLAS call (cublasGemmEx or cublasLtMatmul): "
        "it launches split-K GEMM and splitK reduce together."
    )
    assert str(group.sites[0]) == "aten::mm"
    assert group.confidence == pytest.approx(0.438, abs=1e-3)  # 3 of 3 for each variant


def test_a_layer_that_repeats_in_order_is_a_sequence_and_no_group() -> None:
    found = find_groups(trace_with([("norm", [NORM]), ("silu", [SILU])] * 9, apart_ns=10_000))
    assert found.groups == ()
    (refusal,) = found.refused
    assert refusal.kernels == (decode(NORM).short_name, decode(SILU).short_name)
    assert "each from an op of its own: one op launched both in 0 of" in refusal.why


def test_a_role_that_not_every_call_has_is_optional() -> None:
    found = find_groups(
        trace_with([("aten::mm", [MEMSET, SPLIT_K, REDUCE])] * 2 + [("aten::mm", [SPLIT_K, REDUCE])] * 5)
    )
    assert members(found) == [[("memset device", 2, True), ("split-K GEMM", 7, False), ("splitK reduce", 7, False)]]
    assert "Not in every call: memset device." in said(found)


def test_an_op_with_several_library_calls_is_one_group() -> None:
    found = find_groups(trace_with([("moe", [NORM, SPLIT_K, REDUCE, SILU]), ("aten::mm", [SPLIT_K, REDUCE])] * 5))
    assert [group.count for group in found.groups] == [5, 5]
    assert [len(group.members) for group in found.groups] == [4, 2]
    assert (
        found.groups[0].call
        == "Intercept moe: it launches rms_norm, split-K GEMM, splitK reduce and silu_and_mul together."
    )


def test_the_same_library_call_in_two_ops_is_one_group_with_two_sites() -> None:
    found = find_groups(trace_with([("aten::mm", [SPLIT_K, REDUCE])] * 3 + [("aten::addmm", [SPLIT_K, REDUCE])] * 4))
    (group,) = found.groups
    assert [(site.op, site.count, site.of) for site in group.sites] == [("aten::addmm", 4, 7), ("aten::mm", 3, 7)]


def test_a_role_may_repeat() -> None:
    found = find_groups(trace_with([("aten::sort", [NORM, SILU, SILU, SILU])] * 5))
    assert members(found) == [[("rms_norm", 5, False), ("silu_and_mul", 15, False)]]


def test_an_op_around_a_whole_step_is_no_library_call() -> None:
    found = find_groups(trace_with([("Torch-Compiled Region", [NORM, SILU] * 20)] * 3))
    assert found.groups == ()


def graph_after(eager: list[tuple[str | None, list[str]]], replayed: list[str]) -> Trace:
    """Eager calls, then one graph launch of these kernels."""
    trace = trace_with(eager)
    launches = trace.launches.collect().to_dicts()
    calls = trace.calls.collect().to_dicts()
    ops = trace.ops.collect().to_dicts()
    end = calls[-1]["start_ns"] + 10**6
    calls.append(
        {"api": "cudaGraphLaunch", "process": 1, "thread": 2, "start_ns": end, "dur_ns": 9, "correlation_id": 10**6}
    )
    ops.append({"op": "replay", "process": 1, "thread": 2, "start_ns": end - 1, "dur_ns": 99})
    for i, kernel in enumerate(replayed):
        launch = {"kernel": kernel, "process": 1, "correlation_id": 10**6, "start_ns": end + 20 * i, "dur_ns": 10}
        launches.append(launch)
    return trace_of(launches, calls=calls, ops=ops)


def test_a_graph_replay_is_recognised_by_what_eager_launches_taught() -> None:
    found = find_groups(graph_after([("aten::mm", [SPLIT_K, REDUCE])] * 5, [NORM, SPLIT_K, REDUCE, SILU] * 7))
    (group,) = found.groups
    assert (group.count, group.by_name) == (12, 7)
    assert "7 of 12 times recognised by names alone" in said(found)
    assert "28 of 38 launches are from graph replays" in said(found)


def test_a_graph_replay_alone_is_order_only() -> None:
    found = find_groups(graph_after([("x", [NORM])], [SPLIT_K, REDUCE] * 9))
    assert found.groups == ()
    assert "inside graph launches: order only" in found.refused[0].why


WITHOUT_OPS: list[tuple[str | None, list[str]]] = [
    (None, [NORM]),
    (None, [SPLIT_K, REDUCE]),
    (None, [SILU]),
    (None, [SPLIT_K, REDUCE]),
]


def test_without_ops_neighbours_that_stick_together_at_once_are_a_wrappers_call() -> None:
    found = find_groups(trace_with(WITHOUT_OPS * 5))
    (group,) = found.groups
    assert (group.verdict, group.count) == ("fused-wrapper call", 10)
    assert "No framework ops are known" in said(found)
    assert group.call is not None
    assert group.call.startswith("Intercept the cuBLAS call")


@pytest.mark.parametrize(
    ("calls", "options", "why"),
    [
        (WITHOUT_OPS * 5, {"gap_ns": 20_000, "apart_ns": 500_000}, "one call launches its kernels within 5.000 μs"),
        (WITHOUT_OPS * 5, {"gap_ns": 3_000, "apart_ns": 1_000}, "as long as between other launches"),
        ([(None, [SPLIT_K, REDUCE]), (None, [NORM])] * 9, {}, "in one surrounding only"),
    ],
)
def test_without_ops_anything_less_is_refused(calls: list[Any], options: dict[str, int], why: str) -> None:
    found = find_groups(trace_with(calls, **options))
    assert found.groups == ()
    assert why in " ".join(refusal.why for refusal in found.refused)


def test_without_calls_nothing_can_be_told() -> None:
    launches = [{"kernel": name, "start_ns": 100 * i} for i, name in enumerate([NORM, SPLIT_K, REDUCE] * 9)]
    found = find_groups(trace_of(launches))
    assert found.groups == ()
    assert "can't be told" in said(found)
    assert "without host calls" in found.refused[0].why


def test_neighbours_on_two_streams_are_none() -> None:
    trace = trace_with([("aten::mm", [SPLIT_K, REDUCE])] * 5)
    rows = trace.launches.collect().to_dicts()
    apart = [row | {"stream": i % 2} for i, row in enumerate(rows)]
    assert (
        find_groups(trace_of(apart, calls=trace.calls.collect().to_dicts(), ops=trace.ops.collect().to_dicts())).groups
        == ()
    )


@pytest.mark.parametrize("rows", [[], [{}], [{"device": None, "stream": None, "process": None, "kernel": ""}] * 3])
def test_traces_with_next_to_nothing_are_answered(rows: list[dict[str, Any]]) -> None:
    found = find_groups(trace_of(rows))
    assert found.groups == ()
    assert found.launches == len(rows)
    assert found.sections()


def test_the_result_says_what_was_asked() -> None:
    trace = trace_with([("aten::mm", [SPLIT_K, REDUCE])] * 3 + [("s", [NORM, SILU])] * 9)
    assert [group.count for group in find_groups(trace, top=1).groups] == [9]
    assert "1 of 2 groups shown." in said(find_groups(trace, top=1))
    assert [group.count for group in find_groups(trace, min_support=5).groups] == [9]
    with pytest.raises(UnknownName):
        find_groups(trace, Selection(device="gpu:9"))
    with pytest.raises(UnknownName):
        find_groups(trace, section=0)
    data = find_groups(trace).as_json()
    assert set(data) >= {"groups", "refused"}
    shape = {"name", "members", "count", "confidence", "evidence", "site", "total_ns"}
    assert set(data["groups"][0]) >= shape
    assert set(data["groups"][0]["members"][0]) >= {"role", "kernels", "count"}


def test_sums_have_no_streams_to_select() -> None:
    totals = [{"section": 0, "kernel": NORM, "count": 3, "total_ns": 9}]
    with pytest.raises(InputError, match="single launches for the selection by stream"):
        find_groups(trace_of(totals=totals), Selection(stream=7))


def test_the_first_test_that_a_pair_fails_is_its_ruling() -> None:
    row = {"known": 0, "same": 0, "owned": 0, "count": 9, "forward": 1.0, "backward": 1.0, "in_graph": 0, "timed": 9}
    row |= {"memory": False, "host_gap": 0.1, "host_gap_ns": 900.0, "contexts": 2, "variants": 1}
    assert rule_of(row) == "fused-wrapper call"
    assert rule_of(row | {"known": 4, "same": 4, "owned": 4}) == "library call"
    assert rule_of(row | {"known": 100, "same": 94, "owned": 94}) == "own ops"
    assert rule_of(row | {"known": 1, "same": 1, "owned": 1}) == "rare"
    assert rule_of(row | {"count": 4}) == "rare"
    assert rule_of(row | {"count": 4}, 4) == "fused-wrapper call"
    assert rule_of(row | {"backward": 0.9}) == "loose"
    assert rule_of(row | {"in_graph": 9}) == "graph"
    assert rule_of(row | {"timed": 0}) == "no calls"
    assert rule_of(row | {"memory": True}) == "memory"


OPS = st.sampled_from(
    [
        ("aten::mm", [SPLIT_K, REDUCE]),
        ("aten::mm", [WIDER, REDUCE]),
        ("norm", [NORM]),
        (None, [SILU]),
        ("s", [SILU, SILU]),
    ]
)


@given(st.lists(OPS, max_size=25), st.integers(0, 2**32))
@examples(60)
def test_order_of_rows_changes_nothing_and_no_launch_is_counted_twice(calls: list[Any], seed: int) -> None:
    trace = trace_with(calls)
    found = find_groups(trace)
    rows = {name: trace.tables[name].collect().to_dicts() for name in ("launches", "calls", "ops")}
    for table in rows.values():
        random.Random(seed).shuffle(table)
    again = find_groups(trace_of(rows["launches"], calls=rows["calls"], ops=rows["ops"]))
    assert again.as_json()["groups"] == found.as_json()["groups"]
    counted: dict[str, int] = {}
    for group in found.groups:
        for member in group.members:
            for part in member.parts:
                counted[part.kernel] = counted.get(part.kernel, 0) + part.count
                assert part.total_ns == 10 * part.count
    launched = [kernel for _, kernels in calls for kernel in kernels]
    assert all(count <= launched.count(kernel) for kernel, count in counted.items())
