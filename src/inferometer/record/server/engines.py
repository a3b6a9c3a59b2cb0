"""Which engine a server is, what it says of itself, and how its profiler is started and stopped.

Sources: SGLang's guide "Benchmark and Profiling" and its HTTP server (0.4 to 0.5; `/get_server_info` became
`/server_info`, the old name still answers), vLLM's guide "Profiling vLLM" (0.5.5 to 0.12: `VLLM_TORCH_PROFILER_DIR`;
from 0.13 on `--profiler-config`) and its HTTP server, read 2026-11-22. An engine is recognised by its answers, not its
port.

Only the arguments listed here are kept: SGLang's answer also holds its API keys.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from inferometer.errors import InputError
from inferometer.record.server.http import Answer, Http
from inferometer.record.server.metrics import labels_of

Engine = Literal["sglang", "vllm"]
Argument = str | int | float | bool

_LONGEST = 200
_SGLANG_ARGUMENTS = (
    "tp_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "nnodes",
    "enable_dp_attention",
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "sampling_backend",
    "moe_runner_backend",
    "quantization",
    "dtype",
    "kv_cache_dtype",
    "page_size",
    "context_length",
    "max_running_requests",
    "max_total_num_tokens",
    "max_prefill_tokens",
    "chunked_prefill_size",
    "mem_fraction_static",
    "schedule_policy",
    "disable_cuda_graph",
    "cuda_graph_max_bs",
    "disable_radix_cache",
    "disable_overlap_schedule",
    "enable_torch_compile",
    "speculative_algorithm",
    "disaggregation_mode",
)
_VLLM_ARGUMENTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "quantization",
    "dtype",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enforce_eager",
    "attention_backend",
    "backend",
    "block_size",
    "cache_dtype",
    "gpu_memory_utilization",
    "num_gpu_blocks",
    "enable_prefix_caching",
)
_PRINTED = re.compile(r"\b(\w+)=(?:'([^']*)'|([\w.+-]+))")
_KEY_HINT = "Give its API key in the environment variable INFEROMETER_API_KEY."
_START_VLLM = (
    "vLLM profiles only when it was started for it. Start it again with\n"
    '  vllm serve MODEL --profiler-config \'{"profiler": "torch", "torch_profiler_dir": "/DIR"}\'   (0.13 and later)\n'
    "  VLLM_TORCH_PROFILER_DIR=/DIR vllm serve MODEL                                              (before 0.13)\n"
    "and give the same folder here: --traces /DIR"
)


@dataclass(frozen=True)
class Server:
    """A running engine. `ranks`: how many trace files it will write here, where it says; `traces`: where to."""

    engine: Engine
    version: str | None = None
    model: str | None = None
    ranks: int | None = None
    arguments: dict[str, Argument] = field(default_factory=dict)
    traces: str | None = None

    @property
    def name(self) -> str:
        """For messages."""
        called = {"sglang": "SGLang", "vllm": "vLLM"}[self.engine]
        return f"{called} {self.version}" if self.version else called


def find_server(http: Http, timeout_s: float) -> Server:
    """Ask the server what it is.

    Raises:
        InputError: It is neither SGLang nor vLLM, or wants a key.
        NoAnswer: Nothing answers there.
    """
    models = http.get("/v1/models", timeout_s)
    _refuse_key(models)
    info = _first_ok(http, ("/server_info?config_format=json", "/get_server_info"), timeout_s)
    about, owner, model = info.json(), *_model(models.json())
    if owner == "sglang" or "internal_states" in about or {"model_path", "tp_size"} <= about.keys():
        return _sglang(http, about, model, timeout_s)
    version = http.get("/version", timeout_s)
    if owner == "vllm" or (model and isinstance(version.json().get("version"), str)):
        return _vllm(about, _text(version.json().get("version")), model, http.get("/metrics", timeout_s))
    raise InputError(
        f"{http.url}: neither vLLM nor SGLang; it answered /v1/models with {models.describe()}",
        hint="Give the address of the engine itself, not that of a router or a web page.",
    )


def profile_body(server: Server, folder: str | None, steps: int | None, *, stacks: bool, shapes: bool) -> Any:
    """What POST /start_profile takes: SGLang an object, vLLM nothing."""
    if server.engine == "vllm":
        return None
    asked = {"output_dir": folder, "num_steps": steps}
    return {
        "activities": ["CPU", "GPU"],
        "with_stack": stacks,
        "record_shapes": shapes,
        **{name: value for name, value in asked.items() if value is not None},
    }


def check_started(server: Server, answer: Answer) -> None:
    """Raise `InputError` unless the profiler was started, with what to do."""
    _refuse_key(answer)
    if answer.is_ok and not answer.is_page:
        return
    if answer.status in (404, 405):
        hint = _START_VLLM if server.engine == "vllm" else "Is this a router? Give the address of the engine itself."
        raise InputError(f"{answer.about}: this server can't start a profiler ({answer.status})", hint=hint)
    known = "already" in answer.text.lower()
    raise InputError(
        f"{answer.about}: {'a profiler is running already' if known else 'the profiler was not started'}: "
        f"{answer.describe()}",
        hint="One may be running already: stop it with POST /stop_profile. The server's log says more.",
    )


def _first_ok(http: Http, paths: Sequence[str], timeout_s: float) -> Answer:
    """The first answer with an object, else the last."""
    first, *others = paths
    answer = http.get(first, timeout_s)
    return answer if answer.json() or not others else _first_ok(http, others, timeout_s)


def _refuse_key(answer: Answer) -> None:
    if answer.status in (401, 403):
        raise InputError(f"{answer.about}: the server wants a key ({answer.status})", hint=_KEY_HINT)


def _model(models: dict[str, Any]) -> tuple[str | None, str | None]:
    """Owner and name of the first model listed: engines call themselves the owner."""
    data = models.get("data")
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    return _text(first.get("owned_by")), _text(first.get("id"))


def _sglang(http: Http, about: dict[str, Any], model: str | None, timeout_s: float) -> Server:
    if not isinstance(about.get("model_path"), str):
        about = http.get("/get_model_info", timeout_s).json() | about
    arguments = _chosen(about, _SGLANG_ARGUMENTS)
    ranks = _product(arguments, ("tp_size", "pp_size"))
    if ranks and arguments.get("enable_dp_attention") is not True:
        ranks *= _count(arguments.get("dp_size"))
    ranks = ranks and max(1, ranks // _count(arguments.get("nnodes")))
    return Server("sglang", _text(about.get("version")), _text(about.get("model_path")) or model, ranks, arguments)


def _vllm(about: dict[str, Any], version: str | None, model: str | None, metrics: Answer) -> Server:
    config = about.get("vllm_config")
    flat: dict[str, Any] = {}
    if isinstance(config, dict):
        flat = _flattened(config)
    elif isinstance(config, str):
        flat = {name: quoted or _plain(bare) for name, quoted, bare in _PRINTED.findall(config)}
    cache = labels_of(metrics.text, "vllm:cache_config_info") if metrics.is_ok else {}
    arguments = _chosen({**cache, **flat}, _VLLM_ARGUMENTS)
    ranks = _product(arguments, ("tensor_parallel_size", "pipeline_parallel_size"))
    return Server(
        "vllm",
        version,
        model or _text(flat.get("model")),
        ranks and ranks * _count(arguments.get("data_parallel_size")),
        arguments,
        _text(flat.get("torch_profiler_dir")),
    )


def _flattened(config: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration and of its parts, one level deep."""
    parts = [part for part in config.values() if isinstance(part, dict)]
    return {name: value for part in (*parts, config) for name, value in part.items()}


def _chosen(about: dict[str, Any], names: Sequence[str]) -> dict[str, Argument]:
    """Plain values of `names`; texts are cut."""
    found = {name: about.get(name) for name in names}
    return {
        name: value[:_LONGEST] if isinstance(value, str) else value
        for name, value in found.items()
        if isinstance(value, str | int | float)
    }


def _product(arguments: dict[str, Argument], names: tuple[str, ...]) -> int | None:
    """Of the first, which must be there, and the others."""
    if names[0] not in arguments:
        return None
    product = 1
    for name in names:
        product *= _count(arguments.get(name))
    return product


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 20 else 1


def _plain(text: str) -> object:
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    return int(text) if text.isdecimal() and len(text) < 18 else text


def _text(value: object) -> str | None:
    return value[:_LONGEST] if isinstance(value, str) and value else None
