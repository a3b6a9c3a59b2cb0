"""The work of each group of equal calls, and the bounds that follow from it on a device."""

import re
from collections.abc import Sequence

import msgspec

from inferometer.analyses.launched_by.op_calls import NONE, OpCalls
from inferometer.hardware.device import Device
from inferometer.operators.bounds import bounds_of
from inferometer.operators.framework.call import OpCall, Unmodelled, read_call
from inferometer.operators.framework.collectives import NAME as COLLECTIVES
from inferometer.operators.framework.counterparts import Counterpart
from inferometer.operators.framework.exchange import Exchange
from inferometer.operators.framework.family import Found, model_of
from inferometer.operators.framework.inductor_source import KernelSource
from inferometer.operators.framework.lengths import Lengths
from inferometer.operators.work import Work

HOST_COPIES = re.compile(r"^(?:Memcpy (?:HtoD|DtoH)|CopyHostToDevice|CopyDeviceToHost)")
_CLEARS = re.compile(r"^(?:Memset|__amd_rocclr_fillBuffer)")
_ADDS_PARTS = re.compile(r"splitKreduce_kernel")  # of a product that others compute
_NOT_COMPUTED = "the launches that compute it aren't in the file: those that are only clear memory or add up parts"
NO_MODEL = "there is no model of this op"
NO_PEAK = "the device's data lacks a rate that it needs"


class Bounded(msgspec.Struct, frozen=True):
    """What one call takes.

    `bound_ns` and `binding` of the greatest bound, `warm_ns` the same with memory's from L2, where all that moves fits
    in it. `parts_ns`: the bounds by matrix units, by other arithmetic and by memory, which have clocks of their own;
    None where a link bounds. `reason`: why `work`, or its bound, isn't known. `counterpart`: the catalogue's operator
    that it is.
    """

    family: str | None
    work: Work | None = None
    bound_ns: float | None = None
    binding: str = "unknown"
    warm_ns: float | None = None
    parts_ns: tuple[float, float, float] | None = None
    reason: str = ""
    counterpart: Counterpart | None = None


def bounded(call: OpCall, device: Device | None) -> Bounded:
    """The bounds of a call on a device; without one, its work alone."""
    found = model_of(call.op)
    if found is None:
        return Bounded(None, reason=NO_MODEL)
    try:
        work = found.work(call)
    except Unmodelled as unmodelled:
        return Bounded(found.family, reason=str(unmodelled))
    if not _is_computed(work, call.kernels):
        return Bounded(found.family, reason=_NOT_COMPUTED)
    if device is None:
        return Bounded(found.family, work)
    if call.kernels and all(HOST_COPIES.match(kernel) for kernel in call.kernels):
        return _over_pcie(found.family, work, device)
    return _on(found.family, work, device)


def _is_computed(work: Work, kernels: Sequence[str]) -> bool:
    """Whether any of a call's launches can do its work: files of sampled launches have some of them alone."""
    others = [kernel for kernel in kernels if not _CLEARS.match(kernel)]
    if work.products:
        others = [kernel for kernel in others if not _ADDS_PARTS.search(kernel)]
    return bool(others) or not kernels or not (work.products or work.read_bytes)


def bounded_exchange(exchange: Exchange, device: Device | None) -> Bounded:
    """The bounds of a collective that a launch's record describes."""
    try:
        work = exchange.work()
    except Unmodelled as unmodelled:
        return Bounded(COLLECTIVES, reason=str(unmodelled))
    return Bounded(COLLECTIVES, work) if device is None else _on(COLLECTIVES, work, device)


def _on(family: str, work: Work, device: Device) -> Bounded:
    """The greatest bound on a device, that of its link among them."""
    bounds = bounds_of(work, device)
    if any(bounds.times_ns[each] is None for each in ("matrix", "memory")) or (work.link_bytes and not device.link):
        return Bounded(family, work, reason=NO_PEAK)
    link_ns = 1e9 * work.link_bytes / device.link.value if device.link else 0.0
    others = [time for bound, time in bounds.times_ns.items() if bound != "memory" and time]
    warm = None if bounds.memory_warm_ns is None else max([bounds.memory_warm_ns, link_ns, *others])
    inside_ns = bounds.bound_ns or 0.0
    if link_ns > inside_ns:
        return Bounded(family, work, link_ns, "link", warm)
    matrix, vector, special, chain, memory = (
        bounds.times_ns[each] or 0.0 for each in ("matrix", "vector", "special", "dependency", "memory")
    )
    return Bounded(family, work, inside_ns, bounds.binding, warm, (matrix, max(vector, special, chain), memory))


def _over_pcie(family: str, work: Work, device: Device) -> Bounded:
    """A copy from or to the host crosses PCIe once."""
    if device.pcie is None:
        return Bounded(family, work, reason=NO_PEAK)
    return Bounded(family, work, 1e9 * work.written_bytes / device.pcie.value, "pcie")


def recorded_call(
    row: dict[str, str | None],
    kernels: Sequence[str] = (),
    lengths: Lengths = Lengths(),  # noqa: B008  # frozen
    inside: tuple[OpCall, ...] = (),
    source: KernelSource | None = None,
) -> OpCall:
    """The call of a row of signatures.

    Raises:
        Unmodelled: Its shapes weren't recorded.
    """
    return read_call(
        row["op"] or "",
        row["input_dims"],
        row["input_dtypes"],
        row["input_strides"],
        row["scalars"],
        kernels=tuple(kernels),
        inside=inside,
        lengths=lengths,
        source=source,
    )


def has_sizes(
    op: str | None, dims: str | None, dtypes: str | None, strides: str | None = None, values: str | None = None
) -> bool:
    """Whether the size of any tensor among recorded arguments stands there, be it in a list."""
    try:
        return bool(read_call(op or "", dims, dtypes, strides, values).all_tensors)
    except Unmodelled:
        return False


def calls_asked_for(calls: OpCalls, call: int, model: Found) -> list[int]:
    """Those that the model of this call looks at: that it made, and that made it."""
    forward = NONE if model.forward_op is None else calls.forward_of(call, model.forward_op)
    made = calls.within(call).tolist() if model.looks_inside else []
    return made if forward == NONE else [*made, forward]


def calls_inside(calls: OpCalls, call: int, model: Found) -> tuple[OpCall, ...]:
    """The calls that the model looks at, as far as shapes were recorded."""
    found = []
    for row in calls.rows(calls_asked_for(calls, call, model)).iter_rows(named=True):
        try:
            found.append(recorded_call(row))
        except Unmodelled:
            continue
    return tuple(found)
