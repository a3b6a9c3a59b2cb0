"""What `ab` finds in arms whose faults are known: wrong answers now and then, and one operator that is slow.

    python -m benchmarks.ab_truth faults --runs 20
    python -m benchmarks.ab_truth faults --runs 20 --kinds NaN --every 37,101
    python -m benchmarks.ab_truth differences --runs 12

1. `faults`: of every Nth call of `silu_mul` the answer is NaN, or half as much again. Of the runs in which such a call
   `occurred` outside the warm-up, counted are those that call the arm wrong at the root, that name the operator and no
   other, and in which `--check` fails. Bar: all of them, and none of the honest runs (`--every never`).
2. `differences`: `silu_mul` of one arm waits, of the candidate (slower) or of the base (faster). Counted are paths
   without it, in which both arms run the same code, that are called faster or slower, and all that are called so.
   `--copies`: each operator of the slow arm is a backend of its own, so that nobody knows that it is the same code:
   then the control tells, and what the same measurements come to without it is counted, too.

A row is printed when it is done, with the machine's load. The model is a bundled small one with random weights, on one
thread of a CPU. Needs torch; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine

from inferometer.analyses.ab.comparison import PathComparison, compare_paths
from inferometer.backends.backend import Backend, DecoderKernel, DecoderKernels
from inferometer.engines.ab import Plan, measure_ab
from inferometer.engines.ab.progress import Progress
from inferometer.engines.arms import TORCH_ONLY, Arm, decoder_of, known_backends
from inferometer.operators.decoder.contracts import CONTRACTS

OPERATOR = "silu_mul"
FUSED = "add_rms_norm"
"""An arm that has it adds and norms at once, which is other work than a norm alone: no copy of the base's."""

NEVER = "never"
EVERY = ("2", "7", "37", "101", NEVER)
KINDS: dict[str, Callable[[Any], Any]] = {"NaN": lambda right: right * float("nan"), "1.5": lambda right: right * 1.5}
DELAY_US = 300.0

Change = Callable[..., Any]


def make_arm(name: str, operators: Sequence[str], change: Change) -> Arm:
    """Answers as plain PyTorch does; those of `OPERATOR` are `change(call, *args)`."""
    plain = decoder_of(known_backends()["torch"])

    def load(operator: str) -> DecoderKernel:
        call = plain.load(operator).call
        changed = (lambda *args, **settings: change(call, *args, **settings)) if operator == OPERATOR else call
        return DecoderKernel(changed, lambda *args, **settings: None)

    kernels = DecoderKernels(tuple(operators), load, lambda device: None, lambda device: None)
    backend = Backend(name, "made for a benchmark", lambda device: None, decoder=kernels)
    return Arm(name, dict.fromkeys(operators, backend))


@dataclass
class Faulty:
    """Wrong on every Nth call, counted over all of them; `calls` went before.

    `occurred`: how many such calls were outside the warm-up, whose answers nobody looks at.
    """

    every: int
    spoil: Callable[[Any], Any]
    calls: int
    occurred: int = 0
    is_warming_up: bool = False

    def __call__(self, call: Change, *args: Any) -> Any:
        """The answer of `call`, or a spoilt one."""
        self.calls += 1
        right = call(*args)
        if self.calls % self.every:
            return right
        self.occurred += not self.is_warming_up
        return self.spoil(right)

    def hear(self, doing: Progress) -> None:
        """What the measurement says that it does now."""
        self.is_warming_up = doing.part == "warm-up"


def honest(call: Change, *args: Any) -> Any:
    """Right, and at once."""
    return call(*args)


def late(delay_us: float) -> Change:
    """Right, and late: the processor is busy meanwhile."""

    def change(call: Change, *args: Any) -> Any:
        until = time.perf_counter() + delay_us * 1e-6
        while time.perf_counter() < until:
            pass
        return call(*args)

    return change


