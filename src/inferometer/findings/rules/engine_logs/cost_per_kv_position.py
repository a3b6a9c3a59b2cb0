"""A kernel whose time grows with the context far beyond what reading the KV cache needs.

Fires on a class whose time per token grows in a straight line with the KV positions attended (R² of 0.9 or more, the 95
% interval of the slope above 0), and:

- with the model's dimensions, a position costs four times or more what its bytes need at the slowest bandwidth known
  (the device's, those asked for, or the best rate of the run): good attention kernels reach more than half of it, so
  four is beyond any tuning;
- else, with the printed layers, heads and head size, the most bytes that a position can have (as many KV heads as
  heads, 4 bytes per element) come at less than 8 GB/s, which is slower than any GPU's memory; faster is `info`, since
  it may be all that the memory gives;
- else wherever the growth itself is large, and then at most `medium`.

A class that isn't attention has no business with the KV cache: for it the growth alone counts. Severity is the
growing part as a share of decode's GPU time: from 2 % `low`, from 8 % `medium`, from 20 % `high`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.model.roles import is_attention
from inferometer.analyses.steps.growth import ALL, format_slope
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_bytes, format_count, format_duration, format_share

_STRAIGHT = 0.9
_FAR_ABOVE = 4.0
_NO_GPU_IS_SLOWER = 8e9  # bytes/s: one channel of DDR3-1066, the least that a GPU of any computer of today shares
_MOST_BYTES = 4  # of an element of the KV cache
_SCALE = Scale("cost_per_kv_position", low=0.02, medium=0.08, high=0.20)
_UNSURE = Scale("cost_per_kv_position.unsure", low=0.02, medium=0.08)
_NEXT = (
    "Look at how the kernel walks the cache at one token: enough workgroups for the device, positions split among "
    "them, wide loads."
)
_NEXT_OTHERS = "Find out why it depends on the context at all: its label doesn't name attention."
_FURTHER = (1, 4)  # times the next power of two, for what longer contexts would cost


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.steps is None or evidence.steps.growth.is_empty():
        return
    steps = evidence.decode_steps.drop_nulls(["mean_kv", "tokens"])
    positions = float((steps["mean_kv"] * steps["tokens"]).sum())
    gpu_ns = evidence.gpu_ns("decode")
    growth = evidence.steps.growth.filter(pl.col("class") != ALL, pl.col("low_ns") > 0)
    for row in growth.filter(pl.col("r2") >= _STRAIGHT).iter_rows(named=True):
        growing = row["slope_ns"] * positions / gpu_ns if gpu_ns else 0.0
        bound = _bound(evidence, row)
        severity = _severity(growing, bound)
        if severity is None:
            continue
        of = evidence.class_times.filter(pl.col("phase") == "decode", pl.col("class") == row["class"])
        yield Finding(
            rule=RULE.name,
            severity=severity,
            title=f"cost per KV position{_times(bound)}: {row['class']} (decode)",
            evidence=(_slope(row, steps), _shares(row, growing), *bound.sentences, *_extrapolate(evidence, steps)),
            size_ns=int(of["total_ns"].sum()),
            share=float(of["share"].sum()),
            next=_NEXT if is_attention(row["class"]) else _NEXT_OTHERS,
        )


class _Bound(msgspec.Struct, frozen=True):
    """What reading the cache needs: `ratio` above it, sentences that say so, `is_sure` whether it is far above.

    `ratio` and `is_sure` are None where that is unknown.
    """

    ratio: float | None = None
    sentences: tuple[str, ...] = ()
    is_sure: bool | None = None


def _bound(evidence: Evidence, row: dict[str, Any]) -> _Bound:
    if not is_attention(row["class"]):
        return _Bound(is_sure=True)
    slope_ns = row["slope_ns"]
    size, of = _bytes_of_position(evidence)
    if size:
        return _against_bandwidths(evidence, slope_ns, size, of)
    most = _most_bytes(evidence)
    if most is None:
        return _Bound()
    rate = most / slope_ns * 1e9
    text = (
        f"Even with as many KV heads as heads and {_MOST_BYTES} bytes an element, that is {format_bytes(rate)}/s from "
        "the cache."
    )
    return _Bound(sentences=(text,), is_sure=rate < _NO_GPU_IS_SLOWER)


def _against_bandwidths(evidence: Evidence, slope_ns: float, size: float, of: str) -> _Bound:
    """The slope against the bytes of a position, at each bandwidth that is known."""
    rates = [(rate, f"at {format_bytes(rate)}/s") for rate in sorted(evidence.bandwidths_bytes_per_s)]
    best = evidence.best_bytes_per_s
    if not rates and best:
        rates = [(best, f"at {format_bytes(best)}/s, the best rate of a class in this run")]
    if not rates:
        return _Bound(sentences=(f"A position is {format_bytes(size)} of KV cache ({of}).",))
    ratios = [slope_ns * rate / size / 1e9 for rate, _ in rates]
    each = "; ".join(
        f"{format_count(round(ratio))}x that {words}" if ratio >= 10 else f"{ratio:.1f}x that {words}"
        for ratio, (_, words) in zip(ratios, rates, strict=True)
    )
    text = f"A position is {format_bytes(size)} of KV cache ({of}), so the slope is {each}."
    return _Bound(ratios[0], (text,), is_sure=ratios[0] >= _FAR_ABOVE)


def _bytes_of_position(evidence: Evidence) -> tuple[float | None, str]:
    """Bytes that a token reads more for each position of the context, all layers, and whose dimensions say so.

    As the calls of a step have it over the contexts of the run: windows and latent caches are in it.
    """
    if evidence.model is None:
        return None, ""
    from inferometer.architectures import step_calls

    steps = evidence.decode_steps.drop_nulls("context_len")
    first, last = steps["context_len"].min(), steps["context_len"].max()
    if not isinstance(first, int) or not isinstance(last, int) or last <= first:
        return None, ""
    read = [
        sum(call.read_bytes for call in step_calls(evidence.model, tokens=1, context=context))
        for context in (first, last)
    ]
    size = (read[1] - read[0]) / (last - first)
    return (size if size > 0 else None), f"dimensions of {evidence.model.name}, 2 bytes an element"


def _most_bytes(evidence: Evidence) -> float | None:
    layers, heads, width = (evidence.number(name) for name in ("layers", "heads", "head_dim"))
    return None if layers is None or heads is None or width is None else 2.0 * layers * heads * width * _MOST_BYTES


def _severity(growing: float, bound: _Bound) -> Severity | None:
    severity = (_SCALE if bound.is_sure else _UNSURE).severity(growing)
    if bound.is_sure is False and severity:
        return "info" if bound.ratio is None else None
    return severity


def _times(bound: _Bound) -> str:
    return "" if bound.ratio is None else f" {format_count(round(bound.ratio))}x what its bytes need"


def _slope(row: dict[str, Any], steps: pl.DataFrame) -> str:
    low, high = float(steps["mean_kv"].to_numpy().min()), float(steps["mean_kv"].to_numpy().max())
    interval = f"{format_slope(row['low_ns'])} to {format_slope(row['high_ns'])}"
    return (
        f"{format_slope(row['slope_ns'])} for each token and KV position (95 % interval {interval}), on top of "
        f"{format_duration(row['intercept_ns'])} per token; R² {row['r2']:.5f} over {row['steps']:,} undisturbed "
        f"steps, {low:,.1f} to {high:,.1f} positions."
    )


def _shares(row: dict[str, Any], growing: float) -> str:
    return (
        f"Its share of the step's GPU time goes from {format_share(row['first_share'])} to "
        f"{format_share(row['last_share'])}; the part that grows is {format_share(growing)} of decode's."
    )


def _extrapolate(evidence: Evidence, steps: pl.DataFrame) -> Iterator[str]:
    if evidence.steps is None or steps.is_empty():
        return
    whole = evidence.steps.growth.filter(pl.col("class") == ALL, pl.col("low_ns") > 0)
    last = steps.row(-1, named=True)
    if whole.is_empty() or last["context_len"] is None:
        return
    row = whole.row(0, named=True)
    reached = last["context_len"] + last["tokens"]
    contexts = [factor << (reached - 1).bit_length() for factor in _FURTHER]
    costs = [f"{format_duration(row['intercept_ns'] + row['slope_ns'] * n)} at {n:,}" for n in contexts]
    yield f"If it goes on so, a token takes {' and '.join(costs)} positions of context, all kernels of the GPU."
    model = evidence.model
    if model is not None and model.sliding_window is not None and model.sliding_window < contexts[-1]:
        yield (
            f"By its dimensions, {len(model.sliding_layers)} of the {model.layers} layers see "
            f"{format_count(model.sliding_window)} positions at most: from there on, these have no reason to grow."
        )


RULE = Rule("cost_per_kv_position", _find, (_SCALE, _UNSURE))
