"""What engines call the ranges that mark their steps, and what such a name says.

A name shows the requests of a step, its new tokens (`sq`: the sum of the queries' lengths) and the lengths of its
sequences with them (`sk`, which stands for keys); sums of products of both (`sqsq`, `sqsk`) are passed over. So the
context, what was in the KV cache before, is `sk` less `sq`. A name that is not exactly of a form is no mark. Text
Generation Inference names no steps in a profile, and TensorRT-LLM's C++ runtime and vLLM's `gpu_model_runner: forward`
give no numbers: ranges of such names are found as those that a user named (`found/ranges.py`).
"""

import re
from collections.abc import Callable, Mapping

import msgspec

Groups = Mapping[str, str | None]
_N = r"\d{1,15}"
_SUMS = r"sqsq\d+sqsk\d+"
_FIELD = re.compile(rf"(?<= )(\w+)=({_N})(?= |$)")
_MODES = {"DECODE": "decode", "EXTEND": "prefill", "PREFILL": "prefill", "MIXED": "mixed"}


class MarkedStep(msgspec.Struct, frozen=True):
    """A step as its mark's name shows it; what it doesn't is None. `step` is the engine's own number.

    `context_len` is of all sequences together, without the step's own tokens.
    """

    step: int | None = None
    phase: str | None = None
    batch: int | None = None
    prefill_tokens: int | None = None
    decode_tokens: int | None = None
    context_len: int | None = None


class MarkForm(msgspec.Struct, frozen=True):
    """One form of names: whose, where it is written down, and how it is read."""

    engine: str
    source: str
    pattern: re.Pattern[str]
    read: Callable[[Groups], MarkedStep]


def read_mark(name: str) -> tuple[int, MarkedStep] | None:
    """The place in `FORMS` of the form of this name, and what the name says; None where it is no mark."""
    for place, form in enumerate(FORMS):
        if match := form.pattern.fullmatch(name):
            return place, form.read(match.groupdict())
    return None


def _counted(found: Groups) -> MarkedStep:
    """Requests of both phases are reported, and perhaps their tokens and lengths."""
    known = {name: int(text) for name, text in found.items() if text is not None}
    prefills, decodes = known["prefills"], known["decodes"]
    prefill, decode = (known.get(name, None if known[f"{name}s"] else 0) for name in ("prefill", "decode"))
    return MarkedStep(
        step=known.get("step"),
        phase=_phase(prefills, decodes),
        batch=prefills + decodes,
        prefill_tokens=prefill,
        decode_tokens=decode,
        context_len=_context(_sum(known.get("prefill_kv"), known.get("decode_kv")), _sum(prefill, decode)),
    )


def _new_and_cached(found: Groups) -> MarkedStep:
    """New requests prefill; cached ones decode, or go on with a long prompt, which the name doesn't tell apart."""
    new, cached = int(found["new"] or 0), int(found["cached"] or 0)
    return MarkedStep(phase="prefill" if new and not cached else None, batch=new + cached)


def _sglang(found: Groups) -> MarkedStep:
    """`c_…` are sums of requests that prefill, `g_…` of those that decode; without them a decode has a token each."""
    fields, batch = _fields(found), int(found["batch"] or 0)
    phase = _MODES.get((found["mode"] or "").upper())
    prefill, prefill_kv = _first(fields, "c_sq", "toks" if phase == "prefill" else "ext"), fields.get("c_sk")
    decode, decode_kv = _first(fields, "g_sq", "toks" if phase == "decode" else "dec"), fields.get("g_sk")
    if phase == "prefill":
        decode, decode_kv = 0, 0
    elif phase == "decode":
        prefill, prefill_kv = 0, 0
        decode = batch if decode is None and fields.get("g_sqsq", batch) == batch else decode
    elif phase is None:
        return MarkedStep(batch=batch)
    context_len = _context(_sum(prefill_kv, decode_kv), _sum(prefill, decode))
    return MarkedStep(None, phase, batch, prefill, decode, context_len)


