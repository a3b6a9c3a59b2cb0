"""`chat`: an answer of a model, and what it took."""

from typing import Annotated

from inferometer.reports.schemas.fields import Part, SchemaMark, says


class Sampling(Part):
    """How tokens were chosen."""

    temperature: Annotated[float, says("0: always the most probable token.")]
    top_k: Annotated[int, says("Of so many tokens; 0: of all.")]
    top_p: Annotated[float, says("Of the most probable ones that have this probability together.")]
    seed: Annotated[int, says("Of the draws.")]


class TokenTimes(Part):
    """Times of the tokens after the first, each from its pass's beginning to its number on the host."""

    median: Annotated[float | None, says("Median, ns; null where there is none.")]
    p95: Annotated[float | None, says("95th percentile, ns.")]
    max: Annotated[float | None, says("Longest, ns.")]
    each: Annotated[list[int], says("All, ns.")]


class OperatorUse(Part):
    """What ran an operator."""

    operator: Annotated[str, says("The operator.")]
    backend: Annotated[str, says("The backend that ran it.")]
    calls: Annotated[int, says("Calls of it.")]
    reason: Annotated[str | None, says("Why it wasn't the one asked for. Its words may change.")]


class ChatParts(Part):
    """What all engines say of an answer."""

    model: Annotated[str, says("The model.")]
    source: Annotated[str, says("Where its weights are from, in words.")]
    device: Annotated[str, says("What it ran on.")]
    dtype: Annotated[str, says("Type of weights and activations.")]
    parameters: Annotated[int, says("Numbers of the model.")]
    weight_bytes: Annotated[int, says("Bytes of its weights.")]
    arm: Annotated[str, says("Which backends were asked for.")]
    load_ns: Annotated[int, says("Time to load the model, ns.")]
    recording: Annotated[str | None, says("With `--record`: the store that was made.")]
    notes: Annotated[list[str], says("Sentences for people. Their words may change.")]
    engine: Annotated[str, says("`hf` or `webgpu`.")]
    warm_up_ns: Annotated[int | None, says("Time of the answer that was made before, ns; null: there was none.")]
    cold_ttft_ns: Annotated[int | None, says("Time to the first token of the first answer, ns.")]
    text: Annotated[str, says("The answer.")]
    tokens: Annotated[list[int], says("Its tokens, the one that ended it too.")]
    prompt_tokens: Annotated[int, says("Tokens of the whole conversation so far.")]
    kept_tokens: Annotated[int, says("Of these, tokens that the KV cache had already.")]
    new_tokens: Annotated[int, says("Tokens of the answer.")]
    ended: Annotated[str, says("Why there are no more.")]
    error: Annotated[str | None, says("What it failed with. Its words may change.")]
    ttft_ns: Annotated[int | None, says("From the question to the first token's number on the host, ns.")]
    prefill_ns: Annotated[int | None, says("Of that, the pass over the prompt, ns.")]
    token_ns: TokenTimes
    total_ns: Annotated[int, says("From the question to the last token, ns.")]
    prefill_tokens_per_s: Annotated[float | None, says("Tokens that were read over `prefill_ns`.")]
    decode_tokens_per_s: Annotated[float | None, says("Tokens after the first over the sum of their times.")]
    tokens_per_s: Annotated[float | None, says("New tokens over the whole time.")]
    peak_rss_bytes: Annotated[int | None, says("The most memory that the process had; null where that isn't known.")]
    peak_device_bytes: Annotated[int | None, says("The most memory on a GPU during the answer.")]


class Chat(ChatParts):
    """An answer of a model, and what it took."""

    schema: SchemaMark
    sampling: Sampling
    operators: list[OperatorUse]


DOCUMENT = Chat
