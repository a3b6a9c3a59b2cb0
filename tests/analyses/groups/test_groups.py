"""Kernels launched together, from launches made by hand: what is one call's, and what only repeats in order."""

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of
from tests.xplane_files import real_files

import inferometer
from inferometer import Trace
from inferometer.analyses.groups.groups import Groups, find_groups
from inferometer.analyses.groups.kernel_roles import role_of
from inferometer.analyses.groups.ordered_launches import Ordered, _numbered, named
from inferometer.analyses.groups.rules import rule_of
from inferometer.analyses.groups.wilson import lower_bound
from inferometer.analyses.selection import Selection
from inferometer.errors import InputError, UnknownName
from inferometer.reports.views.view import remarks_of, sections_of

SPLIT_K = "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
WIDER = "nvjet_tst_128x16_64x11_2x1_v_bz_splitK_TNT"
REDUCE = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)"
MEMSET = "Memset (Device)"
NORM = "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)"
FIRST, SECOND = "my_first_kernel", "my_second_kernel"  # nobody knows them
SILU = "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu<float>>(int)"


def trace_with(
    calls: Iterable[tuple[str | None, list[str]]],
    *,
    gap_ns: int = 1_000,
    apart_ns: int = 50_000,
    nested: Mapping[str, str] = MappingProxyType({}),
    frames: Sequence[Mapping[str, Any]] = (),
) -> Trace:
    """Each of `calls` is an op (None: not recorded) and the kernels it launches, `gap_ns` apart; 10 ns per kernel.

    `nested`: kernels that an op within the op launches.
    """
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
            if kernel in nested:
                ops.append({"op": nested[kernel], "process": 1, "thread": 2, "start_ns": now - 1, "dur_ns": 102})
            now += 100 + gap_ns
        if op:
            times = {"start_ns": began, "dur_ns": now - began}
            ops.append({"op": op, "process": 1, "thread": 2, **times})
        now += apart_ns
    return trace_of(launches, calls=host, ops=ops, frames=frames)


def members(found: Groups) -> list[list[tuple[str, int, bool]]]:
    return [[(member.role, member.count, member.optional) for member in group.members] for group in found.groups]


def said(found: Groups) -> str:
    notes = [note for section in sections_of(found) for note in section.notes]
    return "\n".join([*notes, *remarks_of(found)])


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
    assert refusal.kernels == (NORM, SILU)
    assert "each from an op of its own: one op launched both in 0 of" in refusal.why


def test_the_site_is_the_innermost_frame_around_all_launches_of_a_call() -> None:
    """As `sort_tokens` of triton_kernels: a function that it calls launches the first of two kernels."""
    calls = [(op, [FIRST, SECOND]) for op in ["my::sort"] * 4]
    rows = trace_with(calls)
    frames = []
    for start_ns in rows.ops.select("start_ns").collect()["start_ns"]:
        own = {"process": 1, "thread": 2}
        frames += [
            own | {"frame": "serving/sort.py(9): sort_tokens", "start_ns": start_ns - 5, "dur_ns": 3_000},
            own | {"frame": "serving/sums.py(5): sum_rows", "start_ns": start_ns - 3, "dur_ns": 200},
            own | {"frame": "serving/sort.py(20): place", "start_ns": start_ns + 900, "dur_ns": 500},
        ]
    (group,) = find_groups(trace_with(calls, frames=frames)).groups
    assert str(group.sites[0]) == "my::sort, serving/sort.py(9): sort_tokens"


def test_two_runs_of_one_call_are_said_to_be_so() -> None:
    """Between them a nested op launches something else, in two of five calls."""
    whole, parted = ("my::permute", [FIRST, SECOND]), ("my::permute", [FIRST, SECOND, NORM, FIRST, SECOND])
    found = find_groups(trace_with([whole, whole, whole, parted, parted], nested={NORM: "aten::fill_"}))
    (group,) = found.groups
    assert group.count == 7
    assert "These 7 are runs of launches in 5 calls of ops, some of which have several." in said(found)


def test_what_only_some_runs_of_a_call_have_is_not_said_to_be_missing_in_some_calls() -> None:
    parted = ("my::permute", [FIRST, SECOND, "my_third_kernel", NORM, FIRST, SECOND])
    found = find_groups(trace_with([parted] * 4, nested={NORM: "aten::fill_"}))
    assert [counts[1:] for counts in members(found)[0]] == [(8, False), (8, False), (4, True)]
    assert "Not in every run: my third kernel (triton)." in said(found)
    assert found.groups[0].call is not None
    assert found.groups[0].call.endswith("together, 1 of them not in every run.")


