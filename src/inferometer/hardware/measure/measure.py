"""Measure the device at hand: what copies, products and launches reach, as a `Device` that says how it was measured.

A backend (`torch.py`, `numpy.py`) describes a device as a `Subject`: what the driver says, and a `Task`
for each fact. Here they are timed, and put together with what our data file of that device knows about them.

What is measured is what one library reaches, not what hardware can do at most: a kernel may be quicker. Left out:
links, PCIe, power, special functions, fp64, and reading without writing.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from statistics import median

import msgspec

from inferometer.errors import InputError, Unavailable
from inferometer.hardware.device import Device, Quantity, unit_of
from inferometer.hardware.known import devices, find_device
from inferometer.hardware.measure.subject import Subject, Task, make_device
from inferometer.hardware.measure.timing import FULL, Effort, Job, Samples, take_samples
from inferometer.new_files import FileKind

_PLACE = re.compile(r"cpu|gpu(?::(?P<index>[0-9]{1,4}))?")
_DIGITS = 6  # of a measured value: more would pretend


@dataclass(frozen=True)
class Measurement:
    """A measured fact: the median, the tenth and ninetieth percentile, lesser value first, and how it came about.

    Attributes:
        fact: As in `facts`.
        quantity: The median, with its source.
        p10: Tenth percentile of the value.
        p90: Ninetieth.
        samples: How many there are.
        calls: In a sample.
        spread: Half of the 95 % interval of the median, over the median.
        clock_hz: The median of the clock after each job; None: unknown.
    """

    fact: str
    quantity: Quantity
    p10: float
    p90: float
    samples: int
    calls: int
    spread: float
    clock_hz: float | None


@dataclass(frozen=True)
class Measured:
    """A device and what was measured of it; `known` is ours of the same, `missing` says why a fact isn't there."""

    subject: Subject
    device: Device
    known: Device | None
    measurements: tuple[Measurement, ...]
    missing: Mapping[str, str]
    date: str


def find_subject(on: str | None = None) -> Subject:
    """What `--on` means, described by the library that can measure it; None: the first GPU, or else the CPU.

    Raises:
        InputError: `on` is no place.
        Unavailable: There is no such device, or a GPU is asked for and torch isn't installed.
    """
    place = _PLACE.fullmatch("gpu:0" if on is None else on)
    if place is None:
        raise InputError(f'expected cpu, gpu or gpu:1 to measure on, found "{on}"', hint="Numbers begin at 0.")
    has_torch = find_spec("torch") is not None
    if place[0] != "cpu" and has_torch:
        from inferometer.hardware.measure.torch_gpu import count_gpus, describe_gpu

        if on is not None or count_gpus():
            return describe_gpu(int(place["index"] or 0))
    if on is not None and place[0] != "cpu":
        raise Unavailable("torch is not installed, which measures GPUs", hint="pip install 'inferometer[torch]'")
    if has_torch:
        from inferometer.hardware.measure.torch_cpu import describe_cpu
    else:
        from inferometer.hardware.measure.numpy import describe_cpu
    return describe_cpu()


def measure_subject(
    subject: Subject,
    effort: Effort = FULL,
    *,
    on_fact: Callable[[str], None] = lambda fact: None,
    clock: Callable[[], int] = time.perf_counter_ns,
    among: Sequence[Device] | None = None,
) -> Measured:
    """Do all tasks, one after the other.

    Args:
        subject: From `find_subject`.
        effort: How long it may take.
        on_fact: Called with each fact before it is measured.
        clock: Says when the time for a fact is over.
        among: Look for the same device through these; None: those that we have.
    """
    date = datetime.now(UTC).date().isoformat()
    found: list[Measurement] = []
    missing: dict[str, str] = {}
    for task in subject.tasks:
        on_fact(task.fact)
        try:
            found.append(_measure(task, subject, effort, clock, date))
        except Unavailable as error:
            missing[task.fact] = error.message
        except ValueError as error:  # a device refuses what can't be meant
            missing[task.fact] = f"not believable: {error}"
    _drop_slow_cache(found, missing)
    known = _find_known(subject, devices() if among is None else among)
    return Measured(subject, _put_together(subject, known, found, date), known, tuple(found), missing, date)


