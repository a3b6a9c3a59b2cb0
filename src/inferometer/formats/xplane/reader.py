"""Reads an XSpace: planes of devices first, since calls of hosts are known by what these launched, then the others."""

from collections.abc import Callable

from inferometer.formats.source import Source
from inferometer.formats.xplane.counters import COUNTERS, read_counters
from inferometer.formats.xplane.device import DeviceReader, device_of
from inferometer.formats.xplane.facts import Processes, count_dropped, find_clock, is_host, own_threads, read_facts
from inferometer.formats.xplane.host import HostReader
from inferometer.formats.xplane.instructions import TABLES, Instructions
from inferometer.formats.xplane.lines import LineReader, count_line, line_name
from inferometer.formats.xplane.plane import Plane
from inferometer.formats.xplane.space import RawPlane, read_space
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_device_work
from inferometer.trace.facts import Facts
from inferometer.trace.tables import TABLES as ALL

_OF_DEVICES = ("launches", "calls", "spans", "counters", *TABLES)
_OF_HOSTS = ("calls", "spans", "steps", "counters", *TABLES)
_OF_OTHERS = ("launches", "counters")
_Stage = tuple[Callable[[str], bool], tuple[str, ...], Callable[[Plane], None]]


def read(source: Source, out: TraceBuilder) -> Facts:
    """Read the tables that `out` wants."""
    space = read_space(source, out.losses)
    outlines = [Plane(raw.outline, out.losses) for raw in space.planes]
    clock, processes = find_clock(outlines), Processes(outlines)
    lines, instructions = LineReader(clock, out), Instructions(own_threads(outlines))
    devices = DeviceReader(out, lines, instructions)
    hosts = HostReader(out, lines, instructions, devices.kernels)

    stages: tuple[_Stage, ...] = (
        (_is_device, _OF_DEVICES, lambda plane: devices.read(plane, processes.of(plane))),
        (is_host, _OF_HOSTS, lambda plane: hosts.read(plane, processes.of(plane))),
        (_is_other, _OF_OTHERS, lambda plane: _read_other(plane, lines, out)),
    )
    done = 0
    for is_here, tables, act in stages:
        for raw, outline in zip(space.planes, outlines, strict=True):
            if is_here(outline.name):
                if outline.lines and out.wants(*tables):
                    _decode(raw, act, out)
                done += 1
                source.report_share(done / len(outlines))
    instructions.add_rows(out)
    lines.count_rounded()
    check_device_work(out, whole=out.narrow("launches") == frozenset(ALL["launches"].schema))
    count_dropped(outlines, out.losses)
    return read_facts(source, space, outlines, processes)


def _is_device(plane: str) -> bool:
    return device_of(plane) is not None


def _is_other(plane: str) -> bool:
    return not _is_device(plane) and not is_host(plane)


def _decode(raw: RawPlane, act: Callable[[Plane], None], out: TraceBuilder) -> None:
    """Decode a plane and read it, or count it."""
    try:
        message = raw.decode()
    except ValueError as error:
        out.losses.count("unreadable_plane", example=f"{raw.name}, {raw.place}: {error}")
        return
    act(Plane(message, out.losses))


def _read_other(plane: Plane, lines: LineReader, out: TraceBuilder) -> None:
    """A plane of a chip or of another device: its counters, and how many events have no table."""
    for line in plane.lines:
        if line_name(line) == COUNTERS:
            read_counters(plane, line, plane.name, lines, out)
        else:
            count_line(line, f"{plane.name} {line_name(line)}", "unknown_category", out)
