"""One colour per family of kernels, in the bar, the charts and the time line, and in both runs of a page of two.

The families with the most time have the colours that tell most apart; the others share one.
"""

from collections.abc import Iterable
from typing import Final

STRONG: Final = ("--series-1", "--series-4", "--series-5", "--series-6", "--series-7")
COMMUNICATION: Final = "--series-2"
COPIES: Final = "--series-3"
REST: Final = "--series-8"
COLLECTIVE: Final = "collective"
"""The family of kernels that communicate."""


def family_shades(families: Iterable[str]) -> dict[str, str]:
    """The name of a CSS variable for each, the first families in the strong colours.

    Args:
        families: The most important first; of one that comes again, the first place counts.
    """
    others = [family for family in dict.fromkeys(families) if family != COLLECTIVE]
    shades = {family: STRONG[i] if i < len(STRONG) else REST for i, family in enumerate(others)}
    return shades | {COLLECTIVE: COMMUNICATION}
