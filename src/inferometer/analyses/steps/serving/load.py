"""How many sequences the steps and the benchmark had, what a step gives each, and so its latency from step to step."""

import msgspec
import polars as pl

from inferometer.formats.serving_results.serving import Latency, Serving

_CHUNK = 1.4  # tokens of a chunk over tokens of a step, or its inverse: beyond, chunks aren't steps (√2: half way to 2)


class Load(msgspec.Struct, frozen=True):
    """`sequences` and `most_sequences`: of decode steps of the trace, the mean and the most. None: not known.

    `are_tokens`: they were counted by the tokens of steps, among which drafts may be.
    `tokens`: what a step gives a sequence: 1, or with drafts what the benchmark says was accepted, or of an engine that
    prints its steps what it made. None where a trace shows drafts and the benchmark doesn't say what came of them.
    `decoding`: requests that decode at a time, of the benchmark: its rate of tokens times the time of each.
    """

    sequences: float | None
    most_sequences: int | None
    tokens: float | None
    decoding: float | None
    are_tokens: bool = False


class StepLatency(msgspec.Struct, frozen=True):
    """A benchmark's latency from one step of a sequence to the next. `tokens`: what a step gives the sequence.

    `name`: which of the benchmark's latencies; `note`: why not the inter-token one, where that is so.
    """

    name: str
    latency: Latency
    tokens: float
    note: str | None = None


def find_load(serving: Serving, steps: pl.DataFrame, *, is_printed: bool = False) -> Load:
    """Of a benchmark's run and `StepTable.steps`; `is_printed`: tokens of steps are those that were made."""
    decode = steps.filter((pl.col("phase") == "decode").fill_null(value=False))
    sequences = _sequences(serving, decode, is_printed=is_printed)
    accepted = serving.accept_length if serving.accept_length is not None and serving.accept_length > 1 else None
    tokens: float | None = accepted or 1.0
    if sequences is not None and decode["tokens"].null_count() == 0 and accepted is None:
        each = int(decode["tokens"].sum()) / int(sequences.sum())
        tokens = each if is_printed or each <= 1 else None
        tokens = 1.0 if tokens is not None and tokens < 1 else tokens
    rate, tpot = serving.output_tokens_per_s, serving.tpot.mean_ns
    return Load(
        sequences=None if sequences is None else float(sequences.mean()),  # type: ignore[arg-type]
        most_sequences=None if sequences is None else int(sequences.max()),  # type: ignore[arg-type]
        tokens=tokens,
        decoding=None if rate is None or tpot is None else rate * tpot / 1e9,
        are_tokens=sequences is not None and not is_printed and "batch" not in steps.columns,
    )


def _sequences(serving: Serving, decode: pl.DataFrame, *, is_printed: bool) -> pl.Series | None:
    """Sequences of each decode step: recorded, or the only one that there was, or as many as tokens."""
    if decode.is_empty():
        return None
    if "batch" in decode.columns:
        batch = decode["batch"]
        return batch if batch.null_count() == 0 and int(batch.sum()) > 0 else None
    if is_printed:
        return pl.Series([1] * decode.height) if serving.max_concurrency == 1 else None
    drafts = serving.accept_length is not None and serving.accept_length > 1
    tokens = decode["tokens"]
    return None if drafts or tokens.null_count() or not tokens.sum() else tokens


def find_step_latency(serving: Serving, tokens: float | None) -> StepLatency | None:
    """The latency from step to step that a benchmark says; None where it shows none.

    Args:
        serving: The benchmark's run.
        tokens: What a step gives a sequence; None where drafts make that unknown.
    """
    itl, tpot = serving.itl, serving.tpot
    if tokens is None or not (itl.is_known or tpot.is_known):
        return None
    by_tokens = StepLatency("time per output token", tpot.times(tokens), tokens)
    if not itl.is_known:
        return by_tokens
    if serving.itl_of == "token":
        return StepLatency("inter-token latency", itl.times(tokens), tokens)
    if itl.mean_ns is None or tpot.mean_ns is None or 1 / _CHUNK <= itl.mean_ns / tpot.mean_ns / tokens <= _CHUNK:
        return StepLatency("inter-token latency", itl, tokens)
    note = (
        f"A chunk of the stream holds {itl.mean_ns / tpot.mean_ns:.1f} tokens on average and a step makes {tokens:.3g} "
        "of a sequence, so chunks aren't steps: the time per output token stands for the inter-token latency."
    )
    return StepLatency(by_tokens.name, by_tokens.latency, tokens, note)