def test_a_role_that_not_every_call_has_is_optional() -> None:
    found = find_groups(
        trace_with([("aten::mm", [MEMSET, SPLIT_K, REDUCE])] * 2 + [("aten::mm", [SPLIT_K, REDUCE])] * 5)
    )
    assert members(found) == [[("memset device", 2, True), ("split-K GEMM", 7, False), ("splitK reduce", 7, False)]]
    assert "Not every time: memset device." in said(found)
    assert found.groups[0].call is not None
    assert found.groups[0].call.endswith("GEMM and splitK reduce together, 1 of them not every time.")


def test_host_gaps_are_those_of_each_kind_of_pair() -> None:
    """Their median, 1.250 μs, would be the gap of neither kind."""
    even = trace_with([("moe", [NORM, SPLIT_K, REDUCE])] * 3)
    calls = even.calls.collect().to_dicts()
    for call in calls[2::3]:
        call["start_ns"] += 500
    found = find_groups(trace_of(even.launches.collect().to_dicts(), calls=calls, ops=even.ops.collect().to_dicts()))
    assert (
        "One op launched both in 6 of all 6 pairs of such neighbours with known ops; the host goes on after 1.000 μs "
        "to 1.500 μs (medians of 2 kinds of pairs)."
    ) in said(found)


def test_fills_alone_are_recognised_by_no_name() -> None:
    found = find_groups(graph_after([("aten::sum", [MEMSET, MEMSET, NORM])] * 3, [MEMSET, MEMSET, SILU] * 4))
    assert [(group.count, group.by_name) for group in found.groups] == [(3, 0)]


def test_a_graph_of_one_kernel_and_one_whose_call_is_missing_are_graphs() -> None:
    whole = graph_after([("aten::mm", [SPLIT_K, REDUCE])] * 3, [NORM])
    lost = [{"kernel": SILU, "process": 1, "correlation_id": 5 * 10**6, "start_ns": 10**7 + at} for at in (0, 9)]
    found = find_groups(
        trace_of(
            [*whole.launches.collect().to_dicts(), *lost],
            calls=whole.calls.collect().to_dicts(),
            ops=whole.ops.collect().to_dicts(),
        )
    )
    assert "3 of 9 launches are from graph replays" in said(found)


def test_what_a_source_declares_was_not_learned_in_the_file() -> None:
    narrow, wide = (
        [
            f"void cub::DeviceScanInitKernel<cub::ScanTileState<{of}, true> >(cub::ScanTileState<{of}, true>, int)",
            f"void cub::DeviceScanKernel<cub::AgentScanPolicy<{of}>, {of}*, cub::ScanTileState<{of}, true> >({of}*)",
        ]
        for of in ("int", "long")
    )
    found = find_groups(graph_after([("aten::cumsum", narrow)] * 3, [*wide, NORM] * 4))
    (group,) = found.groups
    assert (group.count, group.by_name) == (7, 4)
    assert "source declares it" in said(found)
    assert "4 of 7 times recognised by names alone." in said(found)


def test_a_sequence_with_an_exception_is_nearly_always_in_order() -> None:
    calls = [each for i in range(30) for each in (("norm", [NORM]), ("silu", [SILU]), ("x", [f"kernel_{'ab'[i % 2]}"]))]
    found = find_groups(trace_with([*calls, ("norm", [NORM])], apart_ns=10_000))
    (refusal,) = found.refused
    assert refusal.why == (
        "A sequence of 2, nearly always in this order, but each from an op of its own: one op launched both in 0 of "
        "30 pairs, and the host took 11.000 μs between them (median)."
    )


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
    assert "Site: aten::addmm (4 of 7); 1 more site\n" in said(found) + "\n"


def test_a_run_without_an_op_goes_to_the_group_that_launched_its_kernels() -> None:
    backward, forward = ("backward", [NORM, SPLIT_K, REDUCE, SILU]), ("forward", [NORM, WIDER, REDUCE])
    found = find_groups(trace_with([backward] * 4 + [forward] * 3 + [(None, [WIDER, REDUCE])] * 2))
    assert [(group.sites[0].op, group.count, group.by_name) for group in found.groups] == [
        ("backward", 4, 0),
        ("forward", 5, 2),
    ]


@pytest.mark.parametrize(
    ("kernel", "key"),
    [
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_x", "cudnn convolution"),
        (
            "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4>(x)",
            "cudnn convolution",
        ),
        ("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1", "miopen convolution"),
        ("kernel_grouped_conv_fwd_xdl_cshuffle_v3", "miopen convolution"),
    ],
)
def test_convolutions_that_one_library_chooses_between_are_one_role(kernel: str, key: str) -> None:
    assert role_of(kernel).key == key


