"""How far S is from the hardware's limit, as a sign, a colour and a word."""

from inferometer.reports.page.blocks import Band

_LOW, _MIDDLE, _LIMIT = 0.125, 1 / 3, 1.0
_BANDS = (
    (_LOW, Band("◔", "bad", "below 12.5 %")),
    (_MIDDLE, Band("◑", "warning", "12.5 to 33 %")),
    (_LIMIT, Band("●", "good", "33 to 100 %")),
)
ABOVE = Band("⚠", "bad", "above 100 %: sizes, peaks or cache state aren't as assumed")

LEGEND = "◔ below 12.5 %, ◑ 12.5 to 33 %, ● 33 to 100 %, ⚠ above 100 %: something isn't as assumed."


def band_of(sol_fraction: float) -> Band:
    """The band of a value of S; 1 itself is no more than the limit."""
    return next((band for most, band in _BANDS if sol_fraction < most), _BANDS[-1][1] if sol_fraction == 1 else ABOVE)
