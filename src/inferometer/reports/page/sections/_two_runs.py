"""What the sections about two runs share: who is who in a chart, and why one of them may be empty."""

from typing import Any

from inferometer.reports.page.drawing import color

NOT_COMPARABLE = "Two runs that may be compared: of these only the times by kernel family are set side by side."

_SYMBOLS = ("circle", "diamond")  # so that the runs differ by more than their colour


def marker(side: int, size: int = 7) -> dict[str, Any]:
    """Points of the base (0) or the candidate (1)."""
    return {"color": color(side), "symbol": _SYMBOLS[side], "size": size}


def line(side: int, **more: Any) -> dict[str, Any]:
    """A line of the base (0) or the candidate (1)."""
    return {"color": color(side), "width": 2, **more}