def test_kernels_are_numbered_by_name_in_whatever_order_they_were_read() -> None:
    names, numbers = _numbered(pl.Series(["b", "a", "b"], dtype=pl.Categorical))
    assert (names, numbers.tolist()) == (["a", "b"], [1, 0, 1])


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
    found = find_groups(graph_after([("x", [NORM])], [FIRST, SECOND] * 9))
    assert found.groups == ()
    assert "that one call launched with others (a graph, a submit): order only" in found.refused[0].why


def test_a_graph_replay_is_recognised_by_what_a_librarys_source_declares() -> None:
    found = find_groups(graph_after([("x", [NORM])], [FIRST, SPLIT_K, REDUCE, SECOND, WIDER, REDUCE] * 9))
    (group,) = found.groups
    assert (group.name, group.verdict, group.count, group.by_name) == ("split-K GEMM", "declared call", 18, 18)
    assert group.confidence == pytest.approx(lower_bound(9, 9))  # each variant 9 times
    assert "declares it (cublasLtMatmul's reduction scheme), and 18 pairs of neighbours show it." in said(found)


def test_a_declared_pair_that_does_not_stick_together_is_none() -> None:
    alone = find_groups(graph_after([("x", [NORM])], [FIRST, SPLIT_K, REDUCE, SPLIT_K, SECOND] * 9))
    assert alone.groups == ()
    later = find_groups(trace_with([(None, [FIRST]), (None, [SPLIT_K, REDUCE])] * 9, gap_ns=200_000))
    assert later.groups == ()


def test_sort_passes_of_one_call_are_one_group() -> None:
    space = "void at_cuda_detail::cub::DeviceRadixSort"
    policy = "at_cuda_detail::cub::DeviceRadixSortPolicy<int, int, int>::Policy900"
    sort = [f"{space}{kind}Kernel<{policy}, false, int, int, int>(int)" for kind in ("Histogram", "Onesweep")]
    sort.insert(1, f"{space}ExclusiveSumKernel<{policy}, int>(int*)")
    found = find_groups(graph_after([("x", [NORM])], [NORM, *sort, sort[2], sort[2], SILU] * 4))
    assert members(found) == [
        [
            ("cub radix sort histogram", 4, False),
            ("cub radix sort exclusive sum", 4, False),
            ("cub radix sort onesweep", 12, False),
        ]
    ]
    assert found.groups[0].name == "radix sort"


def test_what_another_file_taught_is_recognised_by_names_and_has_its_site() -> None:
    taught = find_groups(trace_with([("my::op", [FIRST, SECOND]), ("x", [NORM])] * 4))
    replay = graph_after([("x", [NORM])], [NORM, FIRST, SECOND, SILU] * 9)
    assert find_groups(replay).groups == ()
    found = find_groups(replay, learned=[taught])
    (group,) = found.groups
    assert (group.verdict, group.count, group.by_name, group.learned_on) == ("learned call", 9, 9, taught.source)
    assert group.call
    assert group.call.startswith("Intercept my::op: it launches my")
    assert str(group.sites[0]) == "my::op"
    assert f"Learned on {taught.source}: one op launched both there; 9 pairs" in said(found)
    nothing = find_groups(replay, learned=[find_groups(trace_with([("x", [NORM])] * 4))])
    assert nothing.groups == ()
    assert "Nothing was learned from" in said(nothing)


def test_own_ops_outweigh_what_another_file_taught() -> None:
    taught = find_groups(trace_with([("my::op", [FIRST, SECOND])] * 4))
    found = find_groups(trace_with([("a", [FIRST]), ("b", [SECOND])] * 9), learned=[taught])
    assert found.groups == ()


def captured(calls: list[tuple[str | None, list[str]]]) -> Trace:
    """The same calls in a graph's capture: nothing runs."""
    trace = trace_with(calls)
    names = trace.launches.collect()["kernel"].to_list()
    rows = [row | {"kernel": name} for row, name in zip(trace.calls.collect().to_dicts(), names, strict=True)]
    return trace_of([], calls=rows, ops=trace.ops.collect().to_dicts())


def test_a_capture_teaches_though_nothing_ran() -> None:
    trace = captured([("my::op", [FIRST, SECOND]), ("x", [NORM])] * 4)
    found = find_groups(trace)
    (group,) = found.groups
    assert (group.verdict, group.count, group.total_ns) == ("library call", 4, 0)
    assert [part.total_ns for member in group.members for part in member.parts] == [None, None]
    assert "12 of 12 launches are in the file as host calls only" in said(found)
    assert find_groups(trace, Selection(rank=None, between_ns=None)).captured == 12
    assert len(find_groups(graph_after([("x", [NORM])], [FIRST, SECOND] * 3), learned=[found]).groups) == 1


