"""What a line says: its kind, and its numbers and names as fields. Pure: whose it is and when is for others.

A module's lines that no pattern knows keep the module's kind, without fields. A line of an unknown module has no kind.
"""

import re
from collections.abc import Callable
from typing import Any

from inferometer.formats.webgpu_log.lines import Parts
from inferometer.formats.webgpu_log.quantities import read_number, read_pairs, read_size, read_time, read_value

Fields = dict[str, Any]
Message = tuple[str | None, Fields]

_PATH = re.compile(r"KernelPath: (?P<name>.*?) \((?P<details>[^()]*)\)")
_MODEL = re.compile(
    r"(?P<layers>\d{1,9})L/(?P<hidden>\d{1,9})H/(?P<heads>\d{1,9})heads \((?P<head_dim>\d{1,9})dim\)(?P<rest>.*)"
)
_COUNT = re.compile(r"(?P<count>\d{1,15}) (?P<what>[A-Za-z][A-Za-z ]*[A-Za-z])")
_VOCAB = re.compile(r"Tokenizer vocabSize=(?P<tokenizer>\d{1,15}) differs from model=(?P<model>\d{1,15})")
_LOADED = re.compile(r"Loaded (?P<source>.+?) (?P<tokens>\d{1,15}) tokens(?: \((?P<type>[^()]*)\))?(?P<rest>.*)")
_SEGMENT = re.compile(r"Allocated segment (?P<segment>\d{1,9}): (?P<size>\S.*)")
_STRATEGY = re.compile(r"Initialized with strategy: (?P<strategy>\S+)")
_LAYERS = re.compile(
    r"Layers: (?:(?P<first>\d{1,9})-(?P<last>\d{1,9})|(?P<count>\d{1,9}) complete \((?P<time>[^()]*)\))"
)
_COMPLETE = re.compile(
    r"(?P<what>\w{1,40}): (?P<size>[^()]{1,30}?) in (?P<time>[^()]{1,30}?)(?: \((?P<rate>[^()]{1,30})/s\))?"
)
_MEMORY = re.compile(r"Memory \((?P<when>[^()]*)\):(?P<rest>.*)")
_MEMORY_SIZES = {
    "heap_bytes": r"\bHeap=([^|/(]{1,30})",
    "heap_total_bytes": r"\bHeap=[^|/(]{1,30}/([^|/(]{1,30})",
    "heap_limit_bytes": r"\blimit=([^|/()]{1,30})",
    "gpu_bytes": r"\bGPU=([^|(]{1,30})",
    "gpu_peak_bytes": r"\bpeak=([^|()]{1,30})",
    "shard_cache_bytes": r"\bShardCache=([^|(]{1,30})",
}
_MEMORY_COUNTS = {
    "gpu_active": r"\b(\d{1,15}) active\b",
    "gpu_pooled": r"\b(\d{1,15}) pooled\b",
    "shards": r"\b(\d{1,15}) shards?\b",
    "layers": r"\bLayers=(\d{1,15})\b",
    "buffers": r"\bGPUBuffers=(\d{1,15})\b",
}
_ELAPSED = re.compile(r"\[(?P<elapsed>[0-9.]{1,15} ?[mun]?s)\] ")
_SELECTION = re.compile(r"(?P<op>[^=]+?) variant=(?P<variant>\S+)(?: reason=(?P<reason>.*\S))?\s*")
_PERF = {
    "ttft_ns": r"\bTTFT: ?([0-9.,]+ ?[mun]?s)\b",
    "prefill_ns": r"\bPrefill: ?([0-9.,]+ ?[mun]?s)\b",
    "decode_ns": r"\bDecode: ?([0-9.,]+ ?[mun]?s)\b",
}
_PERF_DECODE = re.compile(r"\((?P<tokens>\d{1,15}) tokens(?: @ (?P<rate>[0-9.]{1,30}) tok/s)?\)")
_FALLBACK = re.compile(r"maxQuerySetSize\b.*?(?P<fallback>fallback )?(?P<value>\d{1,15})\b")
_STATUS = re.compile(r"\bstatus (?:of |code )?(?P<status>\d{3})\b")
_PROMPT = re.compile(r'prompt="(?P<prompt>.*?)"?\s*', re.DOTALL)
_RATES = re.compile(r"\s*(?:tok|tokens)/s\b")
_LONGEST = 8_000


