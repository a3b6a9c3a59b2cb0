"""The published regimes of operators: their words and colours."""

from collections.abc import Mapping

from inferometer.analyses.operators.published import Regime
from inferometer.reports.page.drawing import color

REGIMES: Mapping[Regime, str] = {"C": "C: compute", "M": "M: memory", "I": "I: indexing"}
COLORS: Mapping[Regime, str] = {regime: color(position) for position, regime in enumerate(REGIMES)}