def test_calls_whose_work_is_selected_away_are_not_captured() -> None:
    trace = trace_with([("my::op", [FIRST, SECOND])] * 4)
    rows = trace.launches.collect().to_dicts()
    calls = [row | {"kernel": FIRST} for row in trace.calls.collect().to_dicts()]
    apart = trace_of([row | {"stream": i % 2} for i, row in enumerate(rows)], calls=calls)
    assert find_groups(apart).captured == 0
    assert find_groups(apart, Selection(stream=1)).captured == 0


WITHOUT_OPS: list[tuple[str | None, list[str]]] = [
    (None, [NORM]),
    (None, [FIRST, SECOND]),
    (None, [SILU]),
    (None, [FIRST, SECOND]),
]


def test_without_ops_neighbours_that_stick_together_at_once_are_a_wrappers_call() -> None:
    found = find_groups(trace_with(WITHOUT_OPS * 5))
    (group,) = found.groups
    assert (group.verdict, group.count) == ("fused-wrapper call", 10)
    assert "No framework ops are known" in said(found)
    assert group.call is None


@pytest.mark.parametrize(
    ("calls", "options", "why"),
    [
        (WITHOUT_OPS * 5, {"gap_ns": 20_000, "apart_ns": 500_000}, "one call launches its kernels within 5.000 μs"),
        (WITHOUT_OPS * 5, {"gap_ns": 3_000, "apart_ns": 1_000}, "as long as between other launches"),
        ([(None, [FIRST, SECOND]), (None, [NORM])] * 9, {}, "in one surrounding only"),
    ],
)
def test_without_ops_anything_less_is_refused(calls: list[Any], options: dict[str, Any], why: str) -> None:
    found = find_groups(trace_with(calls, **options))
    assert found.groups == ()
    assert why in " ".join(refusal.why for refusal in found.refused)


def test_without_calls_nothing_can_be_told() -> None:
    launches = [{"kernel": name, "start_ns": 100 * i} for i, name in enumerate([NORM, FIRST, SECOND] * 9)]
    found = find_groups(trace_of(launches))
    assert found.groups == ()
    assert "can't be known" in said(found)
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
    assert sections_of(found)


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
    row: dict[str, Any] = {
        "known": 0,
        "same": 0,
        "owned": 0,
        "count": 9,
        "forward": 1.0,
        "backward": 1.0,
        "in_graph": 0,
        "timed": 9,
    }
    row |= {"learned_on": None, "declared": None, "bound": "both", "repeats": False, "led": 9, "lagging": 9}
    row |= {
        "count_a": 9,
        "count_b": 9,
        "memory": False,
        "host_gap": 0.1,
        "host_gap_ns": 900.0,
        "contexts": 2,
        "variants": 1,
    }
    assert rule_of(row) == "fused-wrapper call"
    assert rule_of(row | {"learned_on": "eager.json", "count": 1}) == "learned call"
    assert rule_of(row | {"declared": "a source", "count": 2}) == "declared call"
    assert rule_of(row | {"declared": "a source", "lagging": 8, "in_graph": 9}) == "graph"
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


def test_names_of_one_fold_come_in_order_whatever_their_codes() -> None:
    work = SimpleNamespace(kernels=["norm<64>", "copy", "norm<256>"], fold_of_kernel=np.array([7, 3, 7]))
    assert named(cast("Ordered", work)) == {3: ["copy"], 7: ["norm<256>", "norm<64>"]}


@pytest.mark.parametrize(
    ("api", "in_graph"), [("hipStreamWaitEvent", 0), ("hipGraphLaunch", 2), ("cudaLaunchKernel", 0), ("submit", 2)]
)
def test_two_kernels_of_one_call_are_a_graph_only_where_the_call_may_launch_one(api: str, in_graph: int) -> None:
    call = {"api": api, "process": 1, "thread": 2, "start_ns": 0, "dur_ns": 5, "correlation_id": 3}
    pair = [{"kernel": name, "process": 1, "start_ns": at, "dur_ns": 5, "correlation_id": 3}
            for at, name in enumerate((FIRST, SECOND))]  # fmt: skip
    assert find_groups(trace_of(pair, calls=[call])).in_graph == in_graph


@real_files
def test_of_real_profiles_of_jax_launches_in_graphs_are_those_of_graph_launches(path: Path) -> None:
    trace = inferometer.open(path)
    calls = {row["correlation_id"]: row["api"] for row in trace.calls.collect().to_dicts()}
    replayed = [
        row for row in trace.launches.collect().to_dicts() if "GraphLaunch" in calls.get(row["correlation_id"], "")
    ]
    found = find_groups(trace)
    assert found.in_graph == len(replayed)
    assert bool(replayed) == any("graph replays" in remark for remark in remarks_of(found))
