"""Units as ncu prints them, scaled by column or value; here base units.

Prefixes are powers of 1000 (`Mbyte` is 10^6). Times become ns, rates are per second, other units stay as they are.
"""

import re
from decimal import Decimal
from math import isfinite
from typing import Final

import msgspec

_PREFIXES: Final = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_SCALED = re.compile(r"([KMGTP])(byte|hz|bit)")
_TIMES_NS: Final = {
    **dict.fromkeys(("ns", "nsecond"), Decimal(1)),
    **dict.fromkeys(("us", "usecond"), Decimal(10**3)),
    **dict.fromkeys(("ms", "msecond"), Decimal(10**6)),
    **dict.fromkeys(("s", "second"), Decimal(10**9)),
}


class Unit(msgspec.Struct, frozen=True):
    """A base unit, and how many of them a printed one is; `text` is empty where there is none."""

    text: str
    scale: Decimal = Decimal(1)


def read_unit(text: str) -> Unit:
    """The base unit of a printed one: `Gbyte/s` is 10^9 of `byte/s`, `us` is 1000 of `ns`."""
    upper, slash, lower = text.partition("/")
    if not slash:
        if upper in _TIMES_NS:
            return Unit("ns", _TIMES_NS[upper])
        return _plain(upper)
    above = _plain(upper)
    if lower not in _TIMES_NS:
        below = _plain(lower)
        return Unit(f"{above.text}/{below.text}", above.scale / below.scale)
    name = "hz" if above.text == "cycle" else f"{above.text}/s"  # older versions: cycle/nsecond
    return Unit(name, above.scale * 10**9 / _TIMES_NS[lower])


def in_base(number: Decimal, unit: Unit) -> float | None:
    """The value in the base unit; None of what isn't finite."""
    if not number.is_finite():
        return None
    value = float(number * unit.scale)
    return value if isfinite(value) else None


def half_digit(number: Decimal, unit: Unit) -> Decimal:
    """Half of the last printed digit, in the base unit."""
    exponent = number.as_tuple().exponent
    return unit.scale * Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2


def _plain(text: str) -> Unit:
    match = _SCALED.fullmatch(text.replace("Hz", "hz"))
    return Unit(match[2], Decimal(_PREFIXES[match[1]])) if match else Unit(text.replace("Hz", "hz"))
