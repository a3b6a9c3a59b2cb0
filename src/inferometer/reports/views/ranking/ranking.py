"""A ranking: the order and the operators of each device, two runs' differences, shapes, runs."""

from msgspec.structs import replace

from inferometer.bench.ranking.given_weights import GivenWeights
from inferometer.bench.ranking.ranking import Ranking
from inferometer.bench.ranking.shape_figures import FUNCTIONAL_ONLY
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Section
from inferometer.reports.views.ranking.remarks import ranking_remarks
from inferometer.reports.views.ranking.shortened import join_shapes, shares_as_text, shortened
from inferometer.reports.views.ranking.tables import (
    every_shape,
    operators_section,
    ranked_section,
    runs_section,
    shapes_section,
)
from inferometer.reports.views.view import View, sections_of
from inferometer.units import format_counted


def _facts(ranking: Ranking) -> list[tuple[str, str]]:
    """What was put together."""
    candidates = {each.name for device in ranking.devices for each in device.candidates}
    results = sum(1 for device in ranking.devices for _ in device.results())
    return [
        ("Runs", f"{len(ranking.runs):,}"),
        ("Candidates", f"{len(candidates):,}"),
        ("Results", f"{results:,}"),
        *([] if ranking.given is None else [("Importance", _importance(ranking.given))]),
        ("Devices", ", ".join(device.title for device in ranking.devices) or "none"),
    ]


def _importance(given: GivenWeights) -> str:
    count = format_counted(len(given.shapes), "shape")
    return f"that of {given.source}: {count} of {format_counted(len(given.weights), 'operator')}, no others count"


def _sections(ranking: Ranking) -> list[Section]:
    """Of each device its order and its operators; two runs' differences; shapes; runs. Long tables are shortened."""
    sections = []
    for device in ranking.devices:
        functional = FUNCTIONAL_ONLY if device.functional_only else None
        sections += [shares_as_text(ranked_section(device), "score", functional)]
        sections += [shares_as_text(operators_section(device), "sol_fraction", functional)]
    if ranking.differences is not None:
        sections += sections_of(ranking.differences)
    shapes = [shares_as_text(shapes_section(device), "sol_fraction", "instead") for device in ranking.devices]
    sections += [_wrong_first(join_shapes(section)) for section in shapes]
    return [shortened(section) for section in [*sections, runs_section(ranking)]]


def _wrong_first(section: Section) -> Section:
    return replace(section, frame=section.frame.sort("right", descending=True, maintain_order=True))


VIEW = View(schema=Schema("ranking", 1), facts=_facts, sections=_sections, remarks=ranking_remarks, table=every_shape)