def _atom(found: Groups) -> MarkedStep:
    """`tok` are all tokens; a decode with prefills among it (`p`) doesn't say whose they are."""
    fields, batch = _fields(found), int(found["batch"] or 0)
    tokens = fields.get("tok")
    context_len = _context(fields.get("sk"), tokens)
    if found["mode"] == "prefill":
        return MarkedStep(None, "prefill", batch, tokens, 0, context_len)
    if fields.get("p"):
        return MarkedStep(None, "mixed", batch, None, None, context_len)
    return MarkedStep(None, "decode", batch, 0, tokens, context_len)


def _untold(found: Groups) -> MarkedStep:
    return MarkedStep()


def _fields(found: Groups) -> dict[str, int]:
    return {name: int(text) for name, text in _FIELD.findall(found["more"] or "")}


def _first(fields: Mapping[str, int], *names: str) -> int | None:
    return next((fields[name] for name in names if name in fields), None)


def _phase(prefills: int, decodes: int) -> str | None:
    """None for a step without requests, in which an engine only moves caches."""
    if prefills and decodes:
        return "mixed"
    return "prefill" if prefills else "decode" if decodes else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _context(lengths: int | None, tokens: int | None) -> int | None:
    """Lengths before the step; None where they aren't known, or are less than its own tokens."""
    return None if lengths is None or tokens is None or lengths < tokens else lengths - tokens


FORMS: tuple[MarkForm, ...] = (  # of several in one process, the first counts: the earlier ones show more
    MarkForm(
        "vLLM",
        "vllm/v1/worker/gpu_worker.py, annotate_profile with detailed_trace_annotation, since pull request 37524",
        re.compile(
            rf"execute_{_N}_context_(?P<prefills>{_N})\(sq(?P<prefill>{_N})sk(?P<prefill_kv>{_N}){_SUMS}\)"
            rf"_generation_(?P<decodes>{_N})\(sq(?P<decode>{_N})sk(?P<decode_kv>{_N}){_SUMS}\)"
        ),
        _counted,
    ),
    MarkForm(
        "vLLM",
        "the same, annotate_profile; the second number of `1(888_788544)`, a sum of products, is passed over",
        re.compile(
            rf"execute_context_(?P<prefills>{_N})\((?P<prefill>{_N})(?:_\d+)?\)"
            rf"_generation_(?P<decodes>{_N})\((?P<decode>{_N})(?:_\d+)?\)(?:\W.*)?"
        ),
        _counted,
    ),
    MarkForm(
        "vLLM",
        "the same, annotate_profile from pull request 22496 on, before phases were recorded",
        re.compile(rf"execute_new_(?P<new>{_N})_cached_(?P<cached>{_N})"),
        _new_and_cached,
    ),
    MarkForm(
        "SGLang",
        "sglang/srt/utils/profile_utils.py, build_step_span_name (pull request 23419); c_ and g_ with "
        "roofline_annotations (pull request 24911; names in AMD-AGI/TraceLens issue 818)",
        re.compile(rf"step\[(?P<mode>[A-Za-z_]+) bs=(?P<batch>{_N})(?P<more>(?: [^\]]*)?)\]"),
        _sglang,
    ),
    MarkForm(
        "TensorRT-LLM",
        "tensorrt_llm/_torch/pyexecutor/py_executor.py, _forward_step; tokens since pull request 14206",
        re.compile(
            rf"(?:\[Executor\] )?_forward_step(?: (?P<step>{_N}))?: "
            rf"(?P<prefills>{_N}) ctx reqs, (?:(?P<prefill>{_N}) ctx tokens, )?(?P<decodes>{_N}) gen reqs"
        ),
        _counted,
    ),
    MarkForm(
        "ATOM",
        "ROCm/ATOM, model_runner.py, run_model; sk since pull request 477",
        re.compile(rf"(?P<mode>prefill|(?:eager_)?decode)\[bs=(?P<batch>{_N})(?:/{_N})?(?P<more>(?: .*)?)\]"),
        _atom,
    ),
    MarkForm(
        "LMDeploy",
        "lmdeploy/pytorch/backends/cuda/graph_runner.py: a forward pass, with or without a graph",
        re.compile(r"forward_(?:eager|cudagraph)"),
        _untold,
    ),
)
