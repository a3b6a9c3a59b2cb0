"""Values of decoded JSON, or of a pickle of plain values, as columns hold them; None for what is of another type."""

from typing import Any


def whole_number(value: Any) -> int | None:
    """A whole number that fits 64 bits; not a boolean, nor a decimal without a fraction."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def some_text(value: Any) -> str | None:
    """A text that isn't empty."""
    return value if isinstance(value, str) and value else None
