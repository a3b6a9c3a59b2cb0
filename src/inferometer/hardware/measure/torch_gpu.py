"""A GPU that PyTorch sees by CUDA or ROCm, timed by its own events around batches of calls.

Batches last tens of milliseconds, so that the gap before the first call doesn't count. Calls shorter than the host
takes to queue them (copies in the cache, launches) are replayed as a CUDA graph. Products of fp32 count as those of the
vector units, except on CDNA, which has matrix units for them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from inferometer.errors import Unavailable
from inferometer.hardware.device import Quantity
from inferometer.hardware.measure.nvml import Nvml, open_nvml
from inferometer.hardware.measure.sizes import far_copy_bytes, near_copy_bytes
from inferometer.hardware.measure.subject import Subject, Task, make_device
from inferometer.hardware.measure.timing import Effort, Job
from inferometer.hardware.measure.torch import Op, copy_job, guarded, product_job, refusals, smallest_op

_LIMITS = (1024, 16_384)  # of products
_FEW = 8192  # at most that, where memory is short
_MUCH = 24 << 30
_COPIES = 100  # in a graph
_LAUNCHES = 1000
_SINCE = {"fp16": (7, 0), "int8": (7, 5), "tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9)}  # compute capability
_CDNA = ("gfx908", "gfx90a", "gfx94", "gfx95")
_RDNA = ("gfx11", "gfx12")
_FP8_OF_AMD = ("gfx94", "gfx95", "gfx12")
_LEAST_COPY = 512 << 20
INFINITY_CACHE = 256 << 20
"""Bytes, of CDNA 3 and 4, between L2 and memory; the driver doesn't report it."""
_DRIVER = "the driver, as PyTorch tells"
_NVML = "NVML, highest clock of the device"


def count_gpus() -> int:
    """How many PyTorch sees."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def describe_gpu(index: int) -> Subject:
    """The GPU with this number, as PyTorch counts them.

    Raises:
        Unavailable: There is none, or it answers nothing: its memory is full, or another process holds it.
    """
    import torch

    count = count_gpus()
    if index >= count:
        found = f"torch {torch.__version__} sees " + (f"only gpu:0 to gpu:{count - 1}" if count else "no GPU")
        hint = "Its driver, and a build of PyTorch for CUDA or ROCm, must be there; --on cpu measures the processor."
        raise Unavailable(f"there is no gpu:{index}: {found}", hint=hint)
    with refusals():
        return _describe(index)


def product_facts(arch: str) -> tuple[str, ...]:
    """What is measured by products on a target: the types that it has instructions for, and units of which kind."""
    if arch.startswith("sm_"):
        capability = int(arch[3:-1]), int(arch[-1])
        narrow = [f"matrix.{dtype}" for dtype, since in _SINCE.items() if capability >= since]
        return ("vector.fp32", *narrow)
    fp8 = ("matrix.fp8",) if arch.startswith(_FP8_OF_AMD) else ()
    narrow_of_amd = ("matrix.bf16", "matrix.fp16", *fp8, "matrix.int8")
    if arch.startswith(_CDNA):
        return ("matrix.fp32", *narrow_of_amd)
    return ("vector.fp32", *narrow_of_amd) if arch.startswith(_RDNA) else ("vector.fp32",)


def _describe(index: int) -> Subject:
    import torch

    properties = torch.cuda.get_device_properties(index)
    uuid = getattr(properties, "uuid", None)
    nvml = open_nvml(str(uuid)) if uuid and torch.version.cuda else None
    toolkit = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    facts = _driver_facts(properties, nvml)
    return Subject(
        on=f"gpu:{index}",
        device=make_device(
            facts, name=properties.name, vendor="NVIDIA" if torch.version.cuda else "AMD", arch=_arch(properties)
        ),
        library=f"torch {torch.__version__}, {toolkit}",
        tasks=_tasks(index, _arch(properties), facts.get("l2")),
        clock_hz=nvml.clock_hz if nvml else lambda: None,
        remarks=nvml.remarks() if nvml else (),
    )


def _tasks(index: int, arch: str, cache: Quantity | None) -> Sequence[Task]:
    import torch

    where, runner = f"cuda:{index}", partial(_queued, index)
    free_bytes = torch.cuda.mem_get_info(index)[0]
    limits = _LIMITS if free_bytes >= _MUCH else (_LIMITS[0], _FEW)
    cache_bytes = None if cache is None else int(cache.value)
    far = max(cache_bytes or 0, 0 if torch.version.cuda else INFINITY_CACHE)

    def products(dtype: str, effort: Effort) -> Sequence[Job]:
        return [product_job(dtype, where, runner, effort, limits)]

    return (
        Task(
            "memory_bandwidth",
            lambda effort: [copy_job(where, far_copy_bytes(far, free_bytes, least=_LEAST_COPY), runner)],
        ),
        Task("l2_bandwidth", lambda effort: [_near_copies(index, near_copy_bytes(cache_bytes))]),
        Task("launch", lambda effort: _launches(index)),
        *(Task(fact, partial(products, fact.partition(".")[2])) for fact in product_facts(arch)),
    )


def _near_copies(index: int, size_bytes: int) -> Job:
    job = copy_job(f"cuda:{index}", size_bytes, partial(_replayed, index, _COPIES))
    return Job(f"{job.how}, {_COPIES} a graph replay, with what their launches take", job.amount * _COPIES, job.run)


def _launches(index: int) -> Sequence[Job]:
    """One after the other in a queue that never runs empty, and as the nodes of a graph, where graphs are to be had."""
    op = smallest_op(f"cuda:{index}")
    eager = Job("the smallest op, eager, back to back", 1, guarded(_queued(index, op)))
    try:
        with refusals():
            replay = _replayed(index, _LAUNCHES, op)
    except Unavailable:
        return [eager]
    return [eager, Job(f"the smallest op, {_LAUNCHES} a graph replay", _LAUNCHES, guarded(replay))]


def _queued(index: int, op: Op) -> Callable[[int], float]:
    """Times calls by two events in their queue."""
    import torch

    def run(calls: int) -> float:
        with torch.cuda.device(index):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(calls):
                op()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e6

    return run


def _replayed(index: int, times: int, op: Op) -> Callable[[int], float]:
    """The same of a graph that holds the op so many times; a call is a replay."""
    import torch

    with torch.cuda.device(index):
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            op()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                op()
    return _queued(index, graph.replay)


def _driver_facts(properties: Any, nvml: Nvml | None) -> dict[str, Quantity]:
    """Sizes and clocks; versions of PyTorch differ in what they pass on."""
    clock_khz = getattr(properties, "clock_rate", None)
    clock = nvml.greatest_clock_hz("GRAPHICS") if nvml else None
    found = {
        "memory": (properties.total_memory, "B", _DRIVER),
        "l2": (getattr(properties, "L2_cache_size", None), "B", _DRIVER),
        "multiprocessors": (properties.multi_processor_count, "count", _DRIVER),
        "graphics_clock": (clock, "Hz", _NVML) if clock else (clock_khz and clock_khz * 1e3, "Hz", _DRIVER),
        "memory_clock": (nvml.greatest_clock_hz("MEM") if nvml else None, "Hz", _NVML),
    }
    return {fact: Quantity(value, unit, "measured", source) for fact, (value, unit, source) in found.items() if value}


def _arch(properties: Any) -> str:
    """The compiler's target: `sm_90`, `gfx942`."""
    import torch

    if torch.version.hip:
        return str(properties.gcnArchName).partition(":")[0]
    return f"sm_{properties.major}{properties.minor}"
