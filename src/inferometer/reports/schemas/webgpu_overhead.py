"""`inferometer.json_of` of what measuring costs our WebGPU engine: part of `webgpu_chat` with `--overhead`."""

from typing import Annotated

from inferometer.reports.schemas.fields import Part, SchemaMark, says


class FormTimes(Part):
    """One form of submits; medians, minima and maxima are over rounds."""

    timing: Annotated[str, says("The form.")]
    rounds: Annotated[int, says("Rounds.")]
    prefill_ns: Annotated[float, says("Wall time of the submits that read the prompt, ns.")]
    token_ns: Annotated[float | None, says("Wall time of a decode step, ns; null where there is none.")]
    min_token_ns: Annotated[float | None, says("Least of the rounds, ns.")]
    max_token_ns: Annotated[float | None, says("Most of the rounds, ns.")]
    ratio: Annotated[float | None, says("`token_ns` over that of the single pass.")]
    untimed: Annotated[int, says("Dispatches without usable times in all rounds.")]


class OverheadParts(Part):
    """The forms side by side."""

    forms: list[FormTimes]
    same_tokens: Annotated[bool, says("Whether all gave the same answer, as they must.")]
    left_out: Annotated[str | None, says("The form that the adapter can't, in words that may change.")]


class WebGpuOverhead(OverheadParts):
    """The forms of submits side by side."""

    schema: SchemaMark


DOCUMENT = WebGpuOverhead
