"""One device and what it can do at most: peaks, bandwidths, sizes, clocks; every value says where it is from.

A device is what a driver presents as one: of the MI250 series, one of the two dies. Peaks are dense: sparsity counts
nowhere. Links and PCIe are per direction. Memory and caches come in powers of two, though datasheets write GB: 80 GB is
80 * 2^30 bytes. What isn't known for sure is None; a type that the hardware lacks has no peak.

Left out: what differs from one machine to the next (the memory of an Apple chip, the power limit of a server), and
what a kernel reaches: that is measured.
"""

from collections.abc import Iterator
from typing import Any, Literal, get_args

import msgspec

Kind = Literal["datasheet", "measured", "derived"]
Dtype = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4"]

_GREATEST = 1e30  # whole numbers beyond that would not even print
_RATES = ("FLOP/s", 1e9, 1e18)
_OPERATIONS = ("OP/s", 1e9, 1e18)  # integers
_SINGLE = {  # field: its unit, and the least and greatest value that can be meant
    "memory": ("B", 2**26, 2**50),
    "memory_bandwidth": ("B/s", 1e9, 1e15),
    "l2": ("B", 2**14, 2**40),
    "l2_bandwidth": ("B/s", 1e9, 1e16),
    "l3": ("B", 2**14, 2**40),
    "multiprocessors": ("count", 1, 1e6),
    "graphics_clock": ("Hz", 1e7, 1e11),
    "memory_clock": ("Hz", 1e7, 1e11),
    "link": ("B/s", 1e9, 1e14),
    "pcie": ("B/s", 1e8, 1e13),
    "power": ("W", 1, 1e5),
    "launch": ("ns", 10, 1e8),
}


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with its unit, the document or run that it is from, and whether it was read, measured or calculated."""

    value: int | float
    unit: str
    kind: Kind
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.value <= _GREATEST:
            found = "a greater one" if self.value > _GREATEST else self.value
            raise ValueError(f"expected a value above 0 and of at most {_GREATEST:g}, found {found}")
        if not self.source.strip():
            raise ValueError("expected a source: the document or measurement that the value is from")


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One device, as `devices/NAME.json` and `--hardware-file` declare it.

    Attributes:
        name: What reports call it; unique.
        vendor: Who makes it.
        arch: The compiler's target (`sm_90`, `gfx942`).
        aliases: What tools call it. Case, punctuation and the vendor's name don't count; a final `*` is any end.
        shared_names: What tools call it and others alike; distinguished by multiprocessors and memory.
        matrix: Peaks of the matrix units, by the type of what is multiplied; fp8 and 16 bits with fp32 sums.
        vector: Peaks of the vector units.
        memory: Capacity of its memory.
        memory_bandwidth: Of reading and writing together.
        l2: The cache that all its multiprocessors share.
        l2_bandwidth: Of reading and writing what lies in it.
        l3: A cache between that and memory (Infinity Cache).
        multiprocessors: SMs, compute units, GPU cores.
        graphics_clock: The highest clock (boost).
        memory_clock: The clock as tools report it, not the data rate.
        link: To other devices (NVLink, xGMI), all links together, per direction.
        pcie: To the host, per direction.
        power: What it may draw: TDP, TGP or TBP.
        launch: What a launch that does nothing takes, from the end of the one before to its own end: as measured, or at
            most. A reference and no bound: another launch path may be quicker.
        unknown: Why a value isn't given, by the name that `facts` has for it.
        notes: What the values don't say.
    """

    name: str
    vendor: str | None = None
    arch: str | None = None
    aliases: tuple[str, ...] = ()
    shared_names: tuple[str, ...] = ()
    matrix: dict[Dtype, Quantity] = {}
    vector: dict[Dtype, Quantity] = {}
    memory: Quantity | None = None
    memory_bandwidth: Quantity | None = None
    l2: Quantity | None = None
    l2_bandwidth: Quantity | None = None
    l3: Quantity | None = None
    multiprocessors: Quantity | None = None
    graphics_clock: Quantity | None = None
    memory_clock: Quantity | None = None
    link: Quantity | None = None
    pcie: Quantity | None = None
    power: Quantity | None = None
    launch: Quantity | None = None
    unknown: dict[str, str] = {}
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("name: expected text, found none")
        for fact, quantity in self.quantities():
            _check(fact, quantity)
        for fact, reason in self.unknown.items():
            _check_unknown(self, fact, reason)

    def quantities(self) -> Iterator[tuple[str, Quantity]]:
        """Every value that is known, under `matrix.bf16` or `memory`, peaks first."""
        for fact in facts():
            quantity = self.quantity(fact)
            if quantity is not None:
                yield fact, quantity

    def quantity(self, fact: str) -> Quantity | None:
        """One value by the name that `facts` has for it."""
        group, _, dtype = fact.partition(".")
        found: Any = getattr(self, group)
        quantity: Quantity | None = found.get(dtype) if dtype else found
        return quantity


def facts() -> tuple[str, ...]:
    """The names of all values that a device can have, in the order of reports."""
    return (*(f"{group}.{dtype}" for group in ("matrix", "vector") for dtype in get_args(Dtype)), *_SINGLE)


def unit_of(fact: str) -> str:
    """The unit in which a fact is given, by the name that `facts` has for it."""
    return _limits(fact)[0]


def _limits(fact: str) -> tuple[str, float, float]:
    group, _, dtype = fact.partition(".")
    return _SINGLE[group] if not dtype else _OPERATIONS if dtype.startswith("int") else _RATES


def _check_unknown(device: Device, fact: str, reason: str) -> None:
    """Refuse a reason without words, of no value that a device can have, or of one that is given."""
    if fact not in facts():
        raise ValueError(f'unknown: expected names such as "launch" or "matrix.fp8", found "{fact}"')
    if not reason.strip():
        raise ValueError(f"unknown.{fact}: expected why the value isn't given, found no text")
    if device.quantity(fact) is not None:
        raise ValueError(f"unknown.{fact}: expected no value where a reason says why there is none, found one")


def _check(fact: str, quantity: Quantity) -> None:
    """Refuse another unit, and a value so far off that its unit can't be as it says."""
    unit, least, greatest = _limits(fact)
    if quantity.unit != unit:
        raise ValueError(f'{fact}: expected the unit "{unit}", found "{quantity.unit}"')
    if not least <= quantity.value <= greatest:
        raise ValueError(
            f"{fact}: expected {least:g} to {greatest:g} {unit}, found {quantity.value:g}: is its unit right?"
        )
