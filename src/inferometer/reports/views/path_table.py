"""A printed table of times by call path, with what is wrong with it."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.path_table.found import dearer_in_all, short
from inferometer.analyses.path_table.review import PathTableReview
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

CANT_TELL = (
    "Times are means per call without counts: they can't be added up, and no share of a caller can be known.",
    "No spread and no repetitions: whether a difference is more than chance can't be known.",
    "Host times: without waiting for the device they are times of launching, and the wait shows where it was done.",
    "Whether the runs did the same work (tokens, steps, sampling, an early stop) isn't in it.",
    "What has one path is one row: layers, call sites of one name, prefill and decode are pooled.",
    "A column's title is a label: which backend ran isn't known. Loading and warming up are in the path that did it.",
)
_MOST_NAMED = 5


def _facts(review: PathTableReview) -> Sequence[tuple[str, str]]:
    return [
        ("File", review.source.source),
        ("Runs", ", ".join(review.table.arms)),
        ("Paths", f"{len(review.table.paths):,}"),
        ("Wrong", _wrong(review)),
    ]


def _wrong(review: PathTableReview) -> str:
    """Also what its rows say of themselves: a difference that isn't that of the two times next to it."""
    sure = sum(each.kind != "possible_swap" for each in review.found)
    possible, rows = len(review.found) - sure, review.contradicting_rows
    counted = ((sure, "finding"), (possible, "possible swap"), (rows, "row that contradicts itself or others"))
    stated = [_counted(count, what) for count, what in counted if count]
    return "; ".join(stated) or "nothing was found"


def _counted(count: int, what: str) -> str:
    if count == 1:
        return f"1 {what}"
    noun, that, rest = what.partition(" that ")
    return f"{count:,} {noun}s{that}{rest.replace('contradicts itself', 'contradict themselves')}"


def _remarks(review: PathTableReview) -> Sequence[str]:
    known = [f"{each.kind.replace('_', ' ').capitalize()}. {each.words}" for each in review.found]
    if len(review.table.arms) < 2:
        known.append("The table has one run: whether its times stand at their own paths can't be checked.")
    if dearer := [short(path) for path in dearer_in_all(review.table, review.times)]:
        more = f" and {len(dearer) - _MOST_NAMED:,} more" if len(dearer) > _MOST_NAMED else ""
        known.append(
            f"A call takes longer than one of its caller at {', '.join(dearer[:_MOST_NAMED])}{more}, in every run: "
            "not every call of the caller calls it."
        )
    return known


def _sections(review: PathTableReview) -> Sequence[Section]:
    """The table by key: times per call of each run, and the first run less each other."""
    arms = list(enumerate(review.table.arms))
    first, others = review.table.arms[0], arms[1:]
    shifted = {review.explained.shift.arm} if review.explained and review.is_corrected else set()
    fields = [
        Field("kernel", "Kernel", "name"),
        *(Field(f"host_ns_{i}", arm, "ns") for i, arm in arms),
        *(Field(f"difference_ns_{i}", f"{first} − {arm}", "ns") for i, arm in others),
        *(Field(f"difference_share_{i}", f"% of {first}", "share", spare=1) for i, _ in others),
        *(Field(f"printed_ns_{i}", f"{arm}, printed", "ns", spare=2) for i, arm in arms if i in shifted),
        *([Field("found", "Found", "text", spare=3)] if review.found else []),
        Field("path", "Path", "name", spare=4),
    ]
    indented = pl.concat_str(pl.lit("  ").repeat_by("depth").list.join(""), "name").alias("kernel")
    title = "By key, time of one call" if review.is_corrected else "As printed, time of one call"
    return [Section(title, fields, review.to_polars().with_columns(indented), CANT_TELL)]


def _in_json(_: PathTableReview) -> dict[str, list[str]]:
    return {"cant_tell": list(CANT_TELL)}


VIEW = View(
    schema=Schema("path_table", 1),
    facts=_facts,
    sections=_sections,
    remarks=_remarks,
    remarks_in_json=True,
    in_json=_in_json,
)
