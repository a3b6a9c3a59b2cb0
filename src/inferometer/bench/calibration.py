"""Tolerances by shape: three times what plain PyTorch in the contract's dtypes gets wrong there.

A kernel that rounds where PyTorch's own operations round must pass, whatever the shape. What those get wrong against
the reference was measured with `tools/calibrate.py` and lies in `calibration.json`; shapes that weren't measured have
the tolerances of operator and dtype alone, which are also the least of all others.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from inferometer.operators.operator import Operator

TIMES = 3
"""Kernels that sum in another order than PyTorch are off by another draw of the same error."""

Errors = dict[str, float]
"""Norm of the error over norm of the answer, by output."""


class OperatorErrors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one operator: by the place of tiny shapes, and by the index of published ones."""

    tiny: dict[int, Errors] = {}
    published: dict[int, Errors] = {}


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was measured, where, with how many seeds a tiny and a published shape: the greatest error of them counts."""

    source: str
    device: str
    torch: str
    date: str
    seeds_tiny: int
    seeds: int
    operators: dict[str, OperatorErrors]


@cache
def read_calibration() -> Calibration:
    """What `calibration.json` holds."""
    from importlib.resources import files

    return msgspec.json.decode((files("inferometer.bench") / "calibration.json").read_bytes(), type=Calibration)


def calibrated(operator: Operator, args: Mapping[str, Any]) -> Errors:
    """The least tolerance of each output on the shape with these arguments; empty where it wasn't measured."""
    found = read_calibration().operators.get(operator.name)
    if found is None:
        return {}
    places = [place for place, tiny in enumerate(operator.tiny) if tiny == args]
    indices = [shape.index for shape in operator.catalogue().shapes if shape.args == args]
    errors = found.tiny.get(places[0], {}) if places else found.published.get(indices[0], {}) if indices else {}
    return {output: TIMES * error for output, error in errors.items()}
