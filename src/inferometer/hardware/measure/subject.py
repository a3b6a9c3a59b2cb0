"""A device as a library sees it, and how each fact of it is measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.hardware.device import Device, Quantity
from inferometer.hardware.measure.timing import Effort, Job


@dataclass(frozen=True)
class Task:
    """How one fact is measured; of several jobs, the quickest counts.

    `prepare` makes the jobs' data only when it is called; it raises `Unavailable` where the device lacks what it needs.
    """

    fact: str
    prepare: Callable[[Effort], Sequence[Job]]


@dataclass(frozen=True)
class Subject:
    """A device as a library sees it.

    Attributes:
        on: `gpu:0` or `cpu`.
        device: Its name, vendor, target, and what the driver says of it.
        library: What measures, with versions.
        tasks: In the order of measuring.
        clock_hz: The clock now; None where that is unknown.
        remarks: What a reader of the numbers should know.
    """

    on: str
    device: Device
    library: str
    tasks: Sequence[Task]
    clock_hz: Callable[[], float | None] = lambda: None
    remarks: tuple[str, ...] = ()


def make_device(facts: Mapping[str, Quantity], **fields: Any) -> Device:
    """A device with these values, under `matrix.bf16` or `memory`; `fields` are those without a unit.

    Raises:
        ValueError: A value can't be meant.
    """
    for fact, quantity in facts.items():
        group, _, dtype = fact.partition(".")
        fields[group] = {**fields.get(group, {}), dtype: quantity} if dtype else quantity
    return Device(**fields)
