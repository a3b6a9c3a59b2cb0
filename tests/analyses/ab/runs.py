"""Small A/Bs made by hand: what each arm calls, how long each call takes by itself, in how many repetitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.ab.measurement import CALLS, PASSES, PathMeasurement


@dataclass(frozen=True)
class Call:
    """One call, `own_ns` long without those below it."""

    name: str
    own_ns: int = 0
    below: Sequence["Call"] = ()
    backend: str | None = None
    operator: str | None = None


def op(name: str, own_ns: int, backend: str | None = None) -> Call:
    """Of a backend of the arm's name, where none is named."""
    return Call(name, own_ns, backend=backend, operator=name)


Arms = Mapping[str, Sequence[Call]]
"""By arm the root's call of each repetition."""


def measured(arms: Arms, *, on_gpu: bool = False, **others: Any) -> PathMeasurement:
    """Times of the host; on a GPU those of the device, and launching takes a tenth of them."""
    rows = [row for arm, calls in arms.items() for i, call in enumerate(calls) for row in _rows_of(arm, i, call)]
    calls = pl.DataFrame(rows, CALLS, orient="row")
    if on_gpu:
        calls = calls.with_columns(pl.col("dur_ns").alias("span_ns"), pl.col("dur_ns") // 10)
    return PathMeasurement(list(arms), calls, others.pop("passes", pl.DataFrame(schema=PASSES)), **others)


def _rows_of(arm: str, repetition: int, root: Call) -> list[tuple[Any, ...]]:
    order: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []

    def visit(call: Call, above: str | None, depth: int) -> int:
        path = call.name if above is None else f"{above}.{call.name}"
        place = order.setdefault(path, len(order))
        ns = call.own_ns + sum(visit(each, path, depth + 1) for each in call.below)
        backend = call.backend or (arm if call.operator is not None else None)
        sums = (None, None) if call.operator is None else (1.0, 1.0)
        rows.append((arm, repetition, path, call.name, above, place, depth, call.operator, backend, ns, None, *sums))
        return ns

    visit(root, None, 0)
    return rows


def passes_of(arms: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]]) -> pl.DataFrame:
    """By arm and phase the time without and with scopes of each repetition."""
    rows = [
        (arm, i, phase, wall, scoped)
        for arm, phases in arms.items()
        for phase, times in phases.items()
        for i, (wall, scoped) in enumerate(times)
    ]
    return pl.DataFrame(rows, PASSES, orient="row")


LEAVES = ("qkv", "rope", "attention", "o")


def noisy_run(draw: np.random.Generator, *, slow: Mapping[str, float], rare: float, level: float = 1.0) -> Call:
    """A small model's completion: three passes over three layers, 20 μs an operator, give or take 15 %.

    Operators named in `slow` take so many times as long, all take `level` times as long, and one call in `1 / rare`
    waits some milliseconds for a processor.
    """

    def ns(mean: float) -> int:
        waits = (draw.pareto(1.2) + 0.1) * 4e6 if draw.random() < rare else 0.0
        return int(mean * level * draw.lognormal(0, 0.15) + waits)

    def leaf(name: str) -> Call:
        return op(name, ns(20_000 * slow.get(name, 1.0)))

    def layer(i: int) -> Call:
        attention = Call("self_attn", ns(3_000), [leaf(name) for name in LEAVES])
        mlp = Call("mlp", ns(3_000), [leaf(name) for name in ("gate_up", "silu_mul", "down")])
        return Call(f"layers.{i}", ns(2_000), [leaf("norm"), attention, mlp])

    def one_pass(phase: str) -> Call:
        forward = Call("forward", ns(5_000), [*(layer(i) for i in range(3)), leaf("lm_head")])
        return Call(phase, ns(2_000), [forward, Call("sample", ns(1_000), [leaf("argmax")])])

    return Call(
        "completion", ns(1_000), [Call("generate", ns(3_000), [one_pass("prefill"), *map(one_pass, ["decode"] * 2)])]
    )


def interleaved(
    draw: np.random.Generator, run: Callable[[str, float], Call], *, repetitions: int, drift: float
) -> dict[str, list[Call]]:
    """Two arms in turns (A B, B A, …) of `run(arm, level)`; the level wanders by `drift`."""
    calls: dict[str, list[Call]] = {"torch": [], "triton": []}
    for arm, level in zip(_turns(repetitions), _levels(draw, 2 * repetitions, drift), strict=True):
        calls[arm].append(run(arm, level))
    return calls


def _turns(repetitions: int) -> Iterator[str]:
    for i in range(repetitions):
        yield from ("torch", "triton") if i % 2 == 0 else ("triton", "torch")


def _levels(draw: np.random.Generator, count: int, drift: float) -> list[float]:
    level, levels = 0.0, []
    for _ in range(count):
        level = 0.9 * level + draw.normal(0, drift)
        levels.append(float(np.exp(level)))
    return levels
