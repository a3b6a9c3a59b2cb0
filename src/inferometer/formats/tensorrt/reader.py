"""Which of trtexec's objects are there, and what of them goes where."""

from typing import TYPE_CHECKING, Any, Final

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.formats.json_text.objects import Objects
from inferometer.formats.tensorrt.layers import add_layer_info, add_profile, escape_name, sum_of_means, types_of
from inferometer.formats.tensorrt.queries import add_queries
from inferometer.trace.facts import Facts
from inferometer.units import format_duration

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_TOO_LARGE: Final = "Run fewer iterations, or read it with --no-limits."
_HINT: Final = "Export it again: trtexec --exportProfile=profile.json --exportTimes=times.json"
_NAMES_HINT: Final = "Build the engine with --profilingVerbosity=detailed, or give the file of --exportProfile."
_LAYERS: Final = "Times of layers are those of a run that was profiled: they add up to more than a query takes."
_QUERIES: Final = (
    "It has times of whole queries: inferometer compare sets two such files side by side. A step is a query, from its "
    "copies to the device to those to the host."
)
_CHOICES: Final = (
    "It has the tactics of layers and no times: those are in the files of --exportProfile and --exportTimes."
)


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: There are neither layers nor queries, or layers are names alone.
    """
    found = Objects(read_held(source, hint=_TOO_LARGE), out.losses, "trtexec", mend=escape_name)
    objects = [each.fields for each in found if each.fields is not None]
    timed = [each for each in objects if "name" in each and "Layers" not in each]
    queries = [each for each in objects if "latencyMs" in each or "computeMs" in each]
    layers = [layer for each in objects if isinstance(each.get("Layers"), list) for layer in each["Layers"]]
    if not timed and not queries and not layers:
        raise FormatError(f"{source.name}: expected layers or queries of trtexec, found none", hint=_HINT)
    if not timed and not queries and all(isinstance(layer, str) for layer in layers):
        wanted = "expected layers with their types and tactics, found names alone"
        raise FormatError(f"{source.name}: {wanted}", hint=_NAMES_HINT)
    notes = []
    if timed:
        count = next((each["count"] for each in objects if len(each) == 1 and "count" in each), None)
        iterations = add_profile(out, timed, count, types_of(layers))
        notes += [_LAYERS, *_about_sum(timed, iterations)]
    if queries:
        add_queries(out, queries)
        notes.append(_QUERIES)
    add_layer_info(out, layers)
    if not notes:
        notes.append(_CHOICES)
    return Facts("tensorrt", source.name, tool="trtexec", framework="TensorRT", notes=tuple(notes))


def _about_sum(timed: list[dict[str, Any]], iterations: int | None) -> list[str]:
    total = sum_of_means(timed)
    if total is None or iterations is None:
        return []
    return [f"All layers of an iteration take {format_duration(float(total))}, the mean of {iterations:,}."]
