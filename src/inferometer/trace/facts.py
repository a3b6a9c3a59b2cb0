"""What a file says about itself: tool, devices, processes, clock. Absent is None or empty, never guessed."""

from typing import Any

import msgspec


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device as the file describes it. `device` is the text used in the tables (`gpu:0`)."""

    device: str
    name: str | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: str | None = None
    warp_size: int | None = None


class NamedId(msgspec.Struct, frozen=True, omit_defaults=True):
    """The name of a process, or of a thread of it. `label` is the file's further word for it (`GPU 0`)."""

    process: int | None
    thread: int | None = None
    name: str | None = None
    label: str | None = None


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts of a trace.

    `clock_base_ns`: add to a time of the tables to get ns since 1970; None when times are already absolute or the
    source doesn't say. `recorded`: what the profiler was told to record (`shapes`, `stacks`, …). `versions`: driver
    and runtime versions under the source's names.
    """

    format: str
    source: str
    tool: str | None = None
    tool_version: str | None = None
    framework: str | None = None
    model: str | None = None
    hosts: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    ranks: tuple[int, ...] = ()
    world_size: int | None = None
    processes: tuple[NamedId, ...] = ()
    threads: tuple[NamedId, ...] = ()
    clock_base_ns: int | None = None
    recorded: dict[str, bool] = {}
    versions: dict[str, str] = {}
    engine_metrics: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
