"""`bench`: whether candidates are right and how fast they are."""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from inferometer.bench.results import CandidateRecord, Conditions, ShapeResult
from inferometer.reports.schemas.fields import Document, says


class Bench(Document):
    """One run of the evaluator."""

    date: Annotated[str, says("UTC, ISO 8601.")]
    inferometer: Annotated[str, says("Version of inferometer.")]
    device: Annotated[str, says("Full name of the device.")]
    on: Annotated[str, says("Where it ran: `cpu`, `cuda:0`.")]
    functional_only: Annotated[bool, says("Whether it ran on a CPU: times show that kernels run, not how fast.")]
    stage: Annotated[str, says("`correct` or `fast`.")]
    versions: Annotated[dict[str, str], says("Versions of libraries.")]
    settings: Annotated[dict[str, Any], says("What was asked.")]
    contenders: Annotated[list[CandidateRecord], says("Whose kernels ran, the base first.")]
    results: Annotated[list[ShapeResult], says("One for each kernel and shape; times in ns of one call.")]
    conditions: Annotated[Conditions, says("The machine while it ran.")]
    format: Annotated[str, says("`inferometer-bench`: that of the file of `-o`.")]
    version: Annotated[int, says("Version of that file's form.")]
    right: Annotated[bool, says("Whether every candidate has every shape right.")]
    refused: Annotated[dict[str, str], says("Backends that didn't take part, and why.")]
    output: Annotated[str | UnsetType, says("With `-o`: the file that was written.")] = UNSET
    exported: Annotated[str | UnsetType, says("With `--export`: what was written, in words.")] = UNSET
    left_out: Annotated[list[str] | UnsetType, says("With `--export`: what has no place there, in words.")] = UNSET


DOCUMENT = Bench
