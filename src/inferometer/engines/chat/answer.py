"""What one answer of a model took: each metric is defined here, once.

Times are of the host's clock, ns. A token counts as there when its number is on the host, so the device was waited for;
what a device does ahead of the host isn't hidden. Text and terminal aren't in the time of a token, but in the whole.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import polars as pl

from inferometer.analyses.result import Result
from inferometer.engines.sampling import Sampling
from inferometer.errors import InferometerError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

Ended = Literal["eos", "new_tokens", "context", "interrupted", "failed"]
_SCHEMA = {"operator": pl.String, "backend": pl.String, "calls": pl.Int64, "reason": pl.String}


@dataclass(frozen=True)
class OperatorUse:
    """Calls of one operator that one backend took; `reason`: why the chosen one didn't."""

    operator: str
    backend: str
    calls: int
    reason: str | None = None


@dataclass(frozen=True)
class WarmUp:
    """The run of a prompt before the one that is timed. Triton and torch.compile compile in it.

    Attributes:
        total_ns: All of it.
        ttft_ns: Of it, up to its first token: the time to first token of a cold start.
    """

    total_ns: int
    ttft_ns: int


@dataclass(frozen=True)
class Setup:
    """What answers, and how it came to be ready.

    Attributes:
        model: As the user named it; `source` says where weights and tokenizer come from.
        parameters: Number of weights, of `weight_bytes` together.
        arm: The backends that were asked for.
        load_ns: From nothing to a model on its device, with the import of its libraries.
        warm_up: None: there was none, so the first answer is a cold one.
        recording: The store that the answers are recorded into. Times then include what recording costs.
        notes: What else a reader must know of the model.
        engine: `hf` (transformers and torch) or `webgpu`.
    """

    model: str
    source: str
    device: str
    dtype: str
    parameters: int
    weight_bytes: int
    arm: str
    sampling: Sampling
    load_ns: int
    warm_up: WarmUp | None = None
    recording: str | None = None
    notes: Sequence[str] = ()
    engine: str = "hf"


@dataclass(frozen=True)
class Answer:
    """One answer, or as much of it as there is.

    Attributes:
        text: Of its tokens, without the one that ended it.
        tokens: All that the model made, the one that ended it too.
        prompt_tokens: The whole conversation so far, in the form of its template.
        kept_tokens: Of these, what the KV cache had from the answer before: they weren't read again.
        ended: Why there are no more tokens.
        ttft_ns: Time to first token: from the question, a text, to the first token's number on the host. The question
            is made into tokens, the prompt read, the token chosen. None: there is none.
        prefill_ns: Of it, the pass over the prompt with the cache's allocation and the choice of the first token.
        token_ns: For each further token, its pass: from its begin to the token's number on the host.
        total_ns: From the question to the last token, with all that was done between: text made and written. Without a
            token, until it was given up.
        peak_rss_bytes: The most memory that the process ever had resident: loading and warm-up count. None: unknown.
        peak_device_bytes: The most that PyTorch had allocated on the GPU during the answer, weights included.
        failure: What it failed with.
    """

    text: str
    tokens: Sequence[int]
    prompt_tokens: int
    ended: Ended
    ttft_ns: int | None
    prefill_ns: int | None
    token_ns: Sequence[int]
    total_ns: int
    operators: Sequence[OperatorUse]
    peak_rss_bytes: int | None = None
    peak_device_bytes: int | None = None
    failure: InferometerError | None = None
    kept_tokens: int = 0

    @property
    def read_tokens(self) -> int:
        """Tokens of the prompt that were read."""
        return self.prompt_tokens - self.kept_tokens

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Tokens of the prompt that were read, over the time of their pass."""
        return _rate(self.read_tokens, self.prefill_ns)

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Tokens after the first over the sum of their passes."""
        return _rate(len(self.token_ns), sum(self.token_ns))

    @property
    def tokens_per_s(self) -> float | None:
        """All new tokens over the whole time, that to the first token included."""
        return _rate(len(self.tokens), self.total_ns)

    def token_ns_at(self, share: float) -> float | None:
        """The quantile of `token_ns`, between values as NumPy's: 0.5 is the median, 1 the longest."""
        import numpy as np

        return float(np.quantile(self.token_ns, share)) if self.token_ns else None


@dataclass(frozen=True)
class ChatAnswer(Result):
    """An answer with what gave it, for reports; `brief`: only what is new with it."""

    view: ClassVar[str] = "chat.answer"
    setup: Setup
    answer: Answer
    brief: bool = False
    losses: Losses = field(default_factory=lambda: Losses(ALL_TABLES))

    def to_polars(self) -> pl.DataFrame:
        """Which backend ran each operator."""
        return pl.DataFrame([asdict(each) for each in self.answer.operators], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """Setup, text, tokens and every metric."""
        setup, answer = self.setup, self.answer
        warm_up = setup.warm_up
        each = {"median": answer.token_ns_at(0.5), "p95": answer.token_ns_at(0.95), "max": answer.token_ns_at(1)}
        return {
            **{key: value for key, value in asdict(setup).items() if key != "warm_up"},
            "warm_up_ns": None if warm_up is None else warm_up.total_ns,
            "cold_ttft_ns": answer.ttft_ns if warm_up is None else warm_up.ttft_ns,
            "text": answer.text,
            "tokens": list(answer.tokens),
            "prompt_tokens": answer.prompt_tokens,
            "kept_tokens": answer.kept_tokens,
            "new_tokens": len(answer.tokens),
            "ended": answer.ended,
            "error": None if answer.failure is None else str(answer.failure),
            "ttft_ns": answer.ttft_ns,
            "prefill_ns": answer.prefill_ns,
            "token_ns": {**each, "each": list(answer.token_ns)},
            "total_ns": answer.total_ns,
            "prefill_tokens_per_s": answer.prefill_tokens_per_s,
            "decode_tokens_per_s": answer.decode_tokens_per_s,
            "tokens_per_s": answer.tokens_per_s,
            "peak_rss_bytes": answer.peak_rss_bytes,
            "peak_device_bytes": answer.peak_device_bytes,
            "operators": [asdict(use) for use in answer.operators],
        }


def _rate(tokens: int, time_ns: int | None) -> float | None:
    return tokens * 1e9 / time_ns if tokens and time_ns else None
