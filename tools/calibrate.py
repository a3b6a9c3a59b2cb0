"""Measure what plain PyTorch gets wrong on every shape that this machine can do: bench/calibration.json.

python tools/calibrate.py                      tiny shapes, and published ones that a CPU does in seconds
python tools/calibrate.py --on cuda            every shape
python tools/calibrate.py rms_norm mrope ...   of these operators; the others stay as they are
"""

import argparse
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import torch

from inferometer.backends import require_backend
from inferometer.bench.calibration import Calibration, OperatorErrors, read_calibration
from inferometer.bench.comparison import tolerance_of
from inferometer.bench.deviation import measure_deviation
from inferometer.operators import operators, require_operator
from inferometer.operators.operator import Operator

FILE = Path(__file__).parents[1] / "src" / "inferometer" / "bench" / "calibration.json"
MOST_FLOPS, MOST_BYTES = 2e10, 3e8  # of a published shape on a CPU
MOST_S = 4.0  # of a shape on a CPU: larger ones of its operator are left out
SEEDS_TINY, SEEDS = 12, 3
DIGITS = 4


def main() -> int:
    """The exit code."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="*")
    asked.add_argument("--on", default="cpu")
    names, on = (given := asked.parse_args()).names, given.on
    found = dict(read_calibration().operators) if names else {}
    for name in names or operators():
        found[name] = _measure(require_operator(name), on)
        _write(found, on)
    return 0


def _write(found: Mapping[str, OperatorErrors], on: str) -> None:
    device = platform.machine() if on == "cpu" else torch.cuda.get_device_name(on)
    calibration = Calibration(
        source="tools/calibrate.py: plain PyTorch of backends/torch/kernels against the references",
        device=f"{on}, {device}",
        torch=str(torch.__version__),
        date=datetime.now(UTC).date().isoformat(),
        seeds_tiny=SEEDS_TINY,
        seeds=SEEDS,
        operators=dict(sorted(found.items())),
    )
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")


def _measure(operator: Operator, on: str) -> OperatorErrors:
    print(operator.name, file=sys.stderr)
    tiny = {place: _errors(operator, args, on, SEEDS_TINY) for place, args in enumerate(operator.tiny)}
    published: dict[int, dict[str, float]] = {}
    for index, args in _shapes(operator, on):
        began = time.perf_counter()
        published[index] = _errors(operator, args, on, SEEDS)
        if on == "cpu" and time.perf_counter() - began > MOST_S:
            break
    return OperatorErrors(tiny=_said(tiny), published=_said(published))


def _said(errors: Mapping[int, dict[str, float]]) -> dict[int, dict[str, float]]:
    """Without shapes where all outputs must be exact."""
    return {place: found for place, found in errors.items() if found}


def _shapes(operator: Operator, on: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The least work first."""
    works = [(shape, operator.work(**shape.args)) for shape in operator.catalogue().shapes]
    sized = [(work.vector_flops + sum(each.flops for each in work.products), shape, work) for shape, work in works]
    for flops, shape, work in sorted(sized, key=lambda each: (each[0], each[2].moved_bytes)):
        if on != "cpu" or (flops < MOST_FLOPS and work.moved_bytes < MOST_BYTES):
            yield shape.index, shape.args


def _errors(operator: Operator, args: Mapping[str, Any], on: str, seeds: int) -> dict[str, float]:
    """The greatest of all seeds, by output that needn't be exact."""
    kernel = require_backend("torch").load(operator.name)
    greatest: dict[str, float] = {}
    for seed in range(seeds):
        tensors = operator.inputs(**args, seed=seed, device=on)
        wanted = operator.answer(tensors, args)
        copies = [tensor.clone() for tensor in tensors.values()]
        given = kernel(*copies, **operator.settings_of(args))
        values = given if isinstance(given, tuple | list) else (given,)
        for (output, right), value in zip(wanted.items(), values, strict=True):
            if tolerance_of(operator, output, right) and output not in operator.quantised:
                error = float(f"{measure_deviation(value, right).whole:.{DIGITS}g}")
                greatest[output] = max(error, greatest.get(output, 0.0))
    return greatest


if __name__ == "__main__":
    sys.exit(main())
