"""What the timed passes answered: whether all are numbers, the same each time, and alike in size to the base's.

All repetitions do the same work. So the third call of a path answers in each what it did in the others, but for sums in
another order: a kernel that goes wrong now and then doesn't. The first such call of a completion is where it began;
what follows has it from there. Leaves out answers that are wrong in the same way each time and as large as right
ones: `measurement.ERRORS` has these, from the same inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from inferometer.analyses.ab.measurement import ERRORS, PathMeasurement
from inferometer.analyses.ab.statistics import LEAST

Kind = Literal["not finite", "unsteady", "unlike"]

_LIMITS: Mapping[str, tuple[float, float]] = {"float32": (1e-3, 1e-2)}
_OTHER_LIMITS = (3e-2, 0.1)
"""By dtype, of the sums over the sum of sizes: how far an answer may be from that of other repetitions, and its size
from the base's, after all that was rounded before it. A hundred times what sound kernels do, or more."""

_CHOOSE_EXPERTS = ("moe_route",)
"""Operators of which another right answer leads to other answers after it."""

_KIND = pl.coalesce("abs_sum", "sum")
"""Of rows of `CALLS` and `LOGITS`: it isn't finite where a value of the answer isn't."""

_NOT_FINITE = _KIND.is_not_null() & ~_KIND.is_finite()
_EXACT = 1e-12
_COMPLETION = ("arm", "searched", "repetition")
_CALL = ("path", "nth")
_SAME_WORK = (*_CALL, "operator")  # an arm may fuse what is before an operator into it: then it answers something else
_SUMS = ("sum", "abs_sum")
_KINDS = {1: "an infinite value", 2: "NaN"}


@dataclass(frozen=True)
class AnswerFault:
    """Where an arm's answers of the timed passes are first wrong.

    Attributes:
        kind: What is wrong with them.
        path: The operator's; None where the logits alone were looked at.
        call: Of this path in its completion, from 1; of logits the step.
        completions: How many had such an answer, and how many were looked at.
        failure: In words.
    """

    kind: Kind
    path: str | None
    call: int
    completions: tuple[int, int]
    failure: str

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "path": self.path,
            "call": self.call,
            "completions": self.completions[0],
            "completions_of": self.completions[1],
            "failure": self.failure,
        }


def find_faults(measured: PathMeasurement) -> dict[str, AnswerFault]:
    """By arm the first fault: what isn't finite before what is unsteady before what is unlike the base's.

    An infinite value may be meant where the base has one at the same call, and NaN there is the base's fault.
    """
    if not measured.arms:
        return {}
    base, (steady, alike) = measured.arms[0], _LIMITS.get(str(measured.facts.get("dtype")), _OTHER_LIMITS)
    answers = _answers(measured)
    of_base = _usual(answers.filter(pl.col("arm") == base), _SAME_WORK).drop("times")
    faults = {}
    for arm in measured.arms:
        rows, logits = (each.filter(pl.col("arm") == arm) for each in (answers, measured.logits))
        found = (
            _not_finite(rows)
            or _logits_not_finite(measured, arm)
            or _unsteady(rows, of_base, steady)
            or _unsteady_logits(logits, steady)
            or (None if arm == base else _unlike(rows, of_base, base, alike))
        )
        if found is not None:
            faults[arm] = found
    return faults


def as_errors(faults: Mapping[str, AnswerFault], root: str) -> pl.DataFrame:
    """Rows of `ERRORS`; what is known of logits alone stands at the root."""
    rows = [(arm, each.path or root, 0, None, None, None, each.call, each.failure) for arm, each in faults.items()]
    return pl.DataFrame(rows, schema=ERRORS, orient="row")


def _answers(measured: PathMeasurement) -> pl.DataFrame:
    """Of operators: which call of its path in its completion (`nth`), which of all operators (`at`), is it a number."""
    parts = [
        calls.filter(pl.col("operator").is_not_null()).with_columns(pl.lit(value=searched).alias("searched"))
        for searched, calls in ((False, measured.calls), (True, measured.searched))
    ]
    kind = pl.when(_KIND.is_nan()).then(2).when(_KIND.is_infinite()).then(1).otherwise(0)
    rows = pl.concat(parts).select(
        *(*_COMPLETION, "path", "operator", *_SUMS),
        kind.alias("kind"),
        (pl.int_range(pl.len()).over(*_COMPLETION, "path") + 1).alias("nth"),
        pl.int_range(pl.len()).over(_COMPLETION).alias("at"),
    )
    of_base = pl.col("arm") == measured.arms[0]
    meant = rows.filter(of_base).group_by(_CALL).agg(pl.col("kind").max().alias("meant"))
    is_bad = pl.col("kind") > pl.when(of_base).then(1).otherwise(pl.col("meant").fill_null(0))
    return rows.join(meant, _CALL, "left").with_columns(is_bad.alias("is_bad")).sort(*_COMPLETION, "at")


