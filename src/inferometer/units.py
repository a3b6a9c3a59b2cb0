"""Numbers with units, both ways: what people and tools write to exact integers, and integers to what people read.

Times are whole nanoseconds, sizes are whole bytes; 1 GB is 10^9 and 1 GiB is 2^30. Text is read through `Decimal`,
never through a float. What is printed has three decimals, as Nsight Systems prints it: `1.266 s`, `84.724 μs`,
`960 ns`; None prints as `MISSING`. Rates aren't here: add "/s" to a printed size.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from inferometer.errors import InputError

MISSING = "-"

_MICRO_SIGN, _MU = "\u00b5", "\u03bc"  # look alike; people and tools write either, Nsight prints the second
_NS_PER = {
    "ns": 1,
    "us": 10**3,
    f"{_MU}s": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
_BYTES_PER = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
}
_PRINTED_TIMES = ("ns", f"{_MU}s", "ms", "s")
_PRINTED_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_PRINTED_BINARY_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

_QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+|(?=\.[0-9]))(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)"
    r"\s*(?P<unit>[A-Za-z\u00b5\u03bc]*)\s*"
)
_LONGEST = 80  # characters; more isn't a number that somebody meant, and arithmetic on it would be slow
_INT64_MAX = 2**63 - 1
_EXACT = Context(prec=2 * _LONGEST)


def parse_duration(text: str, *, default_unit: str | None = None) -> int:
    """Nanoseconds meant by a text such as `1.266 s`, `84.724μs`, `1,266,000 ns`, `2 min` or `-3e2 us`.

    A part of a nanosecond rounds to the nearest one, ties to even.

    Args:
        text: A number, then ns, us, μs (either mu), ms, s, min or h, with or without a space. Commas may part
            thousands.
        default_unit: The unit of a plain number, one of those above. None: a plain number is refused.

    Raises:
        InputError: The text is no such thing, or doesn't fit in 64 bits.
    """
    return _parse(text, _NS_PER, default_unit, "a duration such as 1.266 s, 84.724 us or 960 ns")


def parse_exact_duration(text: str, *, default_unit: str | None = None) -> tuple[Decimal, Decimal]:
    """The duration as it is written, ns, and what one step of its last digit is worth, ns.

    `1.266 s` is 1,266,000,000 ns in steps of 1,000,000 ns: what was printed is within half a step. Arguments and
    errors as in `parse_duration`, which rounds the first of the two.
    """
    return _parse_exact(text, _NS_PER, default_unit, "a duration such as 1.266 s, 84.724 us or 960 ns")


def parse_bytes(text: str, *, default_unit: str | None = "B") -> int:
    """Bytes meant by a text such as `1.5 GB` (10^9 each), `4 KiB` (2^10 each), `12,288 B` or `512`.

    A part of a byte rounds to the nearest one, ties to even.

    Args:
        text: A number, then B, kB, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB or PiB, with or without a space.
        default_unit: The unit of a plain number. None: a plain number is refused.

    Raises:
        InputError: The text is no such thing, or doesn't fit in 64 bits.
    """
    return _parse(text, _BYTES_PER, default_unit, "a size such as 1.5 GB, 4 KiB or 512 B")


def format_duration(ns: float | None) -> str:
    """Nsight's form of a time in ns: `960 ns`, `84.724 μs`, `6.596 ms`, `1.266 s`; seconds are the largest unit."""
    return _format(ns, _PRINTED_TIMES, 1000)


def format_signed_duration(ns: float) -> str:
    """A difference of times: `+1.266 s`, `-84.724 μs`, `0 ns`."""
    return f"+{format_duration(ns)}" if ns > 0 else format_duration(ns)


def format_bytes(size_bytes: float | None, *, binary: bool = False) -> str:
    """A size with three decimals: `512 B`, `1.500 GB`; with `binary` in powers of 1024, `1.397 GiB`."""
    return _format(size_bytes, _PRINTED_BINARY_SIZES, 1024) if binary else _format(size_bytes, _PRINTED_SIZES, 1000)


def format_count(count: int | None) -> str:
    """A whole number with its thousands parted: `12,345`."""
    return MISSING if count is None else f"{count:,}"


def format_counted(count: int, what: str) -> str:
    """What is counted, by its name in the singular: `1 call`, `12,345 calls`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def format_rows(count: int, table: str) -> str:
    """Rows of a table, by its name, which is a plural: `1 launch`, `12,345 memory_events`."""
    ending = "es" if table.endswith("ches") else "s"
    return f"{count:,} {table.removesuffix(ending) if count == 1 else table}"


def format_share(share: float | None) -> str:
    """A share of 1 as a percentage with one decimal: 0.57 is `57.0 %`. Shares outside 0..1 aren't clipped."""
    return MISSING if share is None else f"{share * 100:.1f} %"


def format_list(texts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def format_ranges(numbers: Iterable[int]) -> str:
    """`27-29, 39`: whole numbers in order, those that follow each other joined."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def format_sample(value: float) -> str:
    """A sample of any metric: four digits, or whole with its thousands parted: `0.04374`, `3,500`."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def _parse(text: str, scales: Mapping[str, int], default_unit: str | None, wanted: str) -> int:
    return round(_parse_exact(text, scales, default_unit, wanted)[0])


def _parse_exact(
    text: str, scales: Mapping[str, int], default_unit: str | None, wanted: str
) -> tuple[Decimal, Decimal]:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    unit = (match["unit"] or default_unit or "").replace(_MICRO_SIGN, _MU) if match else ""
    if match is None or unit not in scales:
        raise InputError(f"expected {wanted}, found {_shortened(text)}", hint=f"Units: {', '.join(scales)}.")
    number, scale = Decimal(match["number"].replace(",", "")), Decimal(scales[unit])
    value = _EXACT.multiply(number, scale)
    if abs(value) > _INT64_MAX:
        raise InputError(f"expected {wanted}, found {_shortened(text)}, which is beyond 64 bits")
    return value, scale.scaleb(int(number.as_tuple().exponent), _EXACT)


def _shortened(text: str) -> str:
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}" and {len(text) - _LONGEST:,} characters more'


def _format(value: float | None, units: tuple[str, ...], factor: int) -> str:
    if value is None:
        return MISSING
    whole = round(value)
    if abs(whole) < factor:
        return f"{whole} {units[0]}"
    limit, power = factor * 1000, 1  # a unit is too small from here on: 999.9996 μs would print as 1000.000 μs
    while (thousandths := round(Fraction(abs(whole) * 1000, factor**power))) >= limit and power < len(units) - 1:
        power += 1
    sign = "-" if whole < 0 else ""
    return f"{sign}{thousandths // 1000:,}.{thousandths % 1000:03} {units[power]}"