def read_message(parts: Parts) -> Message:
    """The kind of a line, None when nothing is known of it, and its fields."""
    module, text = (parts.module or "").lower(), parts.text[:_LONGEST]
    if not parts.is_stamped and module in _HARNESS:
        return _HARNESS[module](module, text)
    for name, (kind, reader) in _MODULES.items():
        if module == name or (name in _ENDINGS and module.endswith(name)):
            return reader(text) if reader else (kind, {})
    if not module and parts.level == "error":
        return "error", _status(text)
    return None, {}


def _progress(_: str, text: str) -> Message:
    return "progress", dict(read_pairs(text))


def _error(_: str, text: str) -> Message:
    return "error", _status(text)


def _status(text: str) -> Fields:
    match = _STATUS.search(text)
    return {"status": int(match["status"])} if match else {}


def _result(word: str, text: str) -> Message:
    """`[ok] debug model=… passed=1 failed=0 duration=44124.1ms`."""
    before, equals, _ = text.partition("=")
    command = before.split()[: -1 if equals else None]
    fields: Fields = {"result": word, **({"command": command[0]} if len(command) == 1 else {})}
    return "result", fields | dict(read_value(key, value) for key, value in read_pairs(text).items())


def _metrics(_: str, text: str) -> Message:
    """Pairs; after `tok/s` they are rates."""
    if match := _PROMPT.fullmatch(text):
        return "metrics", {"prompt": match["prompt"]}
    pairs = read_pairs(text)
    if _RATES.match(text):
        return "metrics", {f"{key}_tokens_per_s": read_number(value) for key, value in pairs.items()}
    return "metrics", dict(read_value(key, value) for key, value in pairs.items())


def _gpu(text: str) -> Message:
    """`apple metal-3, f16/subgroups, 4.0GB`: a name, features, the largest buffer; the last two may be missing."""
    *pieces, last = [piece.strip() for piece in text.split(",")]
    limit = read_size(last)
    pieces = pieces if limit is not None else [*pieces, last]
    fields: Fields = {} if limit is None else {"adapter_limit_bytes": limit}
    if len(pieces) > 1 and " " not in pieces[-1]:
        fields["features"] = [word for word in pieces.pop().split("/") if word and word != "none"]
    name = ", ".join(pieces).strip()
    return "gpu", ({"name": name} if name else {}) | fields


def _pipeline(text: str) -> Message:
    if match := _PATH.fullmatch(text.strip()):
        path: Fields = {"name": match["name"]}
        for count in _COUNT.finditer(match["details"]):
            path[count["what"].replace(" ", "_").lower()] = int(count["count"])
        return "kernel_path", path | read_pairs(match["details"])
    if match := _MODEL.fullmatch(text.strip()):
        numbers = {key: int(match[key]) for key in ("layers", "hidden", "heads", "head_dim")}
        path_name = read_pairs(match["rest"]).get("kernelPath")
        return "model", numbers | ({"kernel_path": path_name} if path_name else {})
    if match := _VOCAB.match(text):
        return "tokenizer", {"tokenizer_vocab": int(match["tokenizer"]), "model_vocab": int(match["model"])}
    return "pipeline", {}


def _tokenizer(text: str) -> Message:
    if match := _LOADED.match(text):
        fields: Fields = {"source": match["source"], "tokens": int(match["tokens"])}
        if match["type"]:
            fields["type"] = match["type"]
        for count in _COUNT.finditer(match["rest"]):
            fields[count["what"].replace(" ", "_").lower()] = int(count["count"])
        return "tokenizer", fields
    return "tokenizer", {}


def _heap(text: str) -> Message:
    if match := _SEGMENT.fullmatch(text.strip()):
        size = read_size(match["size"])
        return "heap", {"segment": int(match["segment"])} | ({} if size is None else {"bytes": size})
    match = _STRATEGY.match(text)
    return "heap", {"strategy": match["strategy"]} if match else {}


