"""What PyTorch does on any device to be timed: a copy, a product of two matrices, the smallest op.

Data are random: on zeros a GPU draws less power, clocks higher, and multiplies quicker than it ever does in a model.
Products are those of linear layers: x times the transpose of a weight, each as large as takes the time wanted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from inferometer.errors import Unavailable
from inferometer.hardware.measure.sizes import megabytes, product_size
from inferometer.hardware.measure.timing import Effort, Job

Op = Callable[[], Any]
Runner = Callable[[Op], Callable[[int], float]]
"""Makes the `run` of a job from an op."""


def copy_job(where: str, size_bytes: int, runner: Runner) -> Job:
    """Reads a buffer and writes another; both count."""
    import torch

    with refusals():
        source = torch.empty(size_bytes // 4, dtype=torch.float32, device=where).uniform_()
        target = torch.zeros_like(source)
        run = runner(lambda: target.copy_(source))
    return Job(f"copies of {megabytes(size_bytes)}, read and written counted", 2 * 4 * source.numel(), guarded(run))


def smallest_op(where: str) -> Op:
    """An op on one number: as near to a kernel that does nothing as PyTorch comes."""
    import torch

    with refusals():
        number = torch.ones(1, device=where)
    return lambda: number.mul_(1.0)


def product_job(dtype: str, where: str, runner: Runner, effort: Effort, limits: tuple[int, int]) -> Job:
    """A product of square matrices that takes `effort.product_ns`, or is of the least or greatest of `limits`."""
    precision = {"fp32": "highest", "tf32": "high"}.get(dtype)

    def run_of(size: int) -> Callable[[int], float]:
        with refusals():
            return guarded(runner(_product(dtype, where, size)), precision)

    N = product_size(run_of, effort.product_ns, limits)
    return Job(f"{dtype} products of {N} x {N} x {N}, random numbers", 2 * N**3, run_of(N))


@contextmanager
def refusals() -> Iterator[None]:
    """What PyTorch can't do on this device, or has no memory for, as `Unavailable` with its own words."""
    try:
        yield
    except (RuntimeError, NotImplementedError, ValueError) as error:  # out of memory is a RuntimeError too
        first = str(error).strip().split("\n")[0][:200]
        raise Unavailable(f"PyTorch refuses: {first or type(error).__name__}") from error


def guarded(run: Callable[[int], float], precision: str | None = None) -> Callable[[int], float]:
    """The same with `refusals`, and fp32 products in this precision: `highest` is fp32, `high` is TF32."""

    def run_guarded(calls: int) -> float:
        with refusals(), nullcontext() if precision is None else _fp32_products(precision):
            return run(calls)

    return run_guarded


def _product(dtype: str, where: str, N: int) -> Op:
    """With sums in fp32 or int32: `torch.mm`, `torch._int_mm`, `torch._scaled_mm`."""
    import torch

    x_NN, w_NN = (torch.randn(N, N, device=where) for _ in range(2))
    if dtype == "int8":
        x_NN, w_NN = ((each * 32).round().clamp(-127, 127).to(torch.int8) for each in (x_NN, w_NN))
        return lambda: torch._int_mm(x_NN, w_NN.t())
    if dtype == "fp8":
        fp8, one = _fp8_of(where), torch.ones((), device=where)
        x_NN, w_NN = x_NN.to(fp8), w_NN.to(fp8)
        return lambda: torch._scaled_mm(x_NN, w_NN.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    wide = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
    x_NN, w_NN = x_NN.to(wide), w_NN.to(wide)
    out_NN = torch.empty_like(x_NN)
    return lambda: torch.mm(x_NN, w_NN.t(), out=out_NN)


def _fp8_of(where: str) -> Any:
    """CDNA 3 has e4m3 of another kind than all others."""
    import torch

    arch = getattr(torch.cuda.get_device_properties(where), "gcnArchName", "") if torch.version.hip else ""
    return torch.float8_e4m3fnuz if arch.startswith("gfx94") else torch.float8_e4m3fn


@contextmanager
def _fp32_products(precision: str) -> Iterator[None]:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
