"""Communication that nothing hides is found, with what it waits for; what runs behind computation is not."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import findings, generated, launched, marked, only, op, said, trace_with
from tests.traces import trace_of

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.findings.engine import find_findings

RULE = "exposed_collectives"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def exchanged(start_us: float, kernel: str = NCCL, dur_us: float = 400, compute_us: float = 500, **others: Any) -> Any:
    rows = [
        row
        for i in range(10)
        for row in (
            launched(1000 * i, 1000 * i + 10, compute_us),
            launched(1000 * i + 6, 1000 * i + start_us, dur_us, stream=20, kernel=kernel),
        )
    ]
    return trace_with(rows, spans=marked((1000 * i for i in range(10)), 990), **others)


def recorded(kernel: str, collective: str, elements: int, start_us: float = 515) -> list[dict[str, Any]]:
    """What is recorded of the launches of `exchanged`: bf16, eight ranks."""
    place = {"kernel": kernel, "device": "gpu:0", "stream": 20}
    about = {"collective": collective, "dtype": "BFloat16", "elements_in": elements, "elements_out": elements}
    starts = (round(1000 * (1000 * i + start_us)) for i in range(10))
    return [place | about | {"start_ns": start_ns, "group_size": 8} for start_ns in starts]


@pytest.mark.parametrize(("kernel", "word"), [(NCCL, "all-reduce"), (GATHER, "all-gather")])
def test_an_exchange_alone_is_told_by_its_collective(kernel: str, word: str) -> None:
    finding = only(exchanged(515, kernel), RULE)
    assert finding.severity == "high"
    assert word in finding.title
    assert finding.size_ns == 4_000_000
    assert "400.000 μs per step over 10 steps" in finding.evidence[0]
    assert "10 times, on average 400.000 μs, exposed for 4.000 ms." in finding.evidence[1]
    assert "size not recorded" in finding.evidence[1]
    assert finding.evidence[-1].startswith("Other ranks aren't in the trace:")


def test_an_exchange_behind_computation_costs_nothing() -> None:
    assert not findings(exchanged(60), RULE)


def test_waiting_for_a_late_rank_is_told_apart_from_the_exchange() -> None:
    launches = [
        {
            "kernel": NCCL,
            "rank": rank,
            "device": f"gpu:{rank}",
            "stream": 20,
            "start_ns": at + late,
            "dur_ns": 400 - late,
        }
        for at in range(0, 100_000, 1_000)
        for rank, late in ((0, 0), (1, 350))
    ]
    finding = only(trace_of(launches), RULE)
    assert finding.evidence[-1] == (
        "In 100 collectives that could be matched, 40.000 μs together, it waited 35.000 μs (87.5 %) for the rank that "
        "came last; the rest is the exchange itself."
    )
    assert "comes late" in finding.next


def test_the_planted_slow_collectives_are_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="slow-collectives", world=2, lockstep=True, prefill_every=3), RULE)
    assert finding.severity in ("medium", "high")
    assert "all-reduce" in said(finding)


def test_tensor_parallelism_that_exchanges_quickly_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, layers=16, world=2, lockstep=True), RULE)


def test_a_record_says_what_a_generic_kernel_exchanges() -> None:
    finding = only(exchanged(515, GENERIC, collectives=recorded(GENERIC, "allreduce", 4_000_000)), RULE)
    assert finding.title.endswith("mostly in all-reduce")
    assert finding.evidence[1] == (
        "all-reduce (8.000 MB each, BFloat16, 8 ranks; nccl generic): 10 times, on average 400.000 μs, exposed for "
        "4.000 ms; 20.000 GB of message per second, waiting for other ranks included."
    )


@pytest.mark.parametrize(
    ("kernel", "collective", "elements", "dur_us", "advice"),
    [
        (GENERIC, "allreduce", 262_144, 400, "Check that all-reduces of 512 KiB and less take a one-shot path"),
        (GENERIC, "allreduce", 262_145, 400, "Let it run while something still computes"),
        (NCCL, None, 0, 90, "Their size isn't recorded, but they are short: check"),
        (NCCL, None, 0, 400, "Record how much it exchanges, and the other ranks"),
        (GATHER, None, 0, 400, "Gather ahead of use"),
        (SEND, None, 0, 400, "See what the other side does meanwhile"),
        (SEND, "all_to_allv", 4_000, 400, "Let two micro-batches take turns"),
        (GENERIC, "broadcast", 4_000, 400, "Broadcast once, or not at all"),
        (GENERIC, "_reduce_oop", 4_000, 400, "Reduce while something still computes"),
        (GENERIC, "_reduce_scatter_base", 4_000, 400, "Let it run while something still computes (FSDP"),
        (GENERIC, None, 0, 400, "Find out which collective it is"),
    ],
)
def test_the_advice_fits_the_collective_and_its_size(
    kernel: str, collective: str | None, elements: int, dur_us: float, advice: str
) -> None:
    records = recorded(kernel, collective, elements) if collective else []
    finding = only(exchanged(515, kernel, dur_us, compute_us=100, collectives=records), RULE) if dur_us > 100 else None
    if finding is None:  # nine short ones a step
        rows = [launched(1000 * i, 100 * i + 10, dur_us, stream=20, kernel=kernel) for i in range(90)]
        finding = only(trace_with(rows), RULE)
    assert finding.next.startswith(advice)


def test_callers_name_what_an_ambiguous_kernel_does() -> None:
    ops = [op("c10d::alltoall_base_", 1000 * i + 5, 1000 * i + 11) for i in range(10)]
    finding = only(exchanged(515, SEND, ops=ops), RULE)
    assert finding.title.endswith("mostly in all-to-all")
    assert "all-to-all (size not recorded, as its caller names it; nccl sendrecv): 10 times" in finding.evidence[1]


def test_a_kernel_that_names_its_collective_is_believed_before_its_caller() -> None:
    ops = [op("c10d::alltoall_base_", 1000 * i + 5, 1000 * i + 11) for i in range(10)]
    finding = only(exchanged(515, NCCL, ops=ops), RULE)
    assert finding.title.endswith("mostly in all-reduce")
    assert "caller" not in finding.evidence[1]


def test_copies_may_run_while_it_is_exposed_and_overlapping_launches_count_once() -> None:
    rows = []
    for i in range(10):
        rows.append(launched(1000 * i, 1000 * i, 100))
        rows.append(launched(1000 * i, 1000 * i + 100, 400, stream=20, kernel=NCCL))
        rows.append(launched(1000 * i, 1000 * i + 100, 400, stream=21, kernel=NCCL))
        rows.append(launched(1000 * i, 1000 * i + 200, 100, stream=22, kind="memcpy", kernel="Memcpy DtoD"))
    finding = only(trace_with(rows), RULE)
    assert finding.evidence[0] == "Kernels communicate and none computes for 4.000 ms."
    assert "20 times, on average 400.000 μs, exposed for 4.000 ms." in finding.evidence[1]


def test_copies_that_its_calls_make_are_counted_beside_it() -> None:
    calls = [op("symm_mem::one_shot_all_reduce", 1000 * i, 1000 * i + 20) for i in range(10)]
    rows = []
    for i in range(10):
        rows.append(launched(1000 * i + 2, 1000 * i + 30, 50, kind="memcpy", kernel="Memcpy DtoD (Device -> Device)"))
        rows.append(launched(1000 * i + 8, 1000 * i + 100, 400, kernel=NCCL))
    finding = only(trace_with(rows, ops=calls), RULE)
    said_last = "Besides them, 10 copies and casts that calls of communication make take 500.000 μs."
    assert finding.evidence[-1] == said_last


def test_other_ranks_that_cannot_be_matched_are_told_from_none() -> None:
    rows = [
        {"kernel": SEND, "rank": rank, "device": f"gpu:{rank}", "stream": 20, "start_ns": at, "dur_ns": 900}
        for at in range(0, 100_000, 1_000)
        for rank in (0, 1)
    ]
    assert only(trace_of(rows), RULE).evidence[-1].startswith("None of it could be matched with other ranks':")


def test_without_calls_of_the_host_nobody_is_sent_to_look_for_the_caller(shared_data: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "rocprof" / "mi350_600_dispatches.json.gz")
    (found,) = [one for one in find_findings(trace).findings if one.rule == "exposed_collectives"]
    assert set(attribute(trace).launches["how"].unique()) == {"no_call"}, "inferometer launches has no answer"
    assert found.next is not None
    assert "inferometer launches" not in found.next
    assert "Record the host's side" in found.next


def test_what_nobody_can_name_is_not_called_mostly_communication(shared_data: Path) -> None:
    """AMD's file has kernels of RCCL alone: no call, op or record says which collective they are."""
    path = shared_data / "traces" / "rocprof" / "mi350_600_dispatches.json.gz"
    (found,) = [each for each in find_findings(inferometer.open(path)).findings if each.rule == RULE]
    assert re.fullmatch(r"gpu:0 communicates while nothing computes for [\d.]+ % of its time", found.title)
