"""What a file says besides events: versions, devices, processes, threads, the wall clock, and what the profiler lost.

Read of outlines alone, so that they are the same whichever tables are asked for. Compiled programs (`Hlo Proto`), in
files of large models most of the bytes, are counted by nobody and never decoded.
"""

from collections.abc import Sequence

from inferometer.formats.source import Source
from inferometer.formats.xplane.device import device_of
from inferometer.formats.xplane.folder import note_beside
from inferometer.formats.xplane.lines import Clock, is_unix, line_name
from inferometer.formats.xplane.plane import Plane, Value, text, whole
from inferometer.formats.xplane.space import Space
from inferometer.trace.facts import Device, Facts, NamedId
from inferometer.trace.losses import Losses

ENVIRONMENT = "Task Environment"
_BEGAN = "profile_start_time"
_VERSIONS = {
    "jax_version": "jax",
    "jaxlib_version": "jaxlib",
    "cuda_version": "cuda",
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver_version",
    "rocm_version": "rocm",
    "libtpu_version": "libtpu",
}
_PROCESS = "process_id"
_LATEST_NS = 2**62
_LARGEST = 2**63


def find_clock(outlines: Sequence[Plane]) -> Clock:
    """When the profile began, if the file says so."""
    began = (whole(plane.stats.get(_BEGAN)) for plane in outlines if plane.name == ENVIRONMENT)
    return Clock(next((each for each in began if each is not None and 0 < each < _LATEST_NS), None))


class Processes:
    """Whose planes are whose: a plane that names no process is of the file's only one."""

    def __init__(self, outlines: Sequence[Plane]) -> None:
        ids = (whole(plane.stats.get(_PROCESS)) for plane in outlines)
        self.ids = sorted({each for each in ids if each is not None and each < _LARGEST})

    def of(self, plane: Plane) -> int | None:
        """The process that recorded the plane; None where the file doesn't say."""
        own = whole(plane.stats.get(_PROCESS))
        return own if own in self.ids else self.ids[0] if len(self.ids) == 1 else None


def is_host(plane: str) -> bool:
    """Whether the plane has lines of host threads."""
    return plane.startswith("/host:")


def own_threads(outlines: Sequence[Plane]) -> dict[str, int]:
    """The number of the thread on which instructions of a device stand whose host calls are not in the file."""
    names = sorted({device.name for plane in outlines if (device := device_of(plane.name)) is not None})
    return {name: -1 - i for i, name in enumerate(names)}


def read_facts(source: Source, space: Space, outlines: Sequence[Plane], processes: Processes) -> Facts:
    """The facts of the file."""
    stats = {name: value for plane in outlines for name, value in plane.stats.items()}
    versions = {ours: version for theirs, ours in _VERSIONS.items() if (version := _as_text(stats.get(theirs)))}
    return Facts(
        format="xplane",
        source=source.name,
        tool="XLA profiler",
        framework="JAX" if "jax" in versions else None,
        hosts=tuple(dict.fromkeys(space.hosts)),
        devices=tuple(_devices(outlines)),
        processes=tuple(NamedId(each) for each in processes.ids),
        threads=_threads(outlines, processes),
        clock_base_ns=find_clock(outlines).base_ns,
        versions=versions,
        notes=tuple(_notes(source, space, outlines)),
    )


def count_dropped(outlines: Sequence[Plane], losses: Losses) -> None:
    """Count what the profiler itself had no room for."""
    for plane in outlines:
        losses.count("dropped_by_profiler", whole(plane.stats.get("dropped_traces")) or 0, example=plane.name)


def _devices(outlines: Sequence[Plane]) -> list[Device]:
    found = {}
    for plane in outlines:
        if (device := device_of(plane.name)) is None:
            continue
        stats = plane.stats
        major, minor = whole(stats.get("compute_cap_major")), whole(stats.get("compute_cap_minor"))
        found[device.name] = Device(
            device=device.name,
            name=text(stats.get("gpu_device_name")) or text(stats.get("device_type_string")),
            memory_bytes=whole(stats.get("memory_size")),
            multiprocessors=None if device.is_tpu else whole(stats.get("core_count")),
            compute_capability=None if major is None else f"{major}.{minor or 0}",
        )
    return [found[name] for name in sorted(found)]


def _threads(outlines: Sequence[Plane], processes: Processes) -> tuple[NamedId, ...]:
    named = {
        (processes.of(plane), line.id): line_name(line)
        for plane in outlines
        if is_host(plane.name)
        for line in plane.lines
    }
    numbers = own_threads(outlines)
    named |= {
        (processes.of(plane), numbers[device.name]): f"HLO instructions of {device.name}"
        for plane in outlines
        if (device := device_of(plane.name)) is not None
    }
    return tuple(NamedId(process, thread, name=name) for (process, thread), name in named.items() if name)


def _notes(source: Source, space: Space, outlines: Sequence[Plane]) -> list[str]:
    notes = [f"The profiler says: {each}" for each in space.messages]
    if beside := note_beside(source.path):
        notes.append(beside)
    if find_clock(outlines).base_ns is None:
        notes.append(f"There is no plane {ENVIRONMENT!r} with a wall clock: the file is old, or was cut off.")
        if {is_unix(line.timestamp_ns) for plane in outlines for line in plane.lines} == {True, False}:
            notes.append(
                "Some lines have Unix times and others times since the profile's start: they can't be compared."
            )
    return notes


def _as_text(value: Value) -> str | None:
    return str(value) if isinstance(value, str | int) and value != "" else None
