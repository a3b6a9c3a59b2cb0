"""The tools that write a benchmark's result, and what their fields mean.

Source: vLLM `benchmarks/serve.py`, `latency.py` and `throughput.py` (main, read 2026-11-22) and their `--save-result`,
`--append-result`, `--save-detailed` and `--output-json`; SGLang 0.5.23 `benchmark/serving.py` (`--output-file`,
`--output-details`), `one_batch.py`, `one_batch_server.py` and `offline_throughput.py` (`--result-filename`). What a
number means is these tools' own affair, with three traps that are dealt with here:

- Both write 0 where they measured nothing (no streaming, one token a request): 0 and less are null.
- Inter-token latencies of OpenAI-like endpoints are of streamed chunks, which hold several tokens where the engine
  speculates or streams in intervals. SGLang's own endpoint divides a chunk's time by its tokens (`itl_of`).
- `output_throughput` is over the whole run, but in `bench_one_batch_server` over the time after the first tokens: that
  is `decode_tokens_per_s` here.

Left out: goodput, cache reports, texts, errors, probes and what embedding and diffusion runs add.
"""

import re
from collections.abc import Callable
from pathlib import Path

from inferometer.errors import FormatError, InputError, printable
from inferometer.formats.serving_results.json_runs import RunFields, read_runs
from inferometer.formats.serving_results.requests import fill_from_requests, read_requests
from inferometer.formats.serving_results.serving import Latency, Serving
from inferometer.formats.source import Limits
from inferometer.units import format_duration

VLLM, SGLANG = "vllm bench serve", "sglang bench_serving"
_MS, _S = 1e6, 1e9  # ns
_STATISTIC = re.compile(
    r"(?P<statistic>mean|median|std|max|p(?P<percent>\d{1,3}(?:\.\d{1,6})?))_(?P<latency>ttft|tpot|itl|e2el|e2e_latency)_ms"
)
_NAMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e", "e2e_latency": "e2e"}
_DIVIDES = ("sglang", "sglang-native")  # backends of SGLang's client that divide a chunk's time by its tokens
_RETOKENIZED = ("sglang-oai", "sglang-oai-chat")  # … and those that do so where the engine speculates
_LISTED = 20  # runs in an error
_WANTED = "a result of vLLM's or SGLang's benchmarks"
_HINT = (
    "Give what `vllm bench serve --save-result` or `python -m sglang.bench_serving --output-file` wrote; also known: "
    "vllm bench latency and throughput, SGLang's bench_one_batch, bench_one_batch_server and bench_offline_throughput."
)


def read_all(path: str | Path, *, limits: Limits | None = None) -> list[Serving]:
    """All runs of a file, in its order."""
    runs = read_runs(path, limits=limits, wanted=_WANTED, hint=_HINT)
    return [_read_run(fields, number, len(runs)) for number, fields in enumerate(runs)]


def choose_run(path: str | Path, found: list[Serving], run: int | None) -> Serving:
    """The run of this number, or the only one.

    Raises:
        InputError: There are several and none was chosen, or there is no such run; the hint lists them.
    """
    if run is None and len(found) == 1:
        return found[0]
    if run is None or not 0 <= run < len(found):
        wanted = "one run of several" if run is None else f"run {run}"
        raise InputError(
            f"{printable(str(path))}: expected {wanted}, found {len(found):,}, numbered from 0",
            hint="\n".join(["Choose one by its number, with --serving-run N or in Python run=N:", *_list(found)]),
        )
    return found[run]


def _list(found: list[Serving]) -> list[str]:
    more = [f"… and {len(found) - _LISTED:,} more"] if len(found) > _LISTED else []
    return [*(f"{serving.run}: {serving.describe()}" for serving in found[:_LISTED]), *more]


def _read_run(run: RunFields, number: int, runs: int) -> Serving:
    for needed, read in _KINDS:
        if run.has(*needed):
            return read(run, number, runs)
    if run.has("traceEvents"):
        raise FormatError(f"{run.where}: expected {_WANTED}, found a trace", hint="Give traces as the first argument.")
    named = ", ".join(f'"{name}"' for name in run.names[:8]) or "none"
    raise FormatError(f"{run.where}: expected {_WANTED}, found an object with the fields {named}", hint=_HINT)


