"""`summary`: what a file is, where the time of its devices went, and what stands out."""

from typing import Annotated

from inferometer.reports.schemas.fields import SchemaMark, says
from inferometer.reports.schemas.findings import Budget, Examined, FoundFirst, Thresholds
from inferometer.reports.schemas.steps import Phase
from inferometer.reports.schemas.trace_summary import SummaryParts


class Summary(SummaryParts):
    """What a file is, where the time of its devices went, and what stands out."""

    schema: SchemaMark
    findings: FoundFirst
    examined: Examined
    thresholds: Thresholds
    device_time_budget: Budget
    phases: Annotated[list[Phase], says("Steps of the first run by phase; empty where no steps are recorded.")]
    unasked_launches: Annotated[int, says("Launches that no rule was asked about, since they are too many; else 0.")]


DOCUMENT = Summary