def measure_faults(
    engine: Any, plan: Plan, runs: int, *, kinds: Sequence[str] = tuple(KINDS), every: Sequence[str] = EVERY
) -> Iterator[dict[str, Any]]:
    """A row per kind of fault and how often, and one of honest arms. Each run begins elsewhere in the N calls."""
    for kind in kinds:
        for nth in (int(each) for each in every if each != NEVER):
            faults = [Faulty(nth, KINDS[kind], run * nth // runs) for run in range(runs)]
            yield {"fault": kind, "every": nth, **_count_faults(engine, plan, faults), "load": _load()}
    if NEVER in every:
        base, candidate = (make_arm(name, [OPERATOR], honest) for name in ("base", "honest"))
        found = [_compare(engine, base, candidate, plan) for _ in range(runs)]
        yield {"fault": None, "every": None, "occurred": 0, **_counted(found), "load": _load()}


def _count_faults(engine: Any, plan: Plan, faults: Sequence[Faulty]) -> dict[str, Any]:
    occurred = []
    for fault in faults:
        found = _compare(engine, TORCH_ONLY, make_arm("faulty", [OPERATOR], fault), plan, on_progress=fault.hear)
        if fault.occurred:
            occurred.append(found)
    return {"occurred": len(occurred), **_counted(occurred), "runs": len(faults)}


def measure_differences(
    engine: Any, plan: Plan, runs: int, *, copies: bool, delay_us: float = DELAY_US
) -> Iterator[dict[str, Any]]:
    """A row per run: which arm is slow, whether that is found, and what else is called different."""
    slow = make_arm("slow", [name for name in CONTRACTS if name != FUSED] if copies else [OPERATOR], late(delay_us))
    for run in range(runs):
        arms = (TORCH_ONLY, slow) if run % 2 == 0 else (slow, TORCH_ONLY)
        measured = measure_ab(engine, arms, plan, record=False)
        found = compare_paths(measured)
        (candidate,) = found.candidates
        verdicts = _verdicts(found)
        uncontrolled = _verdicts(compare_paths(replace(measured, control=measured.control.clear())))
        right = "slower" if run % 2 == 0 else "faster"
        planted = [path for path in verdicts if path.endswith(f".{OPERATOR}")]
        related = {path for path in verdicts if any(f"{each}.".startswith(f"{path}.") for each in planted)}
        yield {
            "slow": "candidate" if run % 2 == 0 else "base",
            "disturbed": list(found.disturbed),
            "found": sum(verdicts[path] == right for path in planted),
            "found_without_control": sum(uncontrolled[path] == right for path in planted),
            "planted": len(planted),
            "unrelated": len(verdicts) - len(related),
            "different": len(_different(verdicts)),
            "false": [path for path in _different(verdicts) if path not in related],
            "false_without_control": [path for path in _different(uncontrolled) if path not in related],
            "places": [each.path for each in found.differences[candidate]],
            "load": _load(),
        }


def _verdicts(found: PathComparison) -> dict[str, str | None]:
    """Of the first candidate, by path."""
    return {row.path: next(iter(row.versus.values())).verdict for row in found.rows}


def _different(verdicts: Mapping[str, str | None]) -> list[str]:
    return [path for path, word in verdicts.items() if word in ("faster", "slower")]


def _compare(
    engine: Any, base: Arm, candidate: Arm, plan: Plan, on_progress: Callable[[Progress], None] = lambda doing: None
) -> PathComparison:
    return compare_paths(measure_ab(engine, [base, candidate], plan, record=False, on_progress=on_progress))


def _load() -> float:
    """Processes that ran or waited for a processor, mean of the last minute."""
    return round(os.getloadavg()[0], 1)


def _counted(found: Sequence[PathComparison]) -> dict[str, int]:
    versus = [next(iter(one.rows[0].versus.values())) for one in found]
    return {
        "runs": len(found),
        "wrong": sum(each.error.failure is not None for each in versus),
        "named": sum(_is_named(one) for one in found),
        "check_fails": sum(not one.is_good for one in found),
    }


def _is_named(found: PathComparison) -> bool:
    """Whether the operator, and no other, is called wrong by itself."""
    wrong = {row.operator for row in found.rows for each in row.versus.values() if each.error.failure is not None}
    return wrong - {None} == {OPERATOR}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("faults", "differences"))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=8)
    parser.add_argument("--model", default="tiny-llama")
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--delay-us", type=float, default=DELAY_US, help="differences: how late; 0.3 ms by default")
    parser.add_argument("--kinds", default=",".join(KINDS), help="faults: which")
    parser.add_argument("--every", default=",".join(EVERY), help="faults: of which rows, as 7,37")
    parser.add_argument("--json", dest="out")
    options = parser.parse_args(arguments)
    import torch

    from inferometer.engines.hf.model import load_model

    torch.set_num_threads(1)
    engine = load_model(options.model, device="cpu", dtype="float32", seed=0)
    plan = Plan(prompt_tokens=16, new_tokens=options.new_tokens, repetitions=options.repetitions)
    rows = (
        measure_faults(engine, plan, options.runs, kinds=options.kinds.split(","), every=options.every.split(","))
        if options.part == "faults"
        else measure_differences(engine, plan, options.runs, copies=options.copies, delay_us=options.delay_us)
    )
    made = []
    for row in rows:
        made.append(row)
        print(json.dumps(row), flush=True)
    if options.out is not None:
        about = {"machine": describe_machine(cores_used=1), "model": options.model, "repetitions": options.repetitions}
        Path(options.out).write_text(json.dumps({**about, "part": options.part, "rows": made}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