def _usual(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Medians of what is finite, as `usual_sum` and `usual_abs_sum`, and of how many `times`."""
    finite = rows.filter(_KIND.is_finite())
    return finite.group_by(by).agg(pl.col(_SUMS).median().name.prefix("usual_"), pl.len().alias("times"))


def _not_finite(rows: pl.DataFrame) -> AnswerFault | None:
    return _first(rows, rows.filter("is_bad"), "not finite", lambda row: f"{_KINDS[row['kind']]} in its answer")


def _unsteady(rows: pl.DataFrame, of_base: pl.DataFrame, limit: float) -> AnswerFault | None:
    """Usual is of this arm's answers that which is the nearest to the base's, and where that has none, the median."""
    off = pl.sum_horizontal((pl.col(name) - pl.col(f"usual_{name}")).abs() for name in _SUMS)
    nearest = rows.filter(_KIND.is_finite()).join(of_base, _SAME_WORK).sort(off, "repetition").group_by(_CALL)
    own = nearest.agg(pl.col(_SUMS).first().name.prefix("near_"))
    usual = _usual(rows, _CALL).filter(pl.col("times") >= LEAST).join(own, _CALL, "left")
    usual = usual.with_columns(pl.coalesce(f"near_{name}", f"usual_{name}").alias(f"usual_{name}") for name in _SUMS)
    far = _far(rows.join(usual, _CALL), limit)
    return _first(rows, far, "unsteady", lambda row: f"{_distance(row)} the same call's in other repetitions")


def _unlike(rows: pl.DataFrame, usual: pl.DataFrame, base: str, limit: float) -> AnswerFault | None:
    far = _far(rows.join(usual, _SAME_WORK), limit)
    return _first(rows, far, "unlike", lambda row: f"{_distance(row)} {base}'s in the timed passes")


def _far(rows: pl.DataFrame, limit: float) -> pl.DataFrame:
    """What is further from the usual than `limit`, before other experts were chosen.

    Integers count where all before was exactly as usual: an index depends on the last bit of a tie.
    """
    is_integer = pl.col("abs_sum").is_null()
    is_other = is_integer & (pl.col("sum") != pl.col("usual_sum"))
    away = pl.when(is_integer).then(0.0).otherwise(_away())
    routed = (is_other & pl.col("operator").is_in(_CHOOSE_EXPERTS)).cast(pl.Int32)
    marked = rows.filter(_KIND.is_finite()).sort(*_COMPLETION, "at").with_columns(away.alias("away"))
    marked = marked.with_columns(
        pl.col("away").cum_max().over(_COMPLETION).alias("most"),
        (routed.cum_sum() - routed).over(_COMPLETION).alias("routed"),
    )
    is_far = pl.when(is_integer).then(is_other & (pl.col("most") <= _EXACT)).otherwise(pl.col("away") > limit)
    return marked.filter(is_far, pl.col("routed") == 0)


def _away() -> pl.Expr:
    """Distance as a share of the usual sum of sizes; 0 where that is 0."""
    off = pl.max_horizontal((pl.col(name) - pl.col(f"usual_{name}")).abs() for name in _SUMS)
    return pl.when(pl.col("usual_abs_sum") > 0).then(off / pl.col("usual_abs_sum")).otherwise(0.0)


def _distance(row: Mapping[str, Any]) -> str:
    return f"sums {row['away']:.2g} of their size from" if row["abs_sum"] is not None else "other integers than"


def _logits_not_finite(measured: PathMeasurement, arm: str) -> AnswerFault | None:
    """In the timed passes, or where logits were compared."""
    base, place = measured.arms[0], ["repetition", "scoped", "step"]
    bad = measured.logits.filter(_NOT_FINITE)
    of_base, own = bad.filter(pl.col("arm") == base), bad.filter(pl.col("arm") == arm)
    own = own.filter(_KIND.is_nan()) if arm == base else own.join(of_base, place, "anti")
    if own.height:
        return _of_logits(measured.logits.filter(pl.col("arm") == arm), own, "not finite", "NaN or infinite logits")
    compared = measured.agreement.filter(pl.col("arm") == arm, pl.col("not_finite") > 0)
    for row in compared.iter_rows(named=True):
        words = (
            f"NaN or infinite logits at {row['not_finite']:,} of {row['tokens']:,} positions where they were compared"
        )
        return AnswerFault("not finite", None, 1, (1, 1), words)
    return None


def _unsteady_logits(logits: pl.DataFrame, limit: float) -> AnswerFault | None:
    """In both passes of all repetitions."""
    usual = _usual(logits, ["step"]).filter(pl.col("times") >= LEAST)
    far = logits.filter(_KIND.is_finite()).join(usual, "step").with_columns(_away().alias("away"))
    return _of_logits(logits, far.filter(pl.col("away") > limit), "unsteady", "other logits than in other passes")


def _first(
    rows: pl.DataFrame, bad: pl.DataFrame, kind: Kind, words: Callable[[Mapping[str, Any]], str]
) -> AnswerFault | None:
    """The first call of the first completion that has such; None: none has."""
    if bad.is_empty():
        return None
    row = bad.sort("searched", "repetition", "at").row(0, named=True)
    completions = _completions(bad, _COMPLETION), _completions(rows, _COMPLETION)
    when = f"a search after the repetitions ({row['repetition'] + 1})" if row["searched"] else _repetition(row)
    failure = f"{words(row)}, first in {when} at {row['path']}, call {row['nth']}; {_counted(completions)} passes"
    return AnswerFault(kind, row["path"], row["nth"], completions, failure)


def _of_logits(logits: pl.DataFrame, bad: pl.DataFrame, kind: Kind, words: str) -> AnswerFault | None:
    if bad.is_empty():
        return None
    row = bad.sort("repetition", "scoped", "step").row(0, named=True)
    completions = _completions(bad, ("repetition", "scoped")), _completions(logits, ("repetition", "scoped"))
    scopes = "with scopes" if row["scoped"] else "without scopes"
    failure = f"{words}, first in {_repetition(row)} {scopes} at step {row['step'] + 1}; {_counted(completions)} passes"
    return AnswerFault(kind, None, row["step"] + 1, completions, failure)


def _completions(rows: pl.DataFrame, by: Sequence[str]) -> int:
    return rows.select(by).unique().height


def _repetition(row: Mapping[str, Any]) -> str:
    return f"repetition {row['repetition'] + 1}"


def _counted(completions: tuple[int, int]) -> str:
    return f"in {completions[0]:,} of {completions[1]:,}"
