"""The part that all replay scripts share: draws the tensors of a call, finds its op in PyTorch, runs and times it.

Its text after this docstring is copied into each script, so it needs the standard library and torch alone. Tensors
are views over buffers with the recorded strides: what was broadcast or sliced is so again.
"""

import argparse
import importlib
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from torch import Tensor


class Integers(NamedTuple):
    """Random whole numbers from `low` to below `high`."""

    low: int
    high: int


class Distinct(NamedTuple):
    """Different whole numbers below this, in random order."""

    below: int


class Ends(NamedTuple):
    """Rising from 0 to this in equal steps: where sequences of equal length begin and end."""

    total: int


class Strided(NamedTuple):
    """A tensor: sizes, strides in elements, dtype. Values are standard normal without a `fill`; `on_host`: a number."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    fill: Integers | Distinct | Ends | None = None
    on_host: bool = False


class Call(NamedTuple):
    """An op and its inputs in the order of its schema; None: not given. `libraries` register it on import."""

    op: str
    inputs: tuple[Any, ...]
    libraries: tuple[str, ...] = ()


class Misfit(Exception):
    """Why an overload of the op doesn't take the inputs."""


def main(call: Call) -> None:
    """Run the call as the command line asks, and print its times."""
    options = _options()
    try:
        import torch
    except ImportError:
        _fail("torch isn't installed")
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    try:
        run = _prepare(call, device)
        with torch.inference_mode():
            times = _time(run, device, options.warmup, options.calls, cold=options.cold)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        _fail(f"{call.op} can't run on {device}: {str(error).partition(chr(10))[0]:.300}")
    low, median, high = (statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3)[:3]
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    print(f"{call.op} on {name}, torch {torch.__version__}")
    print(f"median {median:.3f} us, quartiles {low:.3f} to {high:.3f} us, {len(times)} calls")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run one op of a trace again and time it.")
    parser.add_argument("--device", help="where to run, such as cuda:1 or cpu  [default: cuda if there is one]")
    parser.add_argument("--calls", type=int, default=50, help="calls to time  [default: 50]")
    parser.add_argument("--warmup", type=int, default=5, help="calls before those  [default: 5]")
    parser.add_argument("--cold", action="store_true", help="overwrite a GPU's L2 cache before each call")
    options = parser.parse_args()
    if options.calls < 1 or options.warmup < 0:
        parser.error("--calls must be at least 1, and --warmup at least 0")
    return options


def _fail(why: str) -> NoReturn:
    sys.exit(f"error: {why}")


def _prepare(call: Call, device: str) -> Callable[[], Any]:
    """The call, ready to run: tensors are drawn."""
    packet = _find_op(call)
    reasons = []
    overloads = [getattr(packet, name) for name in packet.overloads()]
    size = len(call.inputs)
    for overload in sorted(overloads, key=lambda each: len(each._schema.arguments) != size):
        try:
            args, named = _arrange(overload._schema.arguments, call.inputs, device)
        except Misfit as misfit:
            reasons.append(f"  {overload}: {misfit}")
            continue
        inputs = [_drawn(each, device) for each in args]
        keywords = {name: _drawn(each, device) for name, each in named.items()}
        return lambda: overload(*inputs, **keywords)
    _fail("\n".join([f"no overload of {call.op} here takes the recorded arguments", *reasons]))


def _find_op(call: Call) -> Any:
    import torch

    failed = []
    for library in call.libraries:
        try:
            importlib.import_module(library)
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            failed.append(f"; `import {library}` fails: {error}")
    namespace, _, name = call.op.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        hint = "".join(failed) or "; import the library that registers it"
        _fail(f"{call.op} isn't registered here{hint}")
    return packet


