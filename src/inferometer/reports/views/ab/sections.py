"""An A/B by call path as tables: whole runs, next tokens, the tree of paths, and where the difference comes from."""

from collections.abc import Iterator
from typing import Any

from inferometer.analyses.ab.comparison import PathComparison
from inferometer.analyses.ab.rows import ArmPath, PathRow, Versus
from inferometer.analyses.ab.statistics import LEVEL, SAME
from inferometer.reports.views.ab.remarks import CLOCKS, format_interval, place_of, trunk_of
from inferometer.reports.views.ab.table import frame_of_paths
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration

_INDENT = "· "  # survives Markdown, which drops spaces
_SHOWN = 12
_LONGEST_TITLE = 14
_GONE, _NEW = "gone", "new"
_CONFIDENCE = f"{1 - LEVEL:.0%}".replace("%", " %")
_PASS_FIELDS = (
    Field("arm", "Arm", "text"),
    Field("phase", "Phase", "text"),
    Field("wall_ns", "Time", "ns", spare=3),
    Field("tokens_per_s", "Tokens/s", "ratio"),
    Field("ratio", "Ratio", "ratio"),
    Field("interval", _CONFIDENCE, "text", spare=1),
    Field("verdict", "Verdict", "text"),
    Field("overhead", "Scopes cost", "share", spare=2),
    Field("overhead_interval", _CONFIDENCE, "text", spare=4),
)
_AGREEMENT_FIELDS = (
    Field("arm", "Arm", "text"),
    Field("equal", "Equal tokens", "count"),
    Field("tokens", "Of", "count"),
    Field("share", "Share", "share", spare=1),
    Field("not_finite", "Not finite", "count"),
    Field("mean_kl", "Mean KL (nats)", "text"),
    Field("max_kl", "Max KL", "text", spare=2),
    Field("max_logit_error", "Max logit error", "text", spare=3),
    Field("verdict", "Verdict", "text"),
)
_DIFFERENCE_FIELDS = (
    Field("difference_ns", "Difference", "ns"),
    Field("interval", _CONFIDENCE, "text", spare=2),
    Field("share", "Of all", "share", spare=1),
    Field("base_ns", "Base", "ns", spare=4),
    Field("candidate_ns", "Candidate", "ns", spare=4),
    Field("place", "Path", "text"),
)


def ab_sections(found: PathComparison) -> list[Section]:
    """The tables in the order of reading."""
    return [*whole_sections(found), tree_section(found), *difference_sections(found)]


def whole_sections(found: PathComparison) -> list[Section]:
    """What holds for whole runs: their times, and their next tokens where these were compared."""
    return [_passes(found), *([_agreement(found)] if found.measured.agreement.height else [])]


def difference_sections(found: PathComparison) -> list[Section]:
    """A section for each candidate that differs."""
    return [_differences(found, arm) for arm in found.candidates]


def _passes(found: PathComparison) -> Section:
    rows = [
        {
            "arm": each.arm,
            "phase": each.phase,
            "wall_ns": round(each.wall_ns),
            "tokens_per_s": each.tokens_per_s,
            "ratio": each.ratio,
            "interval": format_interval(each.interval),
            "verdict": each.verdict,
            "overhead": None if each.overhead is None else each.overhead - 1,
            "overhead_interval": format_interval(each.overhead_interval, shares=True),
        }
        for each in found.passes
    ]
    notes = []
    if rows:
        notes = [f"Ratio: time over that of {found.arms[0]}; above 1 is slower. Time, tokens/s: medians."]
    return Section("Whole runs, without scopes", _PASS_FIELDS, frame_of_paths(rows, _PASS_FIELDS), notes)


def _agreement(found: PathComparison) -> Section:
    rows = [
        {
            "arm": arm,
            "share": each["equal"] / each["tokens"] if each["tokens"] else None,
            **each,
            **{name: _number(each[name]) for name in ("mean_kl", "max_kl", "max_logit_error")},
            "verdict": "WRONG" if each["not_finite"] else None,
        }
        for arm in found.candidates
        if (each := found.agreement(arm)) is not None
    ]
    title = f"Next tokens and probabilities against {found.arms[0]}"
    return Section(title, _AGREEMENT_FIELDS, frame_of_paths(rows, _AGREEMENT_FIELDS))


def _number(value: float | None) -> str:
    """As a ratio is written; what was compared and is no number is said to be none."""
    return "no number" if value is None else f"{value:.4g}"


def tree_section(found: PathComparison) -> Section:
    """A row per path."""
    base, several = found.arms[0] if found.arms else "", len(found.candidates) > 1
    fields = [Field("time_0", _title(base), "ns", spare=1)] if base else []
    for a, arm in enumerate(found.candidates, 1):
        fields += [
            Field(f"time_{a}", _title(arm), "ns", spare=2 if several else 0),
            Field(f"ratio_{a}", "Ratio", "ratio"),
            Field(f"interval_{a}", _CONFIDENCE, "text", spare=3),
            Field(f"verdict_{a}", "Verdict", "text"),
            Field(f"error_{a}", "Error", "ratio", spare=5),
            Field(f"backend_{a}", "Ran", "name", spare=4),
        ]
    fields += [
        Field("share", "Share", "share", spare=6),
        Field("calls", "Calls", "text", spare=7),
        Field("layers", "Layers", "text", spare=8),
        Field("place", "Path", "name"),
    ]
    rows = [_tree_row(found, row) for row in found.rows]
    return Section("Call paths, a repetition", fields, frame_of_paths(rows, fields), [*_tree_notes(found)])


