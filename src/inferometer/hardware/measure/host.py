"""What the operating system reports of the processor: name, cores, caches, memory, and what it multiplies.

Sources: /proc/cpuinfo, /proc/meminfo and /sys/devices/system/cpu of Linux, POSIX's sysconf. Elsewhere most is unknown.
"""

import os
import platform
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inferometer.guarded import machine_bytes
from inferometer.hardware.device import Quantity
from inferometer.processes import own_cores
from inferometer.units import parse_bytes

_CPU = Path("/sys/devices/system/cpu")
_SOURCE = "the operating system"
_INSTRUCTIONS = {  # by dtype: those that multiply tiles, and those of the vector units, as Linux names them
    "fp32": (frozenset[str](), None),
    "bf16": (frozenset({"amx_bf16"}), frozenset({"avx512_bf16", "bf16"})),
    "fp16": (frozenset({"amx_fp16"}), frozenset({"avx512_fp16", "asimdhp"})),
    "int8": (frozenset({"amx_int8"}), frozenset({"avx512_vnni", "avx_vnni", "asimddp"})),
}


@dataclass(frozen=True)
class Host:
    """The processor that this process may use.

    Attributes:
        name: As its maker calls it.
        cores: How many the process may use, as the operating system counts them.
        cache_bytes: The caches farthest from the cores, all of them together; None: unknown.
        free_bytes: Memory that can be taken without swapping; None: unknown.
        flags: Instructions, as Linux names them; empty: unknown.
        facts: What a `Device` takes of it.
    """

    name: str
    cores: int
    cache_bytes: int | None
    free_bytes: int | None
    flags: frozenset[str]
    facts: Mapping[str, Quantity]


@cache
def read_host() -> Host:
    """Of the machine at hand; it doesn't change while we run."""
    info = _fields(Path("/proc/cpuinfo"))
    memory = _fields(Path("/proc/meminfo"))
    cores = own_cores()
    level, cache_bytes = _last_cache(cores)
    facts = {"multiprocessors": Quantity(len(cores), "count", "measured", f"{_SOURCE}: cores that a process may use")}
    if total := machine_bytes():
        facts["memory"] = Quantity(total, "B", "measured", _SOURCE)
    if cache_bytes:
        facts["l2"] = Quantity(cache_bytes, "B", "measured", f"{_SOURCE}: caches of level {level}, all together")
    if clock_khz := _number(_CPU / "cpu0/cpufreq/cpuinfo_max_freq"):
        facts["graphics_clock"] = Quantity(clock_khz * 1000, "Hz", "measured", f"{_SOURCE}: highest clock of core 0")
    available = memory.get("MemAvailable")
    return Host(
        name=info.get("model name") or platform.processor() or platform.machine() or "processor",
        cores=len(cores),
        cache_bytes=cache_bytes,
        free_bytes=parse_bytes(available.replace("kB", "KiB")) if available else None,
        flags=frozenset((info.get("flags") or info.get("Features") or "").split()),
        facts=facts,
    )


def load_remarks(host: Host) -> tuple[str, ...]:
    """Says when other work takes the cores: then what is measured is less than what the processor can do."""
    if not hasattr(os, "getloadavg"):
        return ()
    load = os.getloadavg()[0]
    if load <= host.cores / 2:
        return ()
    return (f"Other work ran during the measurement: a load of {load:.1f} on {host.cores} cores. Repeat it alone.",)


def product_fact(host: Host, dtype: str) -> str | None:
    """Which fact a product of this dtype measures, `matrix.bf16` or `vector.bf16`; None: no instruction for it."""
    tiles, lanes = _INSTRUCTIONS[dtype]
    if tiles & host.flags:
        return f"matrix.{dtype}"
    return f"vector.{dtype}" if lanes is None or lanes & host.flags else None


def _last_cache(cores: Collection[int]) -> tuple[int | None, int | None]:
    """The level of the caches farthest from the cores, and the sizes of all of them added up."""
    found: dict[int, dict[str, int]] = {}
    for core in cores:
        for index in _CPU.glob(f"cpu{core}/cache/index*"):
            level, size, shared = (_text(index / name) for name in ("level", "size", "shared_cpu_list"))
            if level.isdigit() and re.fullmatch(r"\d+[KMG]", size) and _text(index / "type") != "Instruction":
                found.setdefault(int(level), {})[shared] = parse_bytes(f"{size}iB")
    if not found:
        return None, None
    last = max(found)
    return last, sum(found[last].values())


def _fields(path: Path) -> dict[str, str]:
    """`name: value` lines; of several blocks the first."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""
