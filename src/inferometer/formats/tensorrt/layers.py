"""Layers of an engine: their times, and the tactics that were chosen for them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from inferometer.formats.tensorrt.fields import exact_ns, half_digit
from inferometer.trace.builder import TraceBuilder

TOTALS, SELECTIONS = "totals", "selections"
_NAME: Final = re.compile(rb'("name"\s*:\s*")(.*)("\s*,\s*"timeMs"\s*:)', re.DOTALL)
_LOOSE: Final = re.compile(rb'\\(?!["\\/])|(?<!\\)"')
_SLACK: Final = 0.02  # percent: the parts of a sum have six digits, too
_TACTIC: Final = ("TacticName", "TacticValue", "LayerType")
_ABOUT: Final = ("LayerType", "ParameterType", "Origin", "StreamId", "Metadata")
_LONGEST: Final = 1000


def escape_name(text: bytes) -> bytes:
    """A layer whose name has quotes or backslashes of its own."""
    return _NAME.sub(lambda match: match[1] + _LOOSE.sub(lambda each: b"\\" + each[0], match[2]) + match[3], text)


def types_of(layers: Sequence[Any]) -> dict[str, str]:
    """What each layer is, by its name, as far as a file of --exportLayerInfo says."""
    known = [each for each in layers if isinstance(each, dict)]
    pairs = [(each.get("Name"), each.get("LayerType")) for each in known]
    return {name: kind for name, kind in pairs if isinstance(name, str) and isinstance(kind, str) and kind}


def add_profile(
    out: TraceBuilder, layers: Sequence[dict[str, Any]], count: Any, types: Mapping[str, str]
) -> int | None:
    """Rows of `totals`; returns over how many iterations, None where `count` isn't a number above 0."""
    iterations = count if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 2**63 else None
    if not out.wants(TOTALS):
        return iterations
    rows = [*_totals(out, layers)]
    out.losses.see(TOTALS, len(rows))
    if iterations is None:
        out.losses.count("missing_column", category=TOTALS, example="count")
    columns = _columns(rows) | {"section": 0, "count": iterations}
    out.add(TOTALS, len(rows), columns | {"role": [types.get(row["kernel"]) for row in rows]})
    _check_shares(out, layers)
    return iterations


def _totals(out: TraceBuilder, layers: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for layer in layers:
        if not isinstance(layer["name"], str):
            out.losses.see(TOTALS)
            out.losses.count("without_name", category=TOTALS)
            continue
        times = [exact_ns(layer, name, out.losses, TOTALS) for name in ("timeMs", "averageMs", "medianMs")]
        total = times[0]
        yield {
            "kernel": layer["name"],
            "total_ns": None if total is None else round(total),
            "mean_ns": None if times[1] is None else float(times[1]),
            "median_ns": None if times[2] is None else float(times[2]),
            "resolution_ns": None if total is None else half_digit(total),
        }


def _check_shares(out: TraceBuilder, objects: Sequence[dict[str, Any]]) -> None:
    """Percentages that the layers don't make: some of them are missing."""
    complete = [each for each in objects if _is_number(each.get("timeMs")) and _is_number(each.get("percentage"))]
    known = [(float(each["timeMs"]), float(each["percentage"]), each["name"]) for each in complete]
    whole = sum(ms for ms, _, _ in known)
    for ms, percentage, name in known:
        if whole and abs(100 * ms / whole - percentage) > _SLACK:
            words = f"{str(name)[:60]}: {percentage:g} % is printed, the rows make {100 * ms / whole:.4g} %"
            out.losses.count("share_disagrees", category=TOTALS, example=words)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300


def add_layer_info(out: TraceBuilder, layers: Sequence[Any]) -> None:
    """Rows of `selections`: the layer, its tactic, and what else the file says of it."""
    if not out.wants(SELECTIONS):
        return
    rows = []
    for layer in layers:
        fields = layer if isinstance(layer, dict) else {}
        variant = next((str(fields[key]) for key in _TACTIC if isinstance(fields.get(key), str) and fields[key]), None)
        out.losses.see(SELECTIONS)
        if variant is None or not isinstance(fields.get("Name"), str):
            out.losses.count("without_name", category=SELECTIONS)
            continue
        about = [f"{key} {fields[key]}"[:_LONGEST] for key in _ABOUT if isinstance(fields.get(key), str | int)]
        rows.append({"op": fields["Name"], "variant": variant, "reason": ", ".join(about) or None})
    out.add(SELECTIONS, len(rows), _columns(rows))


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def sum_of_means(timed: Sequence[dict[str, Any]]) -> Decimal | None:
    """What all layers of one iteration take together, ns; None where one doesn't say."""
    means = [each.get("averageMs") for each in timed]
    if not all(_is_number(each) for each in means):
        return None
    return sum((Decimal(str(each)) * 1_000_000 for each in means), Decimal())
