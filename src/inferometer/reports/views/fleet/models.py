"""Which models the traces are of, by their shapes."""

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.fleet.questions.models import FleetModels
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_FIELDS: Final = (
    Field("shown", "Dimensions of", "name", leads=True),
    Field("tensor_parallel", "Split over", "count", spare=1),
    Field("traces", "Traces", "count"),
    Field("held_gpu_hours", "GPU-hours held", "ratio", spare=1),
    Field("op_ns", "Ops", "ns", spare=2),
    Field("recorded", "Recorded as", "text", spare=1),
    Field("agree", "Seen of it", "text", spare=1),
    Field("example", "First trace", "text", spare=3),
)


def _facts(found: FleetModels) -> Sequence[tuple[str, str]]:
    return [("Fleet", f"{found.source}: {format_counted(found.traces, 'trace')}")]


def _sections(found: FleetModels) -> Iterator[Section]:
    shown = pl.coalesce("models", pl.concat_str(pl.lit("("), "reason", pl.lit(")"))).alias("shown")
    some = pl.format("{} ({} of {})", "recorded", "named", "traces")
    recorded = pl.when(pl.col("named") < pl.col("traces")).then(some).otherwise("recorded").alias("recorded")
    yield Section("Models by the shapes of products", _FIELDS, found.frame.with_columns(shown, recorded))


def _remarks(found: FleetModels) -> Iterator[str]:
    if found.frame["models"].count():
        yield "Inferred from shapes: tunings and distillations, and models that aren't known, may have the same ones."


VIEW = View(schema=Schema("fleet_models", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True)
