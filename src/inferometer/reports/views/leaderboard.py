"""The catalogue on several devices: operators, and the headline rows of each."""

from collections.abc import Sequence
from typing import Any

from inferometer.analyses.operators.leaderboard import HeadlineRow, Leaderboard, Platform
from inferometer.analyses.operators.published import DEPLOYED, PLATFORMS
from inferometer.operators.shapes import PROFILES
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.reports.views.operator_sheet import about_launch
from inferometer.reports.views.view import View
from inferometer.units import format_share

_CATALOGUE = (
    Field("operator", "Operator", "name"),
    Field("importance", "Importance", "share"),
    Field("importance_published", "As published", "share"),
    Field("sol_fraction", "Median S", "share", spare=1),
    Field("published_fraction", "Published S", "share", spare=1),
    Field("binding", "Bound by", "text"),
    Field("below_launch", "Below launch", "count", spare=1),
    Field("shapes", "Shapes", "count"),
    Field("regime", "Regime", "text"),
    Field("dtype", "Dtype", "text", spare=2),
    Field("phase", "Phase", "text", spare=4),
    Field("id", "Id", "text", spare=3),
    Field("profiles", "Profiles", "count", spare=5),
)


def _facts(board: Leaderboard) -> Sequence[tuple[str, str]]:
    return [
        ("Catalogue", f"{len(board.timed.operators)} operators, {board.shapes} shapes"),
        ("From", f"{PROFILES:,} production profiles"),
        ("Platforms", ", ".join(platform.device.name for platform in board.platforms)),
        ("Source", board.source),
    ]


def _sections(board: Leaderboard) -> Sequence[Section]:
    return [catalogue(board), *(headline_section(platform) for platform in board.platforms)]


def catalogue(board: Leaderboard) -> Section:
    """One row per operator; what binds, S and shapes below a launch are of the timed platform."""
    total = format_share(board.published_total)
    notes = [
        f"Importance: share of GPU time, normalised to 100 % in all; as published the shares add up to {total}.",
        f"What binds most shapes, S, and how many bounds are below a launch are on {board.timed.device.name}.",
        about_launch(board.timed.device),
    ]
    return Section("Operators", _CATALOGUE, board.to_polars(), notes)


def headline_section(platform: Platform) -> Section:
    """The headline rows of a platform: of the middle shape, then medians. T_Prod only where kernels were timed."""
    fields = _headline_fields(platform)
    frame = frame_of([_headline_cells(row, platform) for row in platform.headlines], fields)
    return Section(f"Headline rows on {platform.device.name}", fields, frame, [*_headline_notes(platform)])


def _names(platform: Platform) -> Sequence[str]:
    """Whose published bounds stand in the rows: those of the published platforms, and of this one."""
    return tuple(dict.fromkeys((*PLATFORMS, platform.device.name)))


def _headline_fields(platform: Platform) -> Sequence[Field]:
    times = [Field(f"t_sol {name}", f"T_SOL ({name})", "ns") for name in _names(platform)]
    medians = [Field(f"median_{field.column}", f"Median {field.title}", "ns") for field in times]
    return [
        Field("operator", "Operator", "name"),
        Field("regime", "Regime", "text"),
        Field("index", "Middle shape", "count"),
        Field("arithmetic_intensity", "FLOP/B", "ratio"),
        *times,
        Field("t_prod", "T_Prod", "ns", spare=1),
        Field("bound", "Our bound", "ns"),
        Field("binding", "Bound by", "text"),
        Field("median_arithmetic_intensity", "Median FLOP/B", "ratio"),
        *medians,
        Field("median_t_prod", "Median T_Prod", "ns", spare=1),
        Field("median_bound", "Median bound", "ns"),
    ]


def _headline_cells(row: HeadlineRow, platform: Platform) -> dict[str, Any]:
    name, own = platform.device.name, row.own
    return {
        "operator": row.operator.name,
        "regime": row.middle.regime,
        "index": row.middle.index,
        "arithmetic_intensity": row.middle.arithmetic_intensity,
        **{f"t_sol {each}": row.middle.t_sol_ns.get(each, own.t_sol_ns) for each in _names(platform)},
        "t_prod": row.middle.t_prod_ns if name == DEPLOYED else None,
        "bound": own.bound_ns,
        "binding": own.binding,
        "median_arithmetic_intensity": row.median.arithmetic_intensity,
        **{f"median_t_sol {each}": row.median.t_sol_ns.get(each, own.median_t_sol_ns) for each in _names(platform)},
        "median_t_prod": row.median.t_prod_ns if name == DEPLOYED else None,
        "median_bound": own.median_bound_ns,
    }


def _headline_notes(platform: Platform) -> Sequence[str]:
    notes = [
        "As published, a row is of the operator's middle shape by index.",
        "Columns called median are the upper median over all shapes, each by itself.",
        "T_SOL: max(W / matrix peak, Q / bandwidth), as published; our bound is the greatest of five.",
    ]
    if not platform.is_timed:
        notes.append(f"T_Prod isn't given: deployed kernels were timed on {DEPLOYED} only.")
    return notes


VIEW = View(schema=Schema("leaderboard", 1), facts=_facts, sections=_sections)
