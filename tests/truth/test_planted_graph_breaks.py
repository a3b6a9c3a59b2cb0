"""Every number that `graph_breaks` prints of planted faults, by loops over the files' own events."""

import re
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tests.findings.rule_traces import launched, marked, op
from tests.truth.host import Span, host
from tests.truth.idle import Piece, idle, is_replay, total
from tests.truth.planted import Step, a_step, launch_call, steps_of, windows, write_planted, write_rows
from tests.truth.raw import ask, capture, duration, share

RULE = "graph_breaks"
REGION = re.compile(r"Torch-Compiled Region: (\d+)/\d+")


def replayed(at: float, kernels: int, correlation: int) -> list[dict[str, Any]]:
    """One call that replays kernels of 20 μs."""
    return [
        launched(at, at + 8 + 21 * k, 20, api="cudaGraphLaunch", correlation_id=correlation, graph_node_id=k + 1)
        for k in range(kernels)
    ]


def late(path: Path) -> list[Piece]:
    """Idle time that the host caused, before work whose call is known."""
    return [each for each in idle(path).pieces if each.cause in ("host_late", "sync") and each.call]


def test_what_is_said_of_eager_steps_is_what_the_file_says(tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "llama-3.2-1b", "batches": (32, 16, 8, 4), "steps": 12, "prefill_every": 6}
    path = write_planted(tmp_path, "graph-breaks", **options)
    found, steps, finding = capture(path), steps_of(path), ask(path, RULE)
    eager: list[tuple[Step, tuple[int, int]]] = []
    graph: list[tuple[Step, tuple[int, int]]] = []
    decode = [
        (step, window) for step, window in zip(steps, windows(path, steps), strict=True) if step.phase == "decode"
    ]
    for step, window in decode:
        replays = sum(is_replay(each, launch_call(path, each)) for each in step.launches)
        (graph if 2 * replays >= len(step.launches) else eager).append((step, window))
        assert replays == 0 or 2 * replays >= len(step.launches)
    sizes = ", ".join(map(str, sorted({step.tokens for step, _ in eager})))
    took, idles = [took for _, (took, _) in eager], [gap for _, (_, gap) in eager]
    usual = median(gap for _, (_, gap) in graph)
    lost = sum(idles) - round(usual * len(eager))
    assert finding is not None
    assert lost > 0
    assert finding.title == (
        f"{len(eager)} of {len(decode)} decode steps run eagerly though others replay a graph: batch size {sizes}"
    )
    assert list(finding.evidence) == [
        (
            f"They take {duration(sum(took))}, {duration(median(took))} each (median), the {len(graph)} replayed ones "
            f"{duration(median(took for _, (took, _) in graph))}."
        ),
        (
            f"The device idles {duration(median(idles))} in each of them (median), and {duration(usual)} in a replayed "
            f"one: {duration(lost)} more in all, {share(lost / found.window_ns)} of the window."
        ),
    ]
    assert (finding.size_ns, finding.share) == (sum(took), sum(took) / found.window_ns)
    assert finding.next.startswith("Capture graphs for these batch sizes, or pad up to a captured one")


def test_what_is_said_of_several_graphs_a_step_is_what_the_file_says(tmp_path: Path) -> None:
    rows = []
    for i in range(6):
        for number in range(3 + i % 2):
            at = 1000.0 * i + 250 * number
            rows += replayed(at, 5, 10 * i + number + 1)
            rows.append(launched(at + 180 + i, at + 187 + i, 5))
    path = write_rows(tmp_path / "graphs.json.gz", rows, spans=marked((1000 * i - 1 for i in range(6)), 998))
    found, steps, finding = capture(path), steps_of(path), ask(path, RULE)
    graphs, others, between = [], [], []
    for step in steps:
        calls = sorted(
            {
                call.start_ns
                for call in (launch_call(path, each) for each in step.launches)
                if call.name == "cudaGraphLaunch"
            }
        )
        graphs.append(len(calls))
        others.append(sum(not is_replay(each, launch_call(path, each)) for each in step.launches))
        between += [each for each in late(path) if each.call and calls[0] < each.call.start_ns <= calls[-1]]
    idle_ns = total(between)
    part = idle_ns / found.window_ns
    assert graphs == [3, 4, 3, 4, 3, 4]
    assert finding is not None
    assert finding.title == f"{found.device} waits {share(part)} of its time between the graphs of a step"
    assert list(finding.evidence) == [
        (
            f"{len(steps)} steps launch {median(graphs):g} graphs each (median), and {median(others):g} kernels and "
            "copies one by one (median)."
        ),
        (
            f"Between a step's first and last graph the device idles {duration(idle_ns)} for the host"
            f"{a_step(idle_ns, steps)}."
        ),
    ]
    assert (finding.size_ns, finding.share) == (idle_ns, part)
    assert finding.next.startswith("Capture the whole step as one graph")


