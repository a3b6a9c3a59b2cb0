"""The devices of `devices/*.json`, and which of them a tool means by a name.

A name must be one that a file lists, whole: "NVIDIA H100 80GB HBM3 MIG 1g.10gb" is no H100. Where the trace also says
how many multiprocessors or how much memory there is, that must agree: an MI300X with 38 compute units is a part of one.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from inferometer.errors import InputError, UnknownName
from inferometer.hardware.device import Device
from inferometer.hardware.device_file import decode_device

_VENDORS = frozenset({"nvidia", "tesla", "geforce", "amd", "instinct", "apple"})
_ANGLE = re.compile(
    r"ANGLE \([^,]+, (?:ANGLE Metal Renderer: )?(?P<name>.+?)(?: \(0x[0-9A-Fa-f]+\))?(?: Direct3D.*)?, .*\)"
)
_MARK = re.compile(r"\((?:r|tm)\)|®|™", re.IGNORECASE)
_TARGET = re.compile(r"sm_(?P<sm>\d+)(?P<sm_minor>\d)|gfx(?P<gfx>\d+)(?P<gfx_minor>[0-9a-f])[0-9a-f]")
_LEAST_USABLE = 0.9  # of the capacity; the driver and error correction keep some of it to themselves
_MOST_USABLE = 1.01


@cache
def devices() -> tuple[Device, ...]:
    """All that we have data of, by vendor and name."""
    from importlib.resources import files

    folder = files("inferometer.hardware") / "devices"
    paths = [path for path in folder.iterdir() if path.name.endswith(".json")]
    found = [decode_device(path.read_bytes(), path.name) for path in paths]
    return tuple(sorted(found, key=lambda device: (device.vendor is None, device.vendor or "", device.name)))


def find_device(
    name: str,
    *,
    multiprocessors: int | None = None,
    memory_bytes: int | None = None,
    among: Sequence[Device] | None = None,
) -> Device | None:
    """The one device that a tool calls by this name; None where there is none, or several may be meant.

    Args:
        name: What a trace, a driver or a browser says: `NVIDIA A100-SXM4-80GB`, `AMD Instinct MI300X VF`.
        multiprocessors: How many there are, where the trace says so.
        memory_bytes: How much it can use, where the trace says so.
        among: Look through these; None: those that we have.
    """
    found = find_candidates(name, multiprocessors=multiprocessors, memory_bytes=memory_bytes, among=among)
    return found[0] if len(found) == 1 else None


def find_candidates(
    name: str,
    *,
    multiprocessors: int | None = None,
    memory_bytes: int | None = None,
    among: Sequence[Device] | None = None,
) -> tuple[Device, ...]:
    """Every device that may be meant: those with this name, or else those that share it; arguments as above."""
    wanted = plain_name(name)
    known = devices() if among is None else among
    found = [device for device in known if _has(wanted, (device.name, *device.aliases))]
    found = found or [device for device in known if _has(wanted, device.shared_names)]
    return tuple(device for device in found if _agrees(device, multiprocessors, memory_bytes))


def infer_devices(
    *,
    multiprocessors: int | None,
    memory_bytes: int | None = None,
    compute_capability: str | None = None,
    warp_size: int | None = None,
    among: Sequence[Device] | None = None,
) -> tuple[Device, ...]:
    """Every device with these properties, for one that has no name: a guess to be named as one, never a fact.

    Multiprocessors and one more property must be known and agree; none may differ.
    """
    if multiprocessors is None or (memory_bytes is None and compute_capability is None):
        return ()
    known = devices() if among is None else among
    return tuple(
        device
        for device in known
        if device.multiprocessors is not None
        and (device.memory is not None or memory_bytes is None)
        and _agrees(device, multiprocessors, memory_bytes)
        and compute_capability in (None, (target := _of_target(device.arch))[0])
        and warp_size in (None, target[1])
    )


def _of_target(arch: str | None) -> tuple[str | None, int | None]:
    """Compute capability and threads a warp that a compiler's target stands for: `gfx942` is 9.4 with 64."""
    found = _TARGET.fullmatch(arch or "")
    if found is None:
        return None, None
    if found["sm"]:
        return f"{found['sm']}.{found['sm_minor']}", 32
    return f"{found['gfx']}.{int(found['gfx_minor'], 16)}", 64 if int(found["gfx"]) <= 9 else 32


def require_device(name: str, *, among: Sequence[Device] | None = None) -> Device:
    """As `find_device`, for a name that a user wrote.

    Raises:
        InputError: Several may be meant.
        UnknownName: None is; the nearest come first.
    """
    known = devices() if among is None else among
    found = find_candidates(name, among=known)
    if len(found) > 1:
        names = ", ".join(device.name for device in found)
        raise InputError(f'"{name}" may be several devices: {names}', hint="Give one of these names.")
    if not found:
        raise UnknownName("device", name, [device.name for device in known])
    return found[0]


def with_own(device: Device) -> tuple[Device, ...]:
    """All that we have after the user's own, which takes the place of ours where a name is the same."""
    own = [plain_name(name) for name in (device.name, *device.aliases)]
    return (
        device,
        *(known for known in devices() if not any(_has(name, (known.name, *known.aliases)) for name in own)),
    )


def plain_name(name: str) -> str:
    """A name without case, punctuation, trademarks and vendor, as names are compared: `a100 sxm4 80gb`."""
    angle = _ANGLE.fullmatch(name.strip())
    text = _MARK.sub("", angle["name"] if angle else name).casefold()
    words = re.findall(r"[a-z0-9.]+|\*$", text)
    while len(words) > 1 and words[0] in _VENDORS:
        del words[0]
    return " ".join(words)


@lru_cache(1024)
def _plain_listed(name: str) -> str:
    """The same of a device that is listed, with which each name of a file is compared."""
    return plain_name(name)


def _has(wanted: str, names: Sequence[str]) -> bool:
    for name in map(_plain_listed, names):
        if name == wanted or (name.endswith("*") and f"{wanted} ".startswith(f"{name.removesuffix('*').strip()} ")):
            return True
    return False


def _agrees(device: Device, multiprocessors: int | None, memory_bytes: int | None) -> bool:
    """Whether nothing that both know is different."""
    same_count, same_memory = True, True
    if multiprocessors is not None and device.multiprocessors is not None:
        same_count = multiprocessors == device.multiprocessors.value
    if memory_bytes is not None and device.memory is not None:
        same_memory = _LEAST_USABLE <= memory_bytes / device.memory.value <= _MOST_USABLE
    return same_count and same_memory
