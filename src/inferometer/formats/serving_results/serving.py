"""What a benchmark says of one run of a server: latencies, throughputs, and how many requests were under way.

Times are ns; the tools' milliseconds and seconds are decimals, so statistics are floats to the picosecond. Absent is
null. Latencies are as clients see them:

    ttft   from sending a request to its first token
    itl    between two tokens, or chunks of them, of one request
    tpot   (end - first token) / (tokens - 1) of a request, then over requests
    e2e    from sending a request to its last token
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import polars as pl

from inferometer.units import format_count, format_duration, format_sample

REQUESTS = pl.Schema(
    {
        "input_tokens": pl.Int64(),
        "output_tokens": pl.Int64(),
        "start_ns": pl.Float64(),  # on the client's clock
        "ttft_ns": pl.Float64(),
        "decode_ns": pl.Float64(),  # from the first to the last chunk
        "chunks": pl.Int64(),  # after the first
    }
)


class Latency(msgspec.Struct, frozen=True):
    """Statistics of one latency over requests, tokens or chunks. `percentiles_ns`: by percent, 0 to 100."""

    mean_ns: float | None = None
    median_ns: float | None = None
    std_ns: float | None = None
    max_ns: float | None = None
    percentiles_ns: Mapping[float, float] = msgspec.field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether a mean or a median is there."""
        return self.mean_ns is not None or self.median_ns is not None

    def times(self, factor: float) -> "Latency":
        """Each statistic, so many times."""
        mean, median, std, most = (
            None if value is None else value * factor
            for value in (self.mean_ns, self.median_ns, self.std_ns, self.max_ns)
        )
        return Latency(mean, median, std, most, {p: value * factor for p, value in self.percentiles_ns.items()})

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        percentiles = {f"{percent:g}": value for percent, value in self.percentiles_ns.items()}
        numbers = {name: getattr(self, name) for name in ("mean_ns", "median_ns", "std_ns", "max_ns")}
        return {**numbers, "percentiles_ns": percentiles}


class Serving(msgspec.Struct, frozen=True):
    """One run of a benchmark, or what an engine printed of itself. All but `source` and `tool` may be absent.

    `run`: its number in the file, of `runs`. `requests_per_s` to `total_tokens_per_s` are over the whole run,
    `decode_tokens_per_s` over the time in which tokens after the first were made. `request_rate_per_s`: how fast the
    client sent; None is all at once, or not given. `concurrency`: requests under way on average; `max_concurrency`: the
    limit that the client kept; `peak_concurrency`: the most that there were. `accept_length`: tokens that a sequence
    gets of one step with drafts, on average. `itl_of`: what `itl` is between. `prompts_together`: one step read all
    prompts. `requests`: one row per request (`REQUESTS`), empty where the file has no details; failed ones have nulls.
    """

    source: str
    tool: str
    run: int = 0
    runs: int = 1
    model: str | None = None
    backend: str | None = None
    label: str | None = None
    date: str | None = None
    duration_ns: float | None = None
    completed: int | None = None
    failed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests_per_s: float | None = None
    input_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    request_rate_per_s: float | None = None
    concurrency: float | None = None
    max_concurrency: int | None = None
    peak_concurrency: int | None = None
    accept_length: float | None = None
    itl_of: Literal["token", "chunk"] | None = None
    prompts_together: bool = False
    ttft: Latency = msgspec.field(default_factory=Latency)
    tpot: Latency = msgspec.field(default_factory=Latency)
    itl: Latency = msgspec.field(default_factory=Latency)
    e2e: Latency = msgspec.field(default_factory=Latency)
    requests: pl.DataFrame = msgspec.field(default_factory=REQUESTS.to_frame)
    notes: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> float | None:
        """Tokens of a prompt, on average over the completed requests."""
        return self.input_tokens / self.completed if self.input_tokens and self.completed else None

    @property
    def most_requests(self) -> int | None:
        """More requests were never under way: the client's limit, else the peak if all requests count in it."""
        return self.max_concurrency or (self.peak_concurrency if not self.failed else None) or None

    def describe(self) -> str:
        """What tells it from other runs, on one line."""
        named = [self.tool, self.model, self.label, self.backend, self.date]
        rate = None if self.request_rate_per_s is None else f"{format_sample(self.request_rate_per_s)} requests/s sent"
        limit = None if self.max_concurrency is None else f"at most {format_count(self.max_concurrency)} at once"
        requests = "request" if self.completed == 1 else "requests"
        done = None if self.completed is None else f"{format_count(self.completed)} {requests}"
        ttft, token = self.ttft.mean_ns, self.tpot.mean_ns or self.tpot.median_ns
        first = None if ttft is None else f"{format_duration(ttft)} to the first token"
        then = None if token is None else f"{format_duration(token)} per token"
        return ", ".join(word for word in (*named, rate, limit, done, first, then) if word)

    def as_json(self) -> dict[str, Any]:
        """Plain data, without `requests`."""
        latencies = {name: getattr(self, name).as_json() for name in ("ttft", "tpot", "itl", "e2e")}
        names = (
            *(
                "source",
                "tool",
                "run",
                "runs",
                "model",
                "backend",
                "label",
                "date",
                "duration_ns",
                "completed",
                "failed",
            ),
            *("input_tokens", "output_tokens", "requests_per_s", "input_tokens_per_s", "output_tokens_per_s"),
            *("decode_tokens_per_s", "total_tokens_per_s", "request_rate_per_s", "concurrency", "max_concurrency"),
            *("peak_concurrency", "accept_length", "itl_of", "prompts_together"),
        )
        return {**{name: getattr(self, name) for name in names}, **latencies, "notes": list(self.notes)}
