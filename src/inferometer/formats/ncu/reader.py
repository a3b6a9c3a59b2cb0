"""Fills `kernel_counters` and `totals` from launches of ncu's pages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from inferometer.errors import FormatError
from inferometer.formats.ncu.numerals import Mark, find_mark, is_ambiguous, is_number, read_number
from inferometer.formats.ncu.pages import Launch, launches_of
from inferometer.formats.ncu.report import print_report
from inferometer.formats.ncu.totals import Durations
from inferometer.formats.ncu.units import in_base
from inferometer.formats.source import Source
from inferometer.formats.text_lines import Ends, read_lines
from inferometer.trace.facts import Device, Facts, NamedId

if TYPE_CHECKING:
    from inferometer.trace.builder import TraceBuilder

REPORT: Final = ".ncu-rep"
_NAME, _SMS = "device__attribute_display_name", "device__attribute_multiprocessor_count"
_COUNTERS, _TOTALS = "kernel_counters", "totals"
_BATCH = 100_000
_NOTE: Final = (
    "What was counted of launches that ran alone: inferometer counters shows it. Their times are never a trace's."
)
_FORBIDDEN = "ERR_NVGPUCTRPERM"


def read(source: Source, out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: There is no header of ncu, no launch below it, or no way to say what its numbers are.
        Unavailable: It is a report, and there is no ncu that reads it.
    """
    reader = _Reader(out)
    broken: list[str] = []
    with _printed(source) as printed, printed.open() as stream:
        limits = source.limits
        text = _Text(
            line
            for _, line in read_lines(
                stream, out.losses, longest=limits.event_bytes, most=limits.lines, name=source.name
            )
        )
        for mark, launch in _with_marks(launches_of(text, broken), source.name):
            reader.take(launch, mark)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    if text.is_cut:
        out.losses.count("truncated", example="the last line has no end")
    for example in broken:
        out.losses.see(_COUNTERS)
        out.losses.count("unreadable_row", category=_COUNTERS, example=example)
    if not reader.launches:
        raise _nothing_found(source.name, text.errors)
    return reader.finish(source.name)


@contextmanager
def _printed(source: Source) -> Iterator[Source]:
    """What ncu printed: the source, or what is made of a report."""
    if source.path is None or source.path.suffix != REPORT:
        yield source
        return
    with TemporaryDirectory(prefix="inferometer-", ignore_cleanup_errors=True) as folder:
        yield Source(print_report(source.path, source.name, Path(folder)), limits=source.limits)


def _nothing_found(name: str, errors: list[str]) -> FormatError:
    cause = f"; ncu says: {errors[0]}" if errors else ""
    hint = "Export it again: ncu --csv --page raw --import REPORT.ncu-rep"
    if any(_FORBIDDEN in error for error in errors):
        hint = (
            "This user may not read the GPU's counters: run ncu as root, or have the driver loaded with "
            "NVreg_RestrictProfilingToAdminUsers=0."
        )
    return FormatError(f"{name}: expected rows of launches below the header of ncu, found none{cause}", hint=hint)


def _with_marks(launches: Iterable[Launch], name: str) -> Iterator[tuple[Mark, Launch]]:
    """Each launch with the decimal mark of the file; those before it is known wait.

    Raises:
        FormatError: Numbers may be read in two ways, and nothing in the file decides between them.
    """
    held: list[Launch] = []
    unsure = ""
    mark: Mark | None = None
    for launch in launches:
        if mark is None:
            held.append(launch)
            mark = find_mark(held)
            unsure = unsure or next((text for _, _, text in launch.metrics if is_ambiguous(text)), "")
            if mark is None and unsure:
                continue
            yield from ((mark or ".", each) for each in held)
            held = []
        else:
            yield mark, launch
    if held:
        raise FormatError(
            f"{name}: expected a number that shows whether points or commas come before decimals, found only "
            f"such as {unsure}, which may be either",
            hint="Print a whole page, which has one: ncu --csv --page raw --import REPORT.ncu-rep",
        )


class _Text(Ends):
    """Lines as they come, and the first few in which ncu reports an error."""

    def __init__(self, lines: Iterator[str]) -> None:
        super().__init__(lines)
        self.errors: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in super().__iter__():
            if line.startswith("==ERROR==") and len(self.errors) < 3:
                self.errors.append(line.removeprefix("==ERROR==").strip())
            yield line


