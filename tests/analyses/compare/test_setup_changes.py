"""Versions and settings that both recordings note and that differ: listed, and judged where their effect is known."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.analyses.compare.run_traces import LAYER, kernel_run

from inferometer import Trace
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.compare.setup_changes import BLOCKING, SetupChange, find_setup_changes, telling_change
from inferometer.reports.terminal import render_terminal

SLOWER = [(name, 2 * dur_ns) for name, dur_ns in LAYER]


def run_on(settings: dict[str, str], versions: dict[str, str] | None = None, **run: Any) -> Trace:
    trace = kernel_run(**run)
    facts = replace(trace.facts, settings=settings, versions=versions or {})
    return Trace(facts, dict(trace.tables), trace.losses, scope=trace.scope)


def test_only_what_both_note_can_differ() -> None:
    base = run_on({"torch threads": "2", "a": "1"}, {"torch": "2.12", "python": "3.11.7"})
    candidate = run_on({"torch threads": "1", "b": "1"}, {"torch": "2.13", "python": "3.11.7"})
    assert find_setup_changes(base, candidate) == (
        SetupChange("torch threads", "2", "1"),
        SetupChange("torch", "2.12", "2.13"),
    )
    assert find_setup_changes(base, base) == ()


@pytest.mark.parametrize(
    ("name", "values", "on_cpu", "words"),
    [
        ("torch threads", ("2", "1"), True, "PyTorch ran on 1 thread in place of 2."),
        ("torch threads", ("1", "2"), True, "PyTorch ran on 2 threads in place of 1."),
        ("torch threads", ("2", "1"), False, None),
        (
            "CUDA_LAUNCH_BLOCKING",
            ("0", "1"),
            False,
            "Each launch waits for its kernel: CUDA_LAUNCH_BLOCKING was set to 1.",
        ),
        (BLOCKING, ("1", "0"), False, None),
        ("float32 matmul precision", ("high", "highest"), False, None),
    ],
)
def test_of_few_settings_the_effect_is_known(
    name: str, values: tuple[str, str], on_cpu: bool, words: str | None
) -> None:
    assert telling_change((SetupChange(name, *values),), on_cpu=on_cpu) == words


@pytest.mark.parametrize(("layer", "verdict"), [(SLOWER, "software change"), (LAYER, "no difference")])
def test_a_setting_is_named_of_a_slower_run_alone(layer: Any, verdict: str) -> None:
    """Kernels on the CPU, called for as they begin."""
    runs = [
        run_on({"torch threads": count}, layer=each, seed=seed, device="cpu")
        for seed, (count, each) in enumerate((("2", LAYER), ("1", layer)))
    ]
    found = compare(*runs)
    assert found.verdict == verdict
    assert ("PyTorch ran on 1 thread in place of 2." in found.judged.why) == (verdict == "software change")
    assert found.as_json()["setup"] == [{"name": "torch threads", "base": "2", "candidate": "1"}]
    assert "torch threads 2 -> 1." in render_terminal(found, is_terminal=False)