def _read_online(run: RunFields, number: int, runs: int) -> Serving:
    """`vllm bench serve`, SGLang's `bench_serving`: their fields differ in a few names only."""
    is_sglang = run.has("mean_e2e_latency_ms")
    backend, accept = run.text("backend") or run.text("endpoint_type"), _accept_length(run)
    is_retokenized = is_sglang and backend in _RETOKENIZED and accept is not None
    per_token = is_retokenized or (is_sglang and backend in _DIVIDES)
    latencies, unmeasured = _latencies(run)
    notes = (f"The benchmark measured no {', '.join(unmeasured)}: its file has 0 there.",) if unmeasured else ()
    requests = read_requests(run)
    serving = Serving(
        source=run.source,
        tool=SGLANG if is_sglang else VLLM,
        run=number,
        runs=runs,
        model=run.text("model_id") or run.text("model"),
        backend=backend,
        date=run.text("date"),
        duration_ns=run.ns("duration", _S),
        completed=run.count("completed"),
        failed=run.count("failed"),
        input_tokens=run.count("total_input_tokens"),
        output_tokens=run.count("total_output_tokens"),
        requests_per_s=run.positive("request_throughput"),
        input_tokens_per_s=run.positive("input_throughput"),
        output_tokens_per_s=run.positive("output_throughput"),
        total_tokens_per_s=run.positive("total_token_throughput") or run.positive("total_throughput"),
        request_rate_per_s=run.rate("request_rate"),
        concurrency=run.positive("concurrency"),
        max_concurrency=run.count("max_concurrency"),
        peak_concurrency=run.count("max_concurrent_requests"),
        accept_length=accept,
        itl_of="token" if per_token else "chunk",
        requests=requests.frame,
        notes=notes,
        ttft=latencies.get("ttft", Latency()),
        tpot=latencies.get("tpot", Latency()),
        itl=latencies.get("itl", Latency()),
        e2e=latencies.get("e2e", Latency()),
    )
    return serving if is_retokenized else fill_from_requests(serving, requests)


def _accept_length(run: RunFields) -> float | None:
    """Tokens that a sequence gets of a step with drafts, on average; below 1 the tools mean "none"."""
    value = run.positive("accept_length") or run.positive("spec_decode_acceptance_length") or run.positive("acc_length")
    return value if value is not None and value >= 1 else None


def _latencies(run: RunFields) -> tuple[dict[str, Latency], list[str]]:
    """The latencies that a run has, and the names of those that it writes as 0."""
    numbers: dict[str, dict[str, float]] = {}
    percentiles: dict[str, dict[float, float]] = {}
    unmeasured: dict[str, None] = {}
    for name in run.names:
        if not (match := _STATISTIC.fullmatch(name)) or run.number(name) is None:
            continue
        of, value = _NAMES[match["latency"]], run.ns(name, _MS)
        if value is None:
            if match["statistic"] == "mean":
                unmeasured[of] = None
        elif match["percent"] and 0 <= float(match["percent"]) <= 100:
            percentiles.setdefault(of, {})[float(match["percent"])] = value
        elif not match["percent"]:
            numbers.setdefault(of, {})[f"{match['statistic']}_ns"] = value
    found = {}
    for of in dict.fromkeys([*numbers, *percentiles]):
        own = dict(sorted(percentiles.get(of, {}).items()))
        median = {"median_ns": own[50.0]} if 50.0 in own else {}
        found[of] = Latency(**{**median, **numbers.get(of, {})}, percentiles_ns=own)
    return found, list(unmeasured)


def _read_latency(run: RunFields, number: int, runs: int) -> Serving:
    """`vllm bench latency`: seconds that a whole batch took, again and again. How large it was isn't written."""
    percents = run.child("percentiles")
    percentiles = {
        float(name): value
        for name in percents.names
        if re.fullmatch(r"\d{1,3}(\.\d{1,6})?", name) and (value := percents.ns(name, _S)) is not None
    }
    latency = Latency(
        mean_ns=run.ns("avg_latency", _S),
        median_ns=percentiles.get(50.0),
        std_ns=run.ns("std_latency", _S),
        percentiles_ns=dict(sorted(percentiles.items())),
    )
    return Serving(source=run.source, tool="vllm bench latency", run=number, runs=runs, e2e=latency)


