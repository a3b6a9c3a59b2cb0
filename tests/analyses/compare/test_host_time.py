"""Idle time that grew is placed: between which functions, and in which Python frame the host then was."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyses.compare.run_traces import some
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.comparison import NEEDED, Comparison, compare
from inferometer.analyses.compare.host_time import _OWN_FORMAT
from inferometer.formats.opening import open_trace
from inferometer.record.journal.journal import FORMAT

RECORDED = Path(__file__).parents[3] / "samples" / "recorded"
SLEEP, SAMPLE, MAIN = "<built-in function sleep>", "app/sampler.py(12): sample", "app/main.py(3): main"
KERNELS = ("gemm_kernel", "norm_kernel", "argmax_kernel")
Frames = Sequence[tuple[str, int, int]]


def run_with(gaps_ns: Sequence[int], *, frames: Frames = (), steps: int = 12, seed: int = 0, thread: int = 7) -> Trace:
    """Steps of three kernels of 10 μs, each after its gap; `frames`: name, first and last gap that it holds wholly.

    Each kernel is called for as it begins; a gap differs by 2 % from step to step.
    """
    rows: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    opened: list[dict[str, Any]] = []
    owner, now, noise = {"process": 1}, 0, np.random.default_rng(seed)
    for step in range(steps):
        begin, times = now, []
        for kernel, gap_ns in zip(KERNELS, gaps_ns, strict=True):
            gap = max(round(gap_ns * (1 + 0.02 * noise.standard_normal())), 1)
            times.append((now, now + gap))
            start = {"start_ns": now + gap, "correlation_id": len(rows), **owner}
            rows.append({"kernel": kernel, "dur_ns": 10_000, "device": "gpu:0", **start})
            now += gap + 10_000
        spans.append({"span": f"ProfilerStep#{step}", "start_ns": begin, "dur_ns": now - begin, **owner})
        opened += [
            {"frame": name, "start_ns": times[a][0], "dur_ns": times[b][1] - times[a][0], "thread": thread, **owner}
            for name, a, b in frames
        ]
    calls = [{"api": "cudaLaunchKernel", "dur_ns": 1, "thread": 7} | _called(row) for row in rows]
    return trace_of(rows, calls=calls, spans=spans, frames=opened)


def _called(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("start_ns", "correlation_id", "process")}


def compared(base: Sequence[int], candidate: Sequence[int], frames: Frames = ()) -> Comparison:
    return compare(run_with(base, frames=frames), run_with(candidate, frames=frames, seed=1))


def test_a_pause_at_one_place_is_told_by_the_functions_around_it() -> None:
    found = compared((1_000, 1_000, 1_000), (1_000, 1_000, 21_000))
    assert found.verdict == "host time"
    place = some(some(found.host).place)
    assert (place.after, place.before, place.called_in) == ("norm_kernel", "argmax_kernel", None)
    assert place.delta_ns == pytest.approx(20_000, rel=0.02)
    assert "between norm kernel (triton) and argmax kernel (triton)." in found.judged.why
    assert found.as_json()["host_time"]["place"]["before"] == "argmax_kernel"


def test_idle_time_that_grew_everywhere_has_no_place() -> None:
    found = compared((1_000, 1_000, 1_000), (8_000, 8_000, 8_000))
    assert found.verdict == "cause not measured"
    assert not some(found.host).is_found
    assert found.judged.why.endswith("look at the host. Nothing that was measured in both runs explains it.")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([(MAIN, 0, 2), (SAMPLE, 2, 2), (SLEEP, 2, 2)], f"with the host in {SLEEP}, called by {SAMPLE}"),
        ([(MAIN, 0, 2), (SAMPLE, 2, 2)], f"with the host in {SAMPLE}"),
        ([(MAIN, 0, 2)], f"with the host in {MAIN}"),
        ([("threading.py(9): wait", 0, 2)], "with the host in threading.py(9): wait"),
    ],
)
def test_the_innermost_frame_is_named_with_the_python_code_that_called_a_native_one(frames: Frames, words: str) -> None:
    found = compared((1_000, 1_000, 1_000), (1_000, 1_000, 21_000), frames)
    assert words in found.judged.why
    assert some(some(found.host).frame).delta_ns == some(found.host).idle.delta_ns or len(frames) > 1


def test_frames_alone_tell_where_idle_time_grew_at_all_places() -> None:
    """Every gap is in one frame, and none holds most of the growth."""
    found = compared((1_000, 1_000, 1_000), (8_000, 8_000, 8_000), [(MAIN, 0, 2)])
    host = some(found.host)
    assert (host.place, some(host.frame).frame) == (None, MAIN)
    assert found.verdict == "host time"


def test_own_code_is_named_where_what_it_calls_shares_the_time() -> None:
    inner = [(f"torch/file.py({at}): f{at}", at, at) for at in range(3)]
    found = compared((1_000, 1_000, 1_000), (8_000, 8_000, 8_000), [(MAIN, 0, 2), *inner])
    frame = some(some(found.host).frame)
    assert (frame.frame, frame.own) == (MAIN, True)
    assert f"with the host in {MAIN}, or what that called" in found.judged.why


def test_frames_of_another_thread_say_nothing() -> None:
    gaps = (1_000, 1_000, 1_000), (1_000, 1_000, 21_000)
    runs = [run_with(each, frames=[(SLEEP, 0, 2)], seed=seed, thread=8) for seed, each in enumerate(gaps)]
    assert some(compare(runs[0], runs[1]).host).frame is None


def test_places_add_up_to_the_idle_time_of_a_step() -> None:
    found = compared((1_000, 2_000, 3_000), (4_000, 5_000, 36_000), [(MAIN, 0, 2)])
    idle = next(line for line in found.changes.contributions if line.cls == "idle")
    host = some(found.host)
    assert (host.idle.base_ns, host.idle.candidate_ns) == (idle.base_ns, idle.candidate_ns)
    frame = some(host.frame)
    assert (frame.base_ns, frame.candidate_ns) == (idle.base_ns, idle.candidate_ns)  # the frame holds all gaps


def test_what_our_recordings_call_themselves() -> None:
    assert FORMAT == _OWN_FORMAT


@pytest.mark.parametrize("pair", sorted(RECORDED.glob("*/")), ids=lambda pair: pair.name)
def test_gaps_of_recorded_runs_are_their_idle_time_and_disjoint(pair: Path) -> None:
    """Real recordings: recomputed from the launches of the steps that are compared."""
    found = compare(*(open_trace(pair / f"{run}.ifm", NEEDED) for run in ("normal", "fault")))
    for run in (found.leading.pair.base, found.leading.pair.candidate):
        gaps = run.gaps.sort("start_ns")
        assert ((gaps["end_ns"] - gaps["start_ns"]).sum()) == run.cycles["idle_ns"].sum()
        assert (gaps["start_ns"][1:] >= gaps["end_ns"][:-1]).all()
