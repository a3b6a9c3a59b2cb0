"""Times as integer nanoseconds from the text of JSON numbers in microseconds, without NumPy; exact, as in `numbers`."""

from collections.abc import Sequence
from decimal import MAX_PREC, Context, Decimal, InvalidOperation

OK, UNREADABLE, OUT_OF_RANGE = 0, 1, 2
PLAIN = b"0123456789.\n"
_MOST = 2**62  # leaves room to add a duration
_EXACT = Context(prec=MAX_PREC)


def parse_list(texts: Sequence[bytes]) -> list[int] | None:
    """Nanoseconds of JSON numbers in µs; None when one of them is missing, no number or out of range.

    Args:
        texts: JSON text of each number (bytes or anything with the buffer protocol).
    """
    joined = b"\n".join(texts)
    lines = joined.split(b"\n")
    if len(lines) != len(texts) or joined.translate(None, PLAIN):
        return _parse_each(texts)
    if {line[-4:-3] for line in lines} != {b"."} or joined.count(b".") != len(lines):
        return _parse_each(texts)
    try:
        values = list(map(int, joined.replace(b".", b"").split(b"\n")))
    except ValueError:  # thousands of digits
        return None
    return values if max(values) <= _MOST else None


def _parse_each(texts: Sequence[bytes]) -> list[int] | None:
    values = []
    for text in texts:
        value, state = _parse(bytes(text))
        if state != OK:
            return None
        values.append(value)
    return values


def _parse(text: bytes) -> tuple[int, int]:
    """As `parse_one`, and quicker for whole numbers and up to three decimals."""
    whole, _, decimals = text.partition(b".")
    if whole.isdigit() and len(whole) <= 15 and len(decimals) <= 3 and (decimals.isdigit() or not decimals):
        return int(whole + decimals.ljust(3, b"0")), OK
    return parse_one(text)


def parse_one(text: bytes) -> tuple[int, int]:
    """Nanoseconds of one JSON number in µs, and whether it is `OK`, `UNREADABLE` or `OUT_OF_RANGE` (then 0).

    Digits below a nanosecond are rounded half to even.
    """
    try:
        number = Decimal(text.decode("ascii").strip(' \t\r\n"'))
    except (InvalidOperation, UnicodeDecodeError):
        return 0, UNREADABLE
    if not number.is_finite() or b"_" in text:  # Decimal takes 1_000 for a number
        return 0, UNREADABLE
    if number and number.adjusted() > 20:  # before scaling: a hostile exponent must not become a huge integer
        return 0, OUT_OF_RANGE
    if number.adjusted() < -20:
        return 0, OK
    ns = round(number.scaleb(3, _EXACT))
    return (ns, OK) if -_MOST <= ns <= _MOST else (0, OUT_OF_RANGE)