class _Reader:
    """What was read so far: counters to hand over, and durations by kernel and device."""

    def __init__(self, out: "TraceBuilder") -> None:
        self._out = out
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self._durations = Durations()
        self._numbers: dict[tuple[str | None, ...], int] = {}
        self._tables: dict[int, list[int]] = defaultdict(list)  # of each launch
        self._metrics: dict[int, set[str]] = defaultdict(set)  # of each table
        self._devices: dict[str, Device] = {}
        self._processes: dict[int, str | None] = {}
        self._hosts: dict[str, None] = {}

    @property
    def launches(self) -> int:
        """How many there are; one of several tables counts once."""
        return len(self._numbers)

    def take(self, launch: Launch, mark: Mark) -> None:
        """What one table has of one launch."""
        number = launch.number("Device")
        device = None if number is None else f"gpu:{number}"
        which = self._numbers.setdefault(launch.key, len(self._numbers))
        self._note(launch, device, mark)
        self._durations.take(which, launch, device, mark)
        if self._out.wants(_COUNTERS):
            self._add_counters(launch, which, device, mark)

    def finish(self, name: str) -> Facts:
        """Hand over what is left."""
        self._flush()
        if self._out.wants(_TOTALS):
            rows = self._durations.rows()
            self._out.losses.see(_TOTALS, len(rows))
            self._out.losses.count("profiled_alone", self.launches, category=_TOTALS)
            self._out.add(_TOTALS, len(rows), {name: [row.get(name) for row in rows] for name in rows[0]})
        return Facts(
            "ncu",
            name,
            tool="Nsight Compute",
            hosts=tuple(self._hosts),
            devices=tuple(self._devices.values()),
            processes=tuple(NamedId(process, name=text) for process, text in self._processes.items()),
            notes=(_NOTE,),
        )

    def _note(self, launch: Launch, device: str | None, mark: Mark) -> None:
        if host := launch.about.get("Host Name"):
            self._hosts[host] = None
        if (process := launch.number("Process ID")) is not None:
            self._processes[process] = launch.about.get("Process Name") or None
        if device is None:
            return
        known = self._devices.get(device)
        if known is None or (known.name is None and launch.metrics):
            named = {name: text for name, _, text in launch.metrics if name in (_NAME, _SMS)}
            count = read_number(named.get(_SMS, ""), mark)
            self._devices[device] = Device(
                device,
                name=named.get(_NAME),
                multiprocessors=int(count) if count is not None and count.is_finite() else None,
                compute_capability=launch.about.get("CC") or None,
            )

    def _add_counters(self, launch: Launch, which: int, device: str | None, mark: Mark) -> None:
        numbers = [
            (metric, unit, read_number(text, mark), text)
            for metric, unit, text in self._new(launch, which)
            if is_number(text)
        ]
        self._out.losses.see(_COUNTERS, len(numbers))
        for metric, _, number, text in numbers:
            if number is None:
                self._out.losses.count("wrong_type", category=_COUNTERS, example=f"{metric}: {text}")
        about = {
            "launch": which,
            "kernel": launch.about.get("Kernel Name", ""),
            "device": device,
            "process": launch.number("Process ID"),
            "stream": launch.number("Stream"),
            "grid": launch.size("Grid Size"),
            "block": launch.size("Block Size"),
        }
        for name, value in about.items():
            self._columns[name] += [value] * len(numbers)
        self._columns["metric"] += [metric for metric, *_ in numbers]
        self._columns["value"] += [None if number is None else in_base(number, unit) for _, unit, number, _ in numbers]
        self._columns["unit"] += [unit.text or None for _, unit, *_ in numbers]
        if len(self._columns["metric"]) >= _BATCH:
            self._flush()

    def _new(self, launch: Launch, which: int) -> list[tuple[str, Any, str]]:
        """The metrics that no earlier table has of this launch; the others are counted."""
        tables = self._tables[which]
        known = set().union(*(self._metrics[table] for table in tables if table != launch.table))
        if launch.table not in tables:
            tables.append(launch.table)
        found = [metric for metric in launch.metrics if metric[0] not in known]
        if again := len(launch.metrics) - len(found):
            self._out.losses.see(_COUNTERS, again)
            self._out.losses.count("repeated_row", again, category=_COUNTERS)
        self._metrics[launch.table].update(name for name, _, _ in found)
        return found

    def _flush(self) -> None:
        self._out.add(_COUNTERS, len(self._columns["metric"]), self._columns)
        self._columns = defaultdict(list)
