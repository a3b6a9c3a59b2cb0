"""Copies and fills by the driver, in the words of CUPTI, Nsight Systems, ROCm and CUDA.jl.

`Memcpy HtoD (Pageable -> Device)`, `[CUDA memcpy Host-to-Device]`, `CopyHostToDevice`, `__amd_rocclr_copyBuffer`. The
memory's kind in parentheses separates rows and is kept.
"""

import re

from inferometer.names.kernel_name import Evidence, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_CUPTI = late_re(
    r"Mem(?P<what>cpy|set)(?:\s+(?P<way>[A-Za-z]+to[A-Za-z]+|PtoP|P2P|[A-Za-z0-9]+))?\s*(?:\((?P<kinds>[^()]*)\))?",
    re.IGNORECASE,
)
_NSYS = late_re(r"\[CUDA (?P<unified>Unified Memory )?mem(?P<what>cpy|set)(?:\s+(?P<way>[^\]]+))?\]?", re.IGNORECASE)
_ROCM = late_re(
    r"(?:Copy|Memcpy|MEMORY_COPY_)_?(?P<way>(?:Host|Device|HOST|DEVICE)_?(?:To|TO)_?(?:Host|Device|HOST|DEVICE)|DeviceToDevicePeer)"
)
_ROCCLR = late_re(r"__amd_rocclr_(?P<op>copy|fill|streamOps)(?P<rest>\w*)")
_WAYS = {
    "host-to-device": "htod", "device-to-host": "dtoh", "device-to-device": "dtod", "host-to-host": "htoh",
    "peer-to-peer": "ptop", "hosttodevice": "htod", "devicetohost": "dtoh", "devicetodevice": "dtod",
    "hosttohost": "htoh", "unified host-to-device": "unified htod", "unified device-to-host": "unified dtoh",
}  # fmt: skip
_KIND = "(?:pageable|pinned|device|unified)"
_JULIA = late_re(rf"\[(?P<what>copy|set) (?P<way>(?:{_KIND} to )?{_KIND}) memory\]")
_PLAIN = frozenset(
    {
        *("FillBuffer", "CopyBuffer", "Memcpy", "Memset", "FillBufferAligned", "hipMemcpy", "hipMemset"),
        *("MemcpyD2D", "MemcpyD2H", "MemcpyH2D", "MemcpyP2P"),  # XLA's
    }
)


def read(name: ParsedName) -> KernelName | None:
    """A row of the driver's memory operations."""
    text = name.text
    if text[:1] not in "[Mm_CFhc" or len(text) > 200:
        return None
    match = _CUPTI.fullmatch(text) or _NSYS.fullmatch(text)
    if match is not None:
        way = (match["way"] or "").strip().lower()
        if match.re is _NSYS and match["unified"]:
            way = f"unified {way}"
        kinds = (
            (match["kinds"] if "kinds" in match.groupdict() and match["kinds"] else "").lower().replace(" -> ", " to ")
        )
        return _answer("memcpy" if match["what"].lower() == "cpy" else "memset", _WAYS.get(way, way), kinds)
    if (match := _JULIA.fullmatch(text)) is not None:
        return _answer("memcpy" if match["what"] == "copy" else "memset", match["way"])
    if (match := _ROCCLR.fullmatch(text)) is not None:
        return _answer("memcpy" if match["op"] == "copy" else "memset", match["rest"].lower())
    if (match := _ROCM.fullmatch(text)) is not None:
        return _answer("memcpy", _WAYS.get(match["way"].replace("_", "").lower(), match["way"].lower()))
    return _answer(text) if text in _PLAIN else None


def _answer(*words: str) -> KernelName:
    return KernelName(
        library="runtime",
        family="memory",
        short_name=short(*words),
        evidence=Evidence("driver's memory operation", "D"),
    )


GRAMMAR = Grammar("memory", "form", read, spaces="", letters="[Mm_CFhc")
