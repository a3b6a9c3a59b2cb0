"""GPU memory beyond the weights that it was loaded with.

Fires when the GPU memory printed at the end of loading is 5 % above the model's weights or more (2 bytes per element):
`low`; from 30 % `medium`. Needs the model's dimensions. Pools round buffers up; where the weights' buffers, rounded
by one of the usual rules, add up to exactly the digits printed, that rule is named, else no cause is.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from inferometer.findings.evidence.weights import weight_sizes
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_bytes, format_share

_SCALE = Scale("pool_overhead", low=0.05, medium=0.30)
_MIB = 1 << 20
_HALF_DIGIT = 0.005  # GiB: engines print two decimals


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def _steps_above(limit: int, step: int) -> Callable[[int], int]:
    def rounded(size: int) -> int:
        return _power_of_two(size) if size < limit else math.ceil(size / step) * step

    return rounded


_ROUNDINGS: Mapping[str, Callable[[int], int]] = {
    "the next power of two below 32 MiB and the next 16 MiB above": _steps_above(32 * _MIB, 16 * _MIB),
    "the next power of two": _power_of_two,
}


def _find(evidence: Evidence) -> Iterator[Finding]:
    loaded = [entry for entry in evidence.metrics.get("memory", ()) if entry.get("gpu_bytes")]
    if evidence.model is None or not loaded:
        return
    complete = [entry for entry in loaded if entry.get("when") == "complete"] or loaded
    printed = complete[0]["gpu_bytes"]
    sizes = weight_sizes(evidence.model)
    weights = sum(sizes)
    over = printed / weights - 1
    severity = _SCALE.severity(over)
    if severity is None:
        return
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"the GPU holds {format_share(over)} more memory than the weights need",
        evidence=(
            (
                f"{format_bytes(printed, binary=True)} printed after loading; the weights of {evidence.model.name} are "
                f"{format_bytes(weights, binary=True)} at 2 bytes an element."
            ),
            *_explained(sizes, printed),
        ),
        next="Give large weights buffers of their own size; a pool pays for buffers that come and go.",
    )


def _explained(sizes: Sequence[int], printed: int) -> Iterator[str]:
    """The roundings whose sum is printed, digit for digit; several may be."""
    for words, rounded in _ROUNDINGS.items():
        total = sum(map(rounded, sizes))
        if abs(total - printed) <= _HALF_DIGIT * 1024 * _MIB:
            yield (
                f"Each weight rounded up to {words}: together {format_bytes(total, binary=True)}, the digits printed."
            )


RULE = Rule("pool_overhead", _find, (_SCALE,))
