"""What profiling costs: one row per form of the submits."""

from collections.abc import Sequence

from inferometer.engines.webgpu.profile.overhead import Overhead
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

_FIELDS = (
    Field("timing", "Submits", "text"),
    Field("rounds", "Rounds", "count"),
    Field("prefill_ns", "Prefill", "ns"),
    Field("token_ns", "A token", "ns"),
    Field("min_token_ns", "Min", "ns"),
    Field("max_token_ns", "Max", "ns"),
    Field("ratio", "× single pass", "ratio"),
    Field("untimed", "Untimed", "count"),
)


def _sections(found: Overhead) -> Sequence[Section]:
    return [Section("What profiling costs", _FIELDS, found.to_polars(), _remarks(found))]


def _remarks(found: Overhead) -> Sequence[str]:
    """What spoils the comparison, and what is not in it."""
    wrong = "The forms gave different tokens: they didn't do the same work."
    return [*([] if found.same_tokens else [wrong]), *([] if found.left_out is None else [found.left_out])]


VIEW = View(schema=Schema("webgpu_overhead", 1), sections=_sections, remarks=_remarks)