def _read_throughput(run: RunFields, number: int, runs: int) -> Serving:
    """`vllm bench throughput`: all requests at once, without a server."""
    return Serving(
        source=run.source,
        tool="vllm bench throughput",
        run=number,
        runs=runs,
        duration_ns=run.ns("elapsed_time", _S),
        completed=run.count("num_requests"),
        requests_per_s=run.positive("requests_per_second"),
        total_tokens_per_s=run.positive("tokens_per_second"),
    )


def _read_one_batch(run: RunFields, number: int, runs: int) -> Serving:
    """SGLang's `bench_one_batch`: one prefill of all prompts, then decode steps, each timed by itself; no server."""
    batch = run.count("batch_size")
    prompt, output = run.count("input_len"), run.count("output_len")
    step_ns = run.ns("median_decode_latency", _S)
    return Serving(
        source=run.source,
        tool="sglang bench_one_batch",
        run=number,
        runs=runs,
        label=run.text("run_name"),
        duration_ns=run.ns("total_latency", _S),
        completed=batch,
        input_tokens=None if batch is None or prompt is None else batch * prompt,
        output_tokens=None if batch is None or output is None else batch * output,
        input_tokens_per_s=run.positive("prefill_throughput"),
        decode_tokens_per_s=run.positive("median_decode_throughput"),
        total_tokens_per_s=run.positive("overall_throughput"),
        max_concurrency=batch,
        prompts_together=True,
        ttft=Latency(mean_ns=run.ns("prefill_latency", _S)),
        tpot=Latency(median_ns=step_ns),
    )


def _read_one_batch_server(run: RunFields, number: int, runs: int) -> Serving:
    """SGLang's `bench_one_batch_server`: one batch of equal requests; the last of their first tokens is timed."""
    batch, prompt = run.count("batch_size"), run.count("input_len")
    output, last_ns = run.count("total_output_tokens"), run.ns("last_ttft", _S)
    last = f"Of the times to the first token, only the last is known: {format_duration(last_ns)}."
    return Serving(
        source=run.source,
        tool="sglang bench_one_batch_server",
        run=number,
        runs=runs,
        label=run.text("run_name"),
        duration_ns=run.ns("latency", _S),
        completed=batch,
        input_tokens=None if batch is None or prompt is None else batch * prompt,
        output_tokens=output,
        input_tokens_per_s=run.positive("input_throughput"),
        decode_tokens_per_s=run.positive("output_throughput"),
        total_tokens_per_s=run.positive("overall_throughput"),
        max_concurrency=batch,
        accept_length=_accept_length(run),
        ttft=Latency(max_ns=last_ns),
        notes=() if last_ns is None else (last,),
    )


def _read_offline(run: RunFields, number: int, runs: int) -> Serving:
    """SGLang's `bench_offline_throughput`: all requests at once, without a server."""
    return Serving(
        source=run.source,
        tool="sglang bench_offline_throughput",
        run=number,
        runs=runs,
        backend=run.text("backend"),
        duration_ns=run.ns("total_latency", _S),
        completed=run.count("successful_requests"),
        input_tokens=run.count("total_input_tokens"),
        output_tokens=run.count("total_output_tokens"),
        requests_per_s=run.positive("request_throughput"),
        input_tokens_per_s=run.positive("input_throughput"),
        output_tokens_per_s=run.positive("output_throughput"),
        total_tokens_per_s=run.positive("total_throughput"),
    )


_KINDS: tuple[tuple[tuple[str, ...], Callable[[RunFields, int, int], Serving]], ...] = (  # fields that show the tool
    (("mean_e2e_latency_ms",), _read_online),
    (("total_token_throughput",), _read_online),
    (("mean_ttft_ms",), _read_online),
    (("last_ttft", "latency"), _read_one_batch_server),
    (("prefill_latency", "overall_throughput"), _read_one_batch),
    (("avg_latency", "percentiles"), _read_latency),
    (("elapsed_time", "requests_per_second"), _read_throughput),
    (("request_throughput", "total_latency"), _read_offline),
)
