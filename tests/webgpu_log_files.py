"""Logs of a WebGPU engine as tests need them: one run in the engine's grammar, healthy unless a fault is planted.

A class of kernels is a label in which `L*` stands for each layer: `matmul:q_proj:L*`, `fused:L*.ffn_down`, `attention`.
Its time is what one label takes, in ms: of the prompt in the prefill, of one token in decode, where it may depend on
the KV positions that the token attends. By default each class takes what its bytes need at `bandwidth_gb_s`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Time = float | Callable[[float], float]
RULE = "─" * 50
_LAYER = "L*"


@dataclass(frozen=True)
class Dims:
    """Dimensions of a decoder with gated FFN and grouped attention; weights and KV have two bytes an element."""

    layers: int = 12
    hidden: int = 2048
    heads: int = 16
    kv_heads: int = 4
    head_dim: int = 128
    ffn: int = 5632
    vocab: int = 32_000

    def matrices(self) -> dict[str, int]:
        """Elements of each weight of a layer."""
        attention = self.hidden * self.head_dim
        return {
            "q_proj": attention * self.heads,
            "k_proj": attention * self.kv_heads,
            "v_proj": attention * self.kv_heads,
            "o_proj": attention * self.heads,
            "ffn_gate": self.hidden * self.ffn,
            "ffn_up": self.hidden * self.ffn,
            "ffn_down": self.hidden * self.ffn,
        }

    @property
    def weight_bytes(self) -> int:
        """All weights, the embedding once."""
        return 2 * (self.layers * sum(self.matrices().values()) + self.vocab * self.hidden)


@dataclass(frozen=True)
class Log:
    """What a log says; `text` is the log itself. Everything not named is a healthy run.

    `decode` and `prefill` replace or add classes of the usual ones (None removes one). `words` renames roles and ops
    in all labels (`{"q_proj": "wq", "matmul": "gemv"}`), `syntax` writes all layers as `op:role:L0` (`colon`) or
    `op:L0.role` (`dot`). `batches` decode batches of `batch_tokens`, then one of `tail` where it isn't 0.
    `disturbed` says by which factor classes (`*`: all) take longer in a batch, `gaps_ms` the wall time beyond the GPU's
    of single batches, `gap_ms` that of all others. `first_touch` multiplies the prefill's times in a layer.
    """

    model: str = "tiny-chat-1b"
    dims: Dims = field(default_factory=Dims)
    bandwidth_gb_s: float = 100.0
    launch_ms: float = 0.004
    syntax: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    decode: Mapping[str, Time | None] = field(default_factory=dict)
    prefill: Mapping[str, float | None] = field(default_factory=dict)
    prompt: str = "Say something."
    prompt_tokens: int = 16
    batches: int = 16
    batch_tokens: int = 4
    tail: int = 0
    noise: float = 0.004
    seed: int = 1
    disturbed: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    gap_ms: float = 1.0
    gaps_ms: Mapping[int, float] = field(default_factory=dict)
    prefill_gap_ms: float = 2.0
    sampling_ms: float = 1.0
    first_touch: Mapping[int, float] = field(default_factory=dict)
    start_ms: float = 150.0
    load_ms: float = 900.0
    device: str = "acme vulkan-1"
    features: Sequence[str] = ("f16", "subgroups")
    adapter_limit: str = "4.0GB"
    plan: tuple[str, int, int] | None = ("tiny-f16", 17, 11)
    selections: Sequence[tuple[str, str, str]] | None = None
    selected: bool = True
    tokenizer_vocab: int | None = None
    zero_byte_load: bool = False
    pool_factor: float = 1.0
    query_set_fallback: bool = False
    final_norm_fallback: bool = False
    not_found: bool = False
    rate_counts_first: bool = False
    tag: str | None = "browser"
    profile_level: str = "log"
    unit: str = "ms"
    digits: int = 2
    label_width: int = 25
    extra_columns: bool = False
    rule: str = RULE
    results: bool = True
    warmup_ms: float = 0.0

    @property
    def text(self) -> str:
        """The log."""
        return "\n".join(_Writer(self).lines()) + "\n"


def write_log(**changes: object) -> str:
    """The text of a `Log` with these fields."""
    return Log(**changes).text  # type: ignore[arg-type]


def usual_decode(dims: Dims, bandwidth_gb_s: float = 100.0, launch_ms: float = 0.004) -> dict[str, Time]:
    """ms per token that each label takes when it moves its bytes at this bandwidth."""

    def moves(elements: float) -> float:
        return launch_ms + 2 * elements / bandwidth_gb_s * 1e-6

    def attention(kv: float) -> float:
        return dims.layers * moves(2 * kv * dims.kv_heads * dims.head_dim)

    small = dims.layers * launch_ms
    return {
        **{f"matmul:{role}:L*": moves(elements) for role, elements in dims.matrices().items()},
        "matmul:lm_head": moves(dims.vocab * dims.hidden),
        "attention": attention,
        "rmsnorm": 2 * small,
        "rope": 2 * small,
        "silu": small,
        "residual_add": 2 * small,
        "gather": 2 * launch_ms,
        "sample_phase1": 2 * launch_ms,
        "sample_phase2": 2 * launch_ms,
        "sample_phase3": 2 * launch_ms,
    }


def usual_prefill(log: Log) -> dict[str, float]:
    """ms that each label takes for a short prompt: the weights are moved once, as for one token."""
    kv = log.prompt_tokens / 2
    decode = usual_decode(log.dims, log.bandwidth_gb_s, log.launch_ms)
    times = {name: time(kv) * log.prompt_tokens if callable(time) else time for name, time in decode.items()}
    return {name: ms for name, ms in times.items() if not name.startswith("sample")}


class _Writer:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.ms = log.start_ms
        self.out: list[str] = []
        self.random = random.Random(log.seed)

    def lines(self) -> list[str]:
        self._start()
        self._load()
        begin = self.ms
        prefill_ms = self._prefill()
        ttft_ms = prefill_ms + self.log.sampling_ms
        self.ms = begin + ttft_ms
        tokens = self._decode()
        self.ms = round(self.ms + 0.4, 1)
        decode_ms = round(self.ms, 1) - round(begin + ttft_ms, 1)
        self._end(ttft_ms, prefill_ms, decode_ms, tokens)
        return self.out

    def _say(self, module: str, text: str, level: str = "log", *, after_ms: float = 0.1) -> None:
        self.ms += after_ms
        relay = f"[{self.log.tag}:{level}] " if self.log.tag else ""
        self.out.append(f"{relay}[{self.ms:.1f}ms][{module}] {text}")

    def _start(self) -> None:
        log, d = self.log, self.log.dims
        relay = f"[{log.tag}:log] " if log.tag else ""
        self.out.append(f"[progress] {log.tag or 'node'} launching WebGPU harness...")
        self.out.append(f"[progress] {log.tag or 'node'} resolved modelUrl=/models/local/{log.model}")
        if log.not_found:
            text = "Failed to load resource: the server responded with a status of 404 (Not Found)"
            self.out.append(f"[{log.tag or 'node'}:error] {text}")
        self._say("OPFSCache", f'Cache hit: "{log.model}"')
        self.out.append(f"{relay}[GPU] {log.device}, {'/'.join(log.features)}, {log.adapter_limit}")
        self._say("Config", "Using manifest-first config (source of truth)", after_ms=8)
        path = log.plan[0] if log.plan else "default"
        if log.plan:
            self._say(
                "Pipeline", f"KernelPath: {path} ({log.plan[1]} decode steps, {log.plan[2]} kernels, source=config)"
            )
        self._say("Pipeline", f"{d.layers}L/{d.hidden}H/{d.heads}heads ({d.head_dim}dim), kernelPath={path}")
        vocab = d.vocab if log.tokenizer_vocab is None else log.tokenizer_vocab
        self._say("Tokenizer", "Loading bundled tokenizer from tokenizer.json")
        self._say("Tokenizer", 'HuggingFace model.type="BPE", using type="bpe"', after_ms=40)
        words = f"Loaded HuggingFace {vocab} tokens (bpe), 4 special patterns, {2 * vocab} merges"
        self._say("Tokenizer", words, after_ms=60)
        if vocab != d.vocab:
            self._say("Pipeline", f"Tokenizer vocabSize={vocab} differs from model={d.vocab}, using model size")

    def _load(self) -> None:
        log, d = self.log, self.log.dims
        say = self._say
        say("Loader", "Initializing...")
        say("HeapManager", "Allocated segment 0: 1024MB", after_ms=20)
        say("HeapManager", "Segmented heap: 1GB per segment")
        say("HeapManager", "Initialized with strategy: SEGMENTED")
        say("Loader", f"Initialized ({', '.join(log.features)}, unified)")
        say("Loader", f"Loading: {log.model}")
        began = self.ms
        self._memory("start", 0.0, 0, 0)
        say(
            "Loader",
            f"Embeddings tensor loaded: name=model.embed_tokens.weight, hasShape=true, shape=[{d.vocab},{d.hidden}], "
            "isWeightBuffer=true",
            after_ms=log.load_ms * 0.4,
        )
        say("Loader", f"Layers: 0-{d.layers - 1}")
        say("Loader", f"Layers: {d.layers} complete ({log.load_ms * 0.0005:.2f}s)", after_ms=log.load_ms * 0.5)
        if log.final_norm_fallback:
            say(
                "Loader",
                "[FinalNorm] Falling back to role-only final norm selection because tensor groups are missing.",
                "warning",
            )
        seconds = (self.ms - began) / 1000
        size = 0 if log.zero_byte_load else d.weight_bytes
        rate = _size(0 if log.zero_byte_load else size / seconds)
        say("Loader", f"Complete: {_size(size)} in {seconds:.2f}s ({rate}/s)")
        self._memory("complete", seconds, d.weight_bytes, 13 * d.layers + 2)
        say("Pipeline", "Model loaded successfully", after_ms=log.load_ms * 0.1)
        if log.query_set_fallback:
            say("CommandRecorder", "maxQuerySetSize unavailable; using fallback 4096", "warning")

    def _memory(self, when: str, seconds: float, size: int, buffers: int) -> None:
        gpu = _size(size * self.log.pool_factor)
        layers = self.log.dims.layers if buffers else 0
        self._say(
            "Loader",
            f"[{seconds:.1f}s] Memory ({when}): | Heap=1.10 GB/1.10 GB (limit=4.00 GB) | GPU={gpu} "
            f"({buffers} active, 0 pooled, peak={gpu}) | ShardCache=0 B (0 shards) | "
            f"Layers={layers}, GPUBuffers={buffers}",
        )

    def _prefill(self) -> float:
        log = self.log
        classes = _classes(usual_prefill(log), log.prefill)
        rows = []
        for name, time in classes.items():
            for layer, label in self._labels(name):
                factor = log.first_touch.get(layer, 1.0) if layer is not None else 1.0
                rows.append((label, float(time) * factor * self._jitter()))  # type: ignore[arg-type]
        wall = round(sum(ms for _, ms in rows) + log.prefill_gap_ms, 1)
        self._select("prefill")
        began = self.ms
        self.ms = began + wall
        self._report("Prefill (prefill)", rows)
        return wall

    def _decode(self) -> int:
        log = self.log
        classes = _classes(usual_decode(log.dims, log.bandwidth_gb_s, log.launch_ms), log.decode)
        self._select("decode")
        context, sizes = log.prompt_tokens, [log.batch_tokens] * log.batches + [log.tail] * bool(log.tail)
        for batch, n in enumerate(sizes):
            slower = log.disturbed.get(batch, {})
            rows = []
            for name, time in classes.items():
                factor = n * slower.get(name, slower.get("*", 1.0))
                for _, label in self._labels(name):
                    ms = time(context + (n + 1) / 2) if callable(time) else float(time or 0)
                    rows.append((label, ms * factor * self._jitter()))
            gap = log.gaps_ms.get(batch, log.gap_ms) + (log.warmup_ms if batch == 0 else 0)
            self.ms += sum(ms for _, ms in rows) + gap
            context += n
            self._report(f"Batch decode (N={n})", rows)
        return context - log.prompt_tokens + 1

    def _select(self, phase: str) -> None:
        default = [("matmul", f"{phase}_f16", "path_override"), ("attention", f"{phase}_f16", "path_override")]
        chosen = self.log.selections if self.log.selections is not None else default
        if self.log.selected and not (phase == "decode" and self.log.selections is not None):
            for op, variant, reason in chosen:
                self._say("KernelSelect", f"{op} variant={variant} reason={reason}", after_ms=0)

    def _labels(self, name: str) -> list[tuple[int | None, str]]:
        label = _spelled(name, self.log)
        if _LAYER not in label:
            return [(None, label)]
        return [(layer, label.replace(_LAYER, f"L{layer}")) for layer in range(self.log.dims.layers)]

    def _jitter(self) -> float:
        return 1 + self.log.noise * self.random.uniform(-1, 1)

    def _report(self, title: str, rows: list[tuple[str, float]]) -> None:
        log = self.log
        scale = {"ms": 1.0, "us": 1e3, "µs": 1e3, "s": 1e-3}[log.unit]
        total = sum(ms for _, ms in rows)
        self._say("Profile", f"{title}:", log.profile_level, after_ms=0)
        self._say("Profile", "GPU Profile Report", log.profile_level)
        more = ("Calls", "Min", "Max") if log.extra_columns else ()
        heads = "".join(f"{word:>12}" for word in more)
        self.out += [log.rule, f"{'Kernel':<{log.label_width}}{f'Time ({log.unit})':>12}{heads}{'%':>8}", log.rule]
        for label, ms in sorted(rows, key=lambda row: -row[1]):
            cells = f"{1:>12}{ms * scale:>12.{log.digits}f}{ms * scale:>12.{log.digits}f}" if more else ""
            share = 100 * ms / total if total else 0.0
            self.out.append(
                f"{label:<{log.label_width}}{ms * scale:>12.{log.digits}f}{cells}{share:>8.1f}"
                if len(label) <= log.label_width
                else f"{label}{ms * scale:>12.{log.digits}f}{cells}{share:>8.1f}"
            )
        blank = f"{len(rows):>12}{'-':>12}{'-':>12}" if more else ""
        self.out += [log.rule, f"{'TOTAL':<{log.label_width}}{total * scale:>12.{log.digits}f}{blank}{100:>8.1f}", ""]

    def _end(self, ttft_ms: float, prefill_ms: float, decode_ms: float, tokens: int) -> None:
        log = self.log
        level = f"[{log.tag}:log] " if log.tag else ""
        rate = (tokens - 1) / decode_ms * 1000
        perf = f"TTFT: {ttft_ms:.0f}ms | Prefill: {prefill_ms:.0f}ms | Decode: {decode_ms:.0f}ms"
        self.out.append(f"{level}[{self.ms:.1f}ms][Perf] {perf} ({tokens - 1} tokens @ {rate:.1f} tok/s)")
        self._say("Pipeline", "Unloaded", after_ms=0.2)
        if not log.results:
            return
        whole = ttft_ms + decode_ms
        shown = tokens / decode_ms * 1000 if log.rate_counts_first else rate
        counts = f"prefillTokens={log.prompt_tokens} decodeTokens={tokens} maxTokens={tokens}"
        times = f"ttft={ttft_ms:.1f}ms prefill={prefill_ms:.1f}ms decode={decode_ms:.1f}ms total={whole:.1f}ms"
        rates = tokens / whole * 1000, log.prompt_tokens / prefill_ms * 1000
        self.out += [
            f"[ok] debug model={log.model} passed=1 failed=0 duration={self.ms - log.start_ms + 20:.1f}ms",
            f'[metrics] prompt="{log.prompt}"',
            f"[metrics] load={log.load_ms:.1f}ms {counts}",
            f"[metrics] {times}",
            f"[metrics] tok/s total={rates[0]:.2f} prefill={rates[1]:.2f} decode={shown:.2f}",
        ]


def _classes(usual: Mapping[str, Time], changes: Mapping[str, Time | None]) -> dict[str, Time]:
    return {name: time for name, time in {**usual, **changes}.items() if time is not None}


def _spelled(name: str, log: Log) -> str:
    """The label's words and layer as the log has them."""
    op, *rest = name.split(":")
    layered = any(_LAYER in part for part in rest)
    role = next((part.removeprefix(f"{_LAYER}.") for part in rest if part != _LAYER), None)
    op, role = log.words.get(op, op), log.words.get(role, role) if role else None
    dot = rest[0].startswith(f"{_LAYER}.") if rest else False
    if log.syntax:
        dot = log.syntax == "dot"
    if layered and role:
        return f"{op}:{_LAYER}.{role}" if dot else f"{op}:{role}:{_LAYER}"
    return ":".join([op, *([_LAYER] if layered else []), *([role] if role else [])])


def _size(size: float) -> str:
    """As the engine prints bytes: its units are powers of 1024."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit, scale in (("KB", 2**10), ("MB", 2**20), ("GB", 2**30)):
        if size < 1024 * scale or unit == "GB":
            return f"{size / scale:.2f} {unit}"
    raise AssertionError
