"""The published comparison as Markdown: sections, headings, tables and numbers of the published report, in other words.

Source: the report that LatencyPrism's artifact of January 2026 writes. Numbers are rounded as there: scores to 4
decimals, probabilities to 3, the rest to 2. Its tables are laid out as pandas and tabulate do it: numbers on their
decimal point, a column of times with a gap in it unrounded. There is no section 4. Names stand as they are in the file,
as there; only `|` gets a backslash and control characters print as spaces.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.analyses.latencyprism.comparison import Published
from inferometer.analyses.latencyprism.processes import SUSPICIOUS, Finding, ProcessComparison
from inferometer.errors import clean

_MISSING = "-"
_GAP = 2  # a title has at least so much room more than it needs
_SIGNIFICANT = 0.05
_DECIMALS = {"score": 4, "beta_p": 3, "beta_u_p": 3, "mu_p": 3, "mu_u_p": 3}
_TEXTS = ("function", "metric", "device")
_GROUPED = ("mu_base", "mu_candidate")
_NOTE = "*Note: where calls of a function overlap in a cycle their times add up, so that a β above 100% is no mistake.*"
_ADVICE = (
    "**Recommendation:** Begin with the function of the highest **Suspicion Score** above, and hold the change of its "
    "share (β) against that of the metrics next to it (μ)."
)
_ORDER = "One row for each function, metric and device of either run, highest **Suspicion Score** first."
_LEGEND = """\
- **β (Beta)**: Share of the cycle that the function takes.
- **μ (Mu)**: Mean of the metric while the function ran.
- **Device**: Where the function ran, and the metric was taken.
- **Z-Score(β/log_μ)**: The change in standard deviations of the first run; 0 where that run does not vary.
- **p-value/U-test p**: How probable such a difference is by chance, after Welch and after Mann and Whitney; < 0.05 is \
called significant. Not corrected for the number of rows.
- **Suspicion Score**: `|Δβ| * (|Z-Score(β)| + |Z-Score(log_μ)|)`. Higher is more suspicious; **no value separates \
faults from chance**."""


def render_published(result: Published) -> str:
    """One report a pair of processes, one below the other."""
    return "\n".join(_report(result.names.scenario, comparison) for comparison in result.comparisons)


@dataclass(frozen=True)
class _Column:
    """A column of a table: its title, and cells that are text already. Numbers stand on their decimal point."""

    title: str
    cells: Sequence[str]
    is_number: bool = False


def _report(scenario: str, comparison: ProcessComparison) -> str:
    kind = comparison.pairing.capitalize()
    where = f": {clean(scenario)}" if scenario else ""
    blocks = [
        f"# {kind} Performance Comparison{where} ({comparison.base_title} vs {comparison.candidate_title})",
        "## 1. High-Level Performance Summary",
        _summary(comparison),
        "## 2. Cycle Duration Distribution Comparison",
        _ranks(comparison),
        "## 3. In-depth Core Metric Comparison",
        "### Overview",
        _overview(comparison),
        "### Key Findings:\n" + _key_findings(comparison.findings),
        _NOTE,
        f"{_ADVICE}\n### Detailed comparison table\n{_ORDER}",
        _details(comparison),
        "## 5. Legend\n" + _LEGEND,
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(comparison: ProcessComparison) -> str:
    one, two = comparison.base, comparison.candidate
    n1, n2 = comparison.cycles
    us1, us2 = comparison.mean_us
    change = [_MISSING, _MISSING] if us1 is None or us2 is None else [f"{us2 - us1:,.2f}", _percent(us1, us2)]
    return _table(
        [
            _Column("Metric", ["Total Cycles", "Avg Cycle Time (us)"]),
            _Column(one, [str(n1), _grouped(us1)]),
            _Column(two, [str(n2), _grouped(us2)]),
            _Column(f"Δ ({two} - {one})", [str(n2 - n1), change[0]]),
            _Column("Change (%)", [_MISSING, change[1]]),
        ]
    )


def _ranks(comparison: ProcessComparison) -> str:
    ranks = comparison.ranks
    pairs = list(zip(ranks["base_us"], ranks["candidate_us"], strict=True))
    whole = [(a, b) if a is not None and b is not None else None for a, b in pairs]
    return _table(
        [
            _Column("Time Rank", [str(rank) for rank in ranks["rank"]], is_number=True),
            _times(f"{comparison.base} Time (us)", ranks["base_us"].to_list()),
            _times(f"{comparison.candidate} Time (us)", ranks["candidate_us"].to_list()),
            _Column("Δ (us)", [_MISSING if pair is None else f"{pair[1] - pair[0]:,.2f}" for pair in whole]),
            _Column("Δ (%)", [_MISSING if pair is None else _percent(*pair) for pair in whole]),
        ]
    )


def _times(title: str, times: Sequence[float | None]) -> _Column:
    """As published: rounded where every rank has one, else as they are."""
    if None in times:
        return _Column(title, [_MISSING if time is None else str(time) for time in times])
    return _Column(title, [_grouped(time) for time in times], is_number=True)


def _overview(comparison: ProcessComparison) -> str:
    one, two = f"`{comparison.base}`", f"`{comparison.candidate}`"
    if not comparison.findings:
        return f"No row of the comparison of {one} with {two} has a Suspicion Score above {SUSPICIOUS:g}."
    first = comparison.findings[0]
    return (
        f"Between {one} and {two}, **`{_name(first.function)}`** stands out most: its share of the cycle "
        f"{_direction(first.beta_base, first.beta_candidate)}."
    )


def _key_findings(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings:
        a, b, p = finding.beta_base, finding.beta_candidate, finding.p
        verdict = "significant" if p is not None and p < _SIGNIFICANT else "not significant"
        share = f"**{_direction(a, b)}** from **{a:.2f}%** to **{b:.2f}%** ({b - a:+.2f} ppt)"
        test = f"{verdict} by Welch's test (p-value: {math.nan if p is None else p:.3f})"
        lines.append(f"- **`{_name(finding.function)}` on device `{_name(finding.device)}`:**")
        lines.append(f"  - Share of the cycle (β) {share}, {test}.")
        if finding.metrics:
            lines.append("  - Metrics (μ) that moved with it:")
        lines += [
            f"    - **`{_name(moved.metric)}`**: {_direction(moved.base, moved.candidate)} from {moved.base:.2f} to "
            f"{moved.candidate:.2f}."
            for moved in finding.metrics
        ]
    return "\n".join(lines or ["- None."])


def _details(comparison: ProcessComparison) -> str:
    columns = []
    for name, title in comparison.columns.items():
        values = comparison.table[name].to_list()
        if name in _TEXTS:
            columns.append(_Column(title, [_name(value) for value in values]))
        elif name in _GROUPED:
            columns.append(_Column(title, [_grouped(value) for value in values]))
        else:
            columns.append(
                _Column(title, [_rounded(value, _DECIMALS.get(name, 2)) for value in values], is_number=True)
            )
    return _table(columns)


def _direction(base: float, candidate: float) -> str:
    return "increased" if candidate > base else "decreased" if candidate < base else "did not change"


def _percent(base: float, candidate: float) -> str:
    return f"{(candidate - base) / base * 100:.2f}%" if base else _MISSING


def _grouped(value: float | None) -> str:
    return _MISSING if value is None else f"{value:,.2f}"


def _rounded(value: float | None, decimals: int) -> str:
    return "nan" if value is None else f"{round(value, decimals):g}"


def _name(text: str) -> str:
    return clean(text).replace("|", "\\|")


def _table(columns: Sequence[_Column]) -> str:
    laid = [_laid_out(column) for column in columns]
    return "\n".join("|" + "|".join(cells) + "|" for cells in zip(*laid, strict=True))


def _laid_out(column: _Column) -> Sequence[str]:
    """Title, ruler and cells, all of one width."""
    cells = list(column.cells)
    if column.is_number:
        parts = [_after_point(cell) for cell in cells]
        most = max(parts, default=0)
        cells = [cell + " " * (most - part) for cell, part in zip(cells, parts, strict=True)]
    width = max([len(column.title) + _GAP, *map(len, cells)])
    if column.is_number:
        return [f" {column.title:>{width}} ", "-" * (width + 1) + ":", *(f" {cell:>{width}} " for cell in cells)]
    return [f" {column.title:<{width}} ", ":" + "-" * (width + 1), *(f" {cell:<{width}} " for cell in cells)]


def _after_point(cell: str) -> int:
    """Room that a number takes from its decimal point, or exponent, on."""
    point = cell.find(".")
    start = point if point >= 0 else cell.find("e")
    return len(cell) - start if start >= 0 else 0
