"""Long columns batch by batch, where each batch's outcome is small or a part of the whole's."""

AT_ONCE = 2**17
"""Rows, few enough that what is made of them stays in the processor's memory, and is used again for the next."""


def batches(rows: int) -> list[slice]:
    """The batches of so many rows, in order."""
    return [slice(start, min(rows, start + AT_ONCE)) for start in range(0, rows, AT_ONCE)]