def _loader(text: str) -> Message:
    fields: Fields = {}
    if match := _ELAPSED.match(text):
        elapsed_ns = read_time(match["elapsed"])
        fields = {} if elapsed_ns is None else {"elapsed_ns": elapsed_ns}
        text = text[match.end() :]
    if match := _MEMORY.match(text):
        return "memory", {"when": match["when"], **fields, **_memory(match["rest"])}
    text = text.strip()
    if text.startswith("Loading: "):
        fields["model"] = text.removeprefix("Loading: ")
    elif match := _LAYERS.fullmatch(text):
        if match["first"]:
            fields |= {"first_layer": int(match["first"]), "last_layer": int(match["last"])}
        else:
            fields |= {"what": "layers", "layers": int(match["count"])} | _known(dur_ns=read_time(match["time"]))
    elif "tensor loaded: " in text:
        pairs = read_pairs(text)
        fields |= {"what": text.split(" ", 1)[0].lower()} | _known(name=pairs.get("name"), shape=_shape(pairs))
    elif match := _COMPLETE.fullmatch(text):
        size, rate = read_size(match["size"]), read_size(match["rate"])
        numbers = _known(bytes=size, dur_ns=read_time(match["time"]), bytes_per_s=rate)
        fields |= {"what": match["what"].lower(), **numbers} if numbers else {}
    return "loader", fields


def _memory(text: str) -> Fields:
    sizes = {key: read_size(_first(pattern, text)) for key, pattern in _MEMORY_SIZES.items()}
    counts = {key: _first(pattern, text) for key, pattern in _MEMORY_COUNTS.items()}
    return _known(**sizes) | {key: int(count) for key, count in counts.items() if count}


def _shape(pairs: dict[str, str]) -> list[int] | None:
    dims = pairs.get("shape", "").strip("[]").split(",")
    return [int(dim) for dim in dims] if all(dim.strip().isdecimal() and len(dim) < 16 for dim in dims) else None


def _selection(text: str) -> Message:
    match = _SELECTION.fullmatch(text)
    if match is None:
        return "selection", {}
    return "selection", _known(op=match["op"].strip(), variant=match["variant"], reason=match["reason"])


def _perf(text: str) -> Message:
    fields = _known(**{key: read_time(_first(pattern, text)) for key, pattern in _PERF.items()})
    if match := _PERF_DECODE.search(text):
        rate = read_number(match["rate"]) if match["rate"] else None
        fields |= {"decode_tokens": int(match["tokens"])} | _known(decode_tokens_per_s=rate)
    return "perf", fields


def _recorder(text: str) -> Message:
    match = _FALLBACK.search(text)
    return "recorder", {"value": int(match["value"]), "is_fallback": bool(match["fallback"])} if match else {}


def _cache(text: str) -> Message:
    word, _, rest = text.partition(":")
    name = rest.strip().strip('"')
    return "cache", {"state": word.strip().lower(), "name": name} if word.lower().startswith("cache ") and name else {}


def _known(**fields: Any) -> Fields:
    return {key: value for key, value in fields.items() if value is not None}


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None


_HARNESS: dict[str, Callable[[str, str], Message]] = {
    "progress": _progress,
    "error": _error,
    "metrics": _metrics,
    **dict.fromkeys(("ok", "passed", "failed", "fail"), _result),
}
_MODULES: dict[str, tuple[str, Callable[[str], Message] | None]] = {
    "gpu": ("gpu", _gpu),
    "config": ("config", None),
    "pipeline": ("pipeline", _pipeline),
    "tokenizer": ("tokenizer", _tokenizer),
    "heapmanager": ("heap", _heap),
    "loader": ("loader", _loader),
    "kernelselect": ("selection", _selection),
    "profile": ("profile", None),
    "perf": ("perf", _perf),
    "recorder": ("recorder", _recorder),
    "cache": ("cache", _cache),
}
_ENDINGS = frozenset({"cache", "recorder", "loader", "tokenizer"})
