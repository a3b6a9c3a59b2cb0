"""Numbers of trtexec's files: ms with six digits."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from inferometer.trace.losses import Losses

_NS: Final = 1_000_000
_DIGITS: Final = 6  # that a C++ stream prints
_MOST_NS: Final = 2**63 - 1
_SHOWN: Final = 60


def exact_ns(fields: Mapping[str, Any], name: str, losses: Losses, category: str) -> Decimal | None:
    """A time of 0 or more in ns, as its digits stand in the file; what is none is counted."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_NS / _NS:
        return Decimal(str(value)) * _NS
    losses.count("wrong_type", category=category, example=f"{name}: {str(value)[:_SHOWN]}")
    return None


def half_digit(ns: Decimal) -> float:
    """Half of the last digit that was printed, ns."""
    if not ns:
        return 0.0
    return float(Decimal(1).scaleb(min(ns.adjusted() - _DIGITS + 1, _exponent(ns))) / 2)


def _exponent(ns: Decimal) -> int:
    """The place of the last digit that isn't 0."""
    exponent = ns.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