def _tree_notes(found: PathComparison) -> Iterator[str]:
    if not found.rows:
        return
    yield (
        f"Times: {CLOCKS[found.clock]}, mean of {found.repetitions} repetitions, with all that is called, without "
        "interruptions; own times add up to the root."
    )
    yield (
        f"Ratio: geometric mean over pairs of repetitions, above 1 is slower; its interval is at {_CONFIDENCE} for "
        f"this path alone. faster, slower: beyond chance for all paths together, of such verdicts at most "
        f"{found.level * 100:.3g} % are chance; same: the interval is within {SAME * 100:g} % of 1."
    )
    if any(each.verdict == "carried over" for row in found.rows for each in row.versus.values()):
        is_controlled = any(map(found.control_pairs, found.candidates))
        kernels = ", or kernels that differ less in the same surroundings" if is_controlled else ""
        yield (
            f"carried over: both arms run the same code there{kernels}, and it takes another time: what other paths "
            "leave behind (caches, the clock, threads that fell asleep)."
        )
    if any(each.absent for row in found.rows for each in row.versus.values()):
        yield f"{_GONE}: not called by the candidate. {_NEW}: not called by {found.arms[0]}. Neither has a ratio."
    if any(row.versus[arm].error.normalised_error is not None for row in found.rows for arm in row.versus):
        yield "Error: norm of the difference over that of the base's answer on the same inputs; the worst call below."
    if any(each.layers for row in found.rows for each in row.arms.values()):
        yield "Layers are added up; the shortest and the longest are listed, too. Each its own: --layers apart."
    some = [
        row.path
        for row in found.rows
        for each in row.versus.values()
        if each.verdict and each.pairs < found.repetitions
    ]
    if some:
        yield f"Not called in every repetition: {', '.join(dict.fromkeys(some))}."


def _tree_row(found: PathComparison, row: PathRow) -> dict[str, Any]:
    base = row.arms.get(found.arms[0])
    first = base or next(iter(row.arms.values()))
    cells: dict[str, Any] = {
        "time_0": None if base is None else base.steady_ns,
        "share": first.share,
        "calls": _calls(row),
        "layers": _layers(first),
        "place": _INDENT * row.depth + row.name,
    }
    for a, arm in enumerate(found.candidates, 1):
        own, versus = row.arms.get(arm), row.versus[arm]
        cells |= {
            f"time_{a}": None if own is None else own.steady_ns,
            f"ratio_{a}": versus.ratio,
            f"interval_{a}": format_interval(versus.interval),
            f"verdict_{a}": _verdict(row, versus, arm),
            f"error_{a}": versus.error.normalised_error,
            f"backend_{a}": _ran(own, arm),
        }
    return cells


def _verdict(row: PathRow, versus: Versus, candidate: str) -> str | None:
    """Nothing of speed where this path's own answers are wrong, or at the root any; of one arm's own path, whose."""
    if versus.absent is not None:
        return _NEW if candidate in row.arms else _GONE
    is_wrong = (row.operator is not None or row.parent is None) and versus.error.failure is not None
    return "WRONG" if is_wrong else versus.verdict


def _ran(arm: ArmPath | None, name: str) -> str | None:
    """Without the arm's own name where that says who refused: `torch (head size 80)`."""
    return None if arm is None or arm.backend is None else arm.backend.replace(f"({name}: ", "(")


def _calls(row: PathRow) -> str:
    """One number where all arms that call it call it as often."""
    return " / ".join(dict.fromkeys(f"{each.calls:,.6g}" for each in row.arms.values()))


def _layers(arm: ArmPath) -> str | None:
    if arm.layers is None:
        return None
    low, high = (format_duration(ns) for ns in (arm.layers.min_ns, arm.layers.max_ns))
    return f"{arm.layers.count}: {low} ({arm.layers.min_layer}) to {high} ({arm.layers.max_layer})"


def _differences(found: PathComparison, arm: str) -> Section:
    those, trunk = found.differences[arm], trunk_of(found.rows)
    rows = [
        {
            "difference_ns": each.difference_ns,
            "interval": None if each.interval_ns is None else " to ".join(map(format_duration, each.interval_ns)),
            "share": each.share,
            "base_ns": each.base_ns,
            "candidate_ns": each.candidate_ns,
            "place": place_of(each, trunk),
        }
        for each in those[:_SHOWN]
    ]
    notes = []
    if rows:
        notes = [
            f"Own time a repetition, without what is called: {arm} less {found.arms[0]}, where that is beyond chance.",
            "What one arm alone calls counts with its caller.",
        ]
    if found.carried_ns[arm] and not found.disturbed:
        others = " and others that are carried over" if found.control_pairs(arm) else ""
        notes.append(f"In paths of the same code{others}, all together: {format_duration(found.carried_ns[arm])}.")
    if len(those) > _SHOWN:
        notes.insert(0, f"{len(those) - _SHOWN:,} more paths differ; --json has them all.")
    title = f"Where {arm} differs from {found.arms[0]}, the largest first"
    return Section(title, _DIFFERENCE_FIELDS, frame_of_paths(rows, _DIFFERENCE_FIELDS), notes)


def _title(arm: str) -> str:
    """An arm's name over a column; a long one is cut, the facts have it whole."""
    return arm if len(arm) <= _LONGEST_TITLE else f"{arm[: _LONGEST_TITLE - 1]}…"
