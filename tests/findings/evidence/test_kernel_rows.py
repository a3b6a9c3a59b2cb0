"""Launches as arrays: stretches, neighbours, places; and that rules about kernels take any trace."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.findings.kernel_traces import ask, launches
from tests.traces import trace_of

from inferometer.analyses import batches
from inferometer.findings.evidence.kernel_rows import UNKNOWN_PLACE, KernelRows, number_changes
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.rule import Rule
from inferometer.findings.rules.launches import (
    attention_growth,
    casts_and_copies,
    first_step_warm_up,
    low_occupancy,
    repeated_work,
    slow_sibling,
    split_k_reductions,
    unfused_elementwise,
)
from inferometer.trace.trace import Trace

RULES = [
    module.RULE
    for module in (
        *(attention_growth, casts_and_copies, first_step_warm_up, low_occupancy),
        *(repeated_work, slow_sibling, split_k_reductions, unfused_elementwise),
    )
]
ODD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "totals alone": {"totals": [{"section": 0, "kernel": "k", "count": 2, "total_ns": 9}]},
    "one launch": {"launches": [{}]},
    "no time": {"launches": [{"dur_ns": 0}] * 9},
    "a memset": {"launches": [{"kind": "memset", "kernel": "Memset (Device)"}] * 3},
    "a whole graph": {"launches": [{"kind": "graph", "kernel": "graph 1"}] * 3},
    "no stream, no device": {"launches": [{"stream": None, "device": None, "start_ns": n} for n in range(9)]},
    "at one time": {"launches": launches("gemm", "attention", "to_fp32") * 1 + [{"start_ns": 0}] * 9},
    "ranks": {"launches": [{"rank": n % 2, "kernel": f"k{n % 3}", "start_ns": n * 5} for n in range(40)]},
    "replays of unknown graphs": {
        "launches": [{"correlation_id": n // 10, "start_ns": n * 5, "kernel": "sgemm"} for n in range(80)]
    },
    "steps without launches in them": {
        "launches": [{"start_ns": 10**9}],
        "spans": [{"span": f"ProfilerStep#{n}", "start_ns": n * 100, "dur_ns": 90} for n in range(9)],
    },
    "strange names": {"launches": [{"kernel": name} for name in ("", " ", "\x00", "<", "copy" * 99, "ü")]},
}


def _rows(trace: Trace) -> KernelRows:
    return LaunchEvidence(trace).rows


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("odd", ODD)
def test_rules_about_kernels_are_silent_on_odd_traces(rule: Rule, odd: str) -> None:
    assert not ask(rule, trace_of(**ODD[odd]))


def test_stretches_begin_with_lanes_and_behind_pauses() -> None:
    rows = launches("gemm", "norm", "memset", "gemm") + launches("norm", start_ns=900_000)
    found = _rows(trace_of([*rows, {"stream": 8, "start_ns": 5}]))

    assert found.begins.tolist() == [True, False, False, True, True]  # memsets are left out
    assert [found.known[kernel].family for kernel in found.kernel[:4]] == ["gemm", "norm", "gemm", "norm"]


def test_neighbours_are_of_one_stretch() -> None:
    found = _rows(trace_of(launches("gemm", "norm") + launches("gemm", start_ns=900_000)))
    product = found.of_family("gemm")

    assert found.before(product).tolist() == [False, True, False]
    assert found.behind(product).tolist() == [False, False, False]
    assert [bounds.tolist() for bounds in found.runs(product | found.of_family("norm"))] == [[0, 2], [2, 3]]


def test_places_are_ops_where_no_module_is_known() -> None:
    calls = [{"api": "cudaLaunchKernel", "start_ns": 5, "dur_ns": 2, "correlation_id": 1, "process": 1, "thread": 1}]
    ops = [{"op": "aten::mm", "start_ns": 0, "dur_ns": 9, "process": 1, "thread": 1}]
    rows = [{"correlation_id": 1, "process": 1, "start_ns": 9}, {"start_ns": 50}]
    evidence = LaunchEvidence(trace_of(rows, calls=calls, ops=ops))
    found, where = evidence.rows, evidence.origins

    assert [where.describe_node(int(node)) for node in found.node] == [" in aten::mm", ""]
    assert [where.texts[code] for code in where.codes(found.node)] == ["aten::mm", UNKNOWN_PLACE]


@given(st.lists(st.tuples(st.none() | st.integers(0, 2), st.sampled_from("ab")), max_size=12), st.integers(1, 5))
def test_changes_are_counted_across_batches(rows: list[tuple[int | None, str]], at_once: int) -> None:
    table = pl.DataFrame(rows, schema={"number": pl.Int64, "text": pl.Categorical}, orient="row")
    counted, changes = [], 0
    for before, row in zip([rows[0], *rows] if rows else [], rows, strict=False):
        changes += before != row
        counted.append(changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "AT_ONCE", at_once)
        assert number_changes(table, ["number", "text"]).tolist() == counted
        assert number_changes(table, ["text"], (pl.col("number") + 1).alias("more")).tolist() == counted