def _arrange(arguments: Any, inputs: tuple[Any, ...], device: str) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments, as a schema has them."""
    if len(inputs) > len(arguments):
        raise Misfit(f"it takes {len(arguments)} arguments, {len(inputs)} are recorded")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, argument in enumerate(arguments):
        found = _fitted(argument, inputs[place] if place < len(inputs) else None, device)
        if argument.kwarg_only:
            named[argument.name] = found
        else:
            positional.append(found)
    return positional, named


def _fitted(argument: Any, found: Any, device: str) -> Any:
    """The input as this argument takes it."""
    kind = str(argument.type)
    kind = kind[len("Optional[") : -1] if kind.startswith("Optional[") else kind
    if found is None:
        return _default(argument, kind, device)
    parts = found if isinstance(found, list) else [found]
    takes = (kind.startswith("List["), "Tensor" in kind, "str" in kind)
    if takes != (isinstance(found, list), *(any(isinstance(each, of) for each in parts) for of in (Strided, str))):
        raise Misfit(f"argument {argument.name} is of type {argument.type}")
    return found


def _default(argument: Any, kind: str, device: str) -> Any:
    """What stands where nothing is recorded: a factory's device, the default, or None."""
    if kind == "Device":
        return device
    if argument.has_default_value():
        return argument.default_value
    if str(argument.type).startswith("Optional["):
        return None
    raise Misfit(f"argument {argument.name} of type {argument.type} isn't recorded")


def _drawn(value: Any, device: str) -> Any:
    """The value itself, or tensors where it describes such."""
    if isinstance(value, Strided):
        return _draw(value, device)
    return [_drawn(each, device) for each in value] if isinstance(value, list) else value


def _draw(tensor: Strided, device: str) -> "Tensor":
    """A tensor over a buffer that holds its last element."""
    import torch

    place = "cpu" if tensor.on_host else device
    ends = zip(tensor.dims, tensor.strides, strict=True)
    size = 0 if 0 in tensor.dims else 1 + sum((length - 1) * stride for length, stride in ends)
    flat = _filled(size, getattr(torch, tensor.dtype), tensor.fill, place)
    return torch.as_strided(flat, tensor.dims, tensor.strides)


def _filled(size: int, dtype: Any, fill: Integers | Distinct | Ends | None, place: str) -> "Tensor":
    import torch

    if isinstance(fill, Integers):
        return torch.randint(fill.low, fill.high, (size,), device=place).to(dtype)
    if isinstance(fill, Distinct):
        rounds = math.ceil(size / fill.below) if fill.below else 0
        parts = [torch.randperm(fill.below, device=place)[:size] for _ in range(rounds)]
        return (torch.cat(parts) if parts else torch.empty(0, device=place))[:size].to(dtype)
    if isinstance(fill, Ends):
        return (torch.arange(size, device=place) * fill.total // max(1, size - 1)).to(dtype)
    if dtype.itemsize > 1 or dtype.is_complex:
        return torch.randn(size, dtype=dtype, device=place)
    if dtype == getattr(torch, "float8_e8m0fnu", None):
        return torch.full((size,), 127, dtype=torch.uint8, device=place).view(dtype)  # 1: exponents alone
    sign = torch.randint(0, 2, (size,), dtype=torch.uint8, device=place) * 128
    small = torch.randint(0x28, 0x3C, (size,), dtype=torch.uint8, device=place)  # 0.25 to 1.5 in e4m3
    return (sign + small).view(dtype)


def _time(run: Callable[[], Any], device: str, warmup: int, calls: int, *, cold: bool) -> list[float]:
    """Microseconds of each call."""
    for _ in range(warmup):
        run()
    if device.startswith("cuda"):
        return _time_on_gpu(run, device, calls, cold=cold)
    times = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return times


def _time_on_gpu(run: Callable[[], Any], device: str, calls: int, *, cold: bool) -> list[float]:
    """Between two events in the stream; the device is kept busy before them, so that the host's time isn't in it."""
    import torch

    cache = torch.cuda.get_device_properties(device).L2_cache_size
    flushed = torch.empty(2 * cache if cold else 0, dtype=torch.uint8, device=device)
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
    torch.cuda.synchronize(device)
    with torch.cuda.device(device):
        for begin, end in pairs:
            torch.cuda._sleep(500_000)
            flushed.zero_()
            begin.record()
            run()
            end.record()
    torch.cuda.synchronize(device)
    return [1e3 * begin.elapsed_time(end) for begin, end in pairs]