DEVICE_FILE = FileKind("device file", lambda head: head.startswith(b"{") and b'"vendor"' in head)


def encode_device(device: Device) -> bytes:
    """A device as its file has it: JSON for people, without what isn't known."""
    return msgspec.json.format(msgspec.json.encode(device), indent=1) + b"\n"


def file_name(subject: Subject) -> str:
    """Name of the file that the device goes to where none is named: `nvidia-h200.json`."""
    words = re.findall(r"[a-z0-9.]+", subject.device.name.casefold())
    return f"{'-'.join(words)[:80].strip('.-') or 'device'}.json"


def _measure(task: Task, subject: Subject, effort: Effort, clock: Callable[[], int], date: str) -> Measurement:
    taken: list[tuple[Job, Samples]] = []
    clocks: list[float] = []
    for job in task.prepare(effort):
        taken.append((job, take_samples(job, effort, clock)))
        if clock_hz := subject.clock_hz():
            clocks.append(clock_hz)
    unit = unit_of(task.fact)
    job, samples = min(taken, key=lambda each: each[1].median_ns / each[0].amount)
    values = [_value(unit, job, ns) for ns in (samples.median_ns, samples.p10_ns, samples.p90_ns)]
    others = [f"{_value(unit, other, s.median_ns):g} {unit}: {other.how}" for other, s in taken if other is not job]
    steady = "" if samples.steady else f", not steady: ±{samples.spread:.1%}"
    how = f"{job.how}; median of {len(samples.times_ns)} samples of {samples.calls}{steady}"
    source = "; ".join((f"inferometer hardware --measure on {date}: {how}", *others, subject.library))
    quantity = Quantity(values[0], unit, "measured", source)
    make_device({task.fact: quantity}, name="check")
    p10, p90 = sorted(values[1:])
    return Measurement(
        task.fact, quantity, p10, p90, len(samples.times_ns), samples.calls, samples.spread,
        median(clocks) if clocks else None,
    )  # fmt: skip


def _value(unit: str, job: Job, ns: float) -> float:
    """Of one call's time: the time of one launch, or the amount in a second."""
    value = ns / job.amount if unit == "ns" else 1e9 * job.amount / max(ns, 1e-3)
    return float(f"{value:.{_DIGITS}g}")


def _drop_slow_cache(found: list[Measurement], missing: dict[str, str]) -> None:
    """A copy in the cache that is no quicker than in memory measures launches or other work, not the cache."""
    values = {each.fact: each.quantity.value for each in found}
    if values.get("l2_bandwidth", 0) <= (memory := values.get("memory_bandwidth", 0)) and "l2_bandwidth" in values:
        missing["l2_bandwidth"] = f"no quicker than memory: {values['l2_bandwidth']:g} of {memory:g} B/s"
        found[:] = [each for each in found if each.fact != "l2_bandwidth"]


def _find_known(subject: Subject, among: Sequence[Device]) -> Device | None:
    """Ours of the same device; of a processor none: names of chips mean their GPU."""
    if subject.on == "cpu":
        return None
    device = subject.device
    count, memory = device.multiprocessors, device.memory
    return find_device(
        device.name,
        multiprocessors=None if count is None else int(count.value),
        memory_bytes=None if memory is None else int(memory.value),
        among=among,
    )


def _put_together(subject: Subject, known: Device | None, found: Sequence[Measurement], date: str) -> Device:
    """What was measured, before what our file knows, before what the driver says."""
    facts = dict(subject.device.quantities())
    facts |= dict(known.quantities()) if known else {}
    facts |= {each.fact: each.quantity for each in found}
    base = known or subject.device
    notes = (*base.notes, f"Measured on {date} with {subject.library}: what that reaches, not what hardware allows.")
    fields = {name: getattr(base, name) for name in ("name", "vendor", "arch", "aliases", "shared_names")}
    return make_device(facts, **fields, notes=(*notes, *subject.remarks))