def forwards_of(path: Path) -> list[list[Span]]:
    """The outermost regions of each forward pass: from one with the first number to the next such."""
    passes: list[list[Span]] = []
    first, open_until = "", 0
    for each in host(path).ops:
        number = REGION.fullmatch(each.name)
        if number is None or each.start_ns < open_until:
            continue
        open_until = each.end_ns
        first = first or number[1]
        if number[1] == first:
            passes.append([])
        passes[-1].append(each)
    return passes


def ended_at_a_break(path: Path, parted: list[list[Span]]) -> list[Piece]:
    """Gaps whose launch was the first since the host left a region, or entered one, within a pass."""
    breaks = sorted(
        [each.end_ns for own in parted for each in own[:-1]] + [each.start_ns for own in parted for each in own[1:]]
    )
    calls = sorted({launch_call(path, each).start_ns for each in capture(path).launches})
    first = {now for before, now in pairwise(calls) if any(before <= each <= now for each in breaks)}
    return [each for each in late(path) if each.call and each.call.start_ns in first]


def test_what_is_said_of_breaks_of_compiled_code_is_what_the_file_says(tmp_path: Path) -> None:
    rows, ops = [], []
    for i in range(6):
        for piece in range((1, 3, 4, 3, 4, 4)[i]):  # the first pass is whole
            at = 1000.0 * i + 160 * piece
            ops += [op(f"Torch-Compiled Region: {piece}/{i // 5}", at, at + 100)]
            ops += [op("Torch-Compiled Region: 7/0", at + 20, at + 40)] if piece == 1 else []  # within another
            rows += [launched(at + 10 * k + 5, at + 10 * k + 10, 9) for k in range(9)]
            rows += [launched(at + 130, at + 135, 9)] if i == 2 else []
    path = write_rows(tmp_path / "regions.json.gz", rows, ops=ops)
    found, finding = capture(path), ask(path, RULE)
    passes = forwards_of(path)
    parted = [own for own in passes if len({REGION.fullmatch(each.name)[1] for each in own}) > 1]  # type: ignore[index]
    gaps = ended_at_a_break(path, parted)
    names = list(dict.fromkeys(each.name for own in parted for each in own))
    graphs = median(len(own) for own in parted)
    assert (len(passes), len(parted), graphs) == (6, 5, 4)
    idle_ns = total(gaps)
    part = idle_ns / found.window_ns
    assert finding is not None
    assert finding.title == (
        f"compiled code is broken into {graphs:g} graphs a forward pass: {found.device} waits {share(part)} of its "
        "time at the breaks"
    )
    more = ", …" if len(names) > 8 else ""
    assert list(finding.evidence) == [
        f"In {len(parted)} forward passes, of {graphs:g} graphs each (median), run {', '.join(names[:8])}{more}.",
        (
            f"The device idles {duration(idle_ns)} at the breaks, in {len(gaps)} gaps: the host leaves compiled code, "
            "runs Python and enters again."
        ),
    ]
    assert (finding.size_ns, finding.share) == (idle_ns, part)
    assert finding.next.startswith("TORCH_LOGS=graph_breaks")
