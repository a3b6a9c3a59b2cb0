"""Runs of the evaluator made by hand: what a test says of a shape, and nothing else."""

from typing import Any

from inferometer.bench.results import (
    Attribution,
    Bound,
    CandidateRecord,
    Conditions,
    Run,
    ShapeResult,
    Timer,
    Timing,
    Verdict,
    Versus,
)

DEVICE = "NVIDIA H200"


def timing(median_ns: float, *, half: float = 0.005, mode: Any = "cold", timer: Timer = "cupti") -> Timing:
    """`half`: half of the interval's width, as a share of the median."""
    return Timing(
        mode=mode,
        timer=timer,
        median_ns=median_ns,
        p10_ns=median_ns * 0.98,
        p90_ns=median_ns * 1.04,
        low_ns=median_ns * (1 - half),
        high_ns=median_ns * (1 + half),
        samples=60,
        steady=True,
    )


def versus(speedup: float, *, base: str = "torch", half: float = 0.01) -> Versus:
    low, high = speedup * (1 - half), speedup * (1 + half)
    verdict: Verdict = "faster" if low > 1 else "slower" if high < 1 else "same"
    return Versus(base=base, mode="cold", speedup=speedup, low=low, high=high, verdict=verdict)


def result(
    candidate: str,
    index: int = 0,
    ns: float | None = 10_000.0,
    *,
    operator: str = "rms_norm",
    bound_ns: float | None = 4_000.0,
    binding: str = "memory",
    wrong: str | None = None,
    speedup: float | None = None,
    half: float = 0.005,
    own: float | None = None,
    launch_ns: float | None = None,
    **more: Any,
) -> ShapeResult:
    """A shape; `ns` None: it wasn't timed."""
    return ShapeResult(
        operator=operator,
        shape=f"{index}: {index} tokens",
        index=index,
        args={"T": index},
        candidate=candidate,
        cases=3,
        failure=wrong,
        timings=() if ns is None or wrong else (timing(ns, half=half),),
        versus=() if speedup is None else (versus(speedup),),
        bound=None
        if bound_ns is None
        else Bound(device="H200 SXM", bound_ns=bound_ns, binding=binding, launch_ns=launch_ns),
        attribution=None if own is None else Attribution(own=own, by_name={"k": 1.0}, of="device"),
        **more,
    )


def run_of(*results: ShapeResult, date: str = "2026-11-20T10:00:00Z", device: str = DEVICE, **more: Any) -> Run:
    names = dict.fromkeys(each.candidate for each in results)
    given: dict[str, Any] = {
        "inferometer": "0.5",
        "on": "cuda:0",
        "functional_only": False,
        "stage": "fast",
        "versions": {"torch": "2.13.0"},
        "settings": {"cases": 3},
        "candidates": tuple(CandidateRecord(name=name, kind="file") for name in names),
        "conditions": Conditions(metrics={"sm_clock_hz": (1.7e9, 1.755e9, 1.8e9)}),
    }
    return Run(date=date, device=device, results=results, **given | more)
