"""The processor, measured by NumPy where PyTorch isn't installed: copies by a thread a core, products by its BLAS.

Of the types that a model has, NumPy multiplies only fp32 quickly; the others are left out.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

from inferometer.hardware.measure.host import load_remarks, read_host
from inferometer.hardware.measure.sizes import far_copy_bytes, megabytes, near_copy_bytes, product_size
from inferometer.hardware.measure.subject import Subject, Task, make_device
from inferometer.hardware.measure.timing import Effort, Job, on_host_clock

_LIMITS = (512, 4096)  # of products


def describe_cpu() -> Subject:
    """The processor at hand."""
    import numpy as np

    host = read_host()

    def copies(size_bytes: int) -> Sequence[Job]:
        how = f"copies of {megabytes(size_bytes)} by {host.cores} threads, read and written counted"
        return [Job(how, 2 * size_bytes, _copying(size_bytes, host.cores))]

    return Subject(
        on="cpu",
        device=make_device(host.facts, name=host.name),
        library=f"numpy {np.__version__} on {host.cores} cores of the CPU",
        tasks=(
            Task("memory_bandwidth", lambda effort: copies(far_copy_bytes(host.cache_bytes, host.free_bytes))),
            Task("l2_bandwidth", lambda effort: copies(near_copy_bytes(host.cache_bytes))),
            Task("launch", _launches),
            Task("vector.fp32", _products),
        ),
        remarks=(
            *load_remarks(host),
            "PyTorch isn't installed, so no GPU was looked for, and of all types only fp32 is measured.",
        ),
    )


def _copying(size_bytes: int, threads: int) -> Callable[[int], float]:
    """Each thread copies its own part again and again; NumPy lets the others run meanwhile."""
    import numpy as np

    source = np.random.default_rng(0).random(size_bytes // 4, dtype=np.float32)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))

    def copy_part(part: tuple[np.ndarray, np.ndarray], calls: int) -> None:
        for _ in range(calls):
            np.copyto(part[1], part[0])

    def run(calls: int) -> float:
        with ThreadPoolExecutor(threads) as pool:
            begun = perf_counter_ns()
            for done in [pool.submit(copy_part, part, calls) for part in parts]:
                done.result()
            return float(perf_counter_ns() - begun)

    return run


def _launches(effort: Effort) -> Sequence[Job]:
    import numpy as np

    number = np.ones(1, dtype=np.float32)
    return [Job("the smallest op, called in a loop", 1, on_host_clock(lambda: np.multiply(number, number, out=number)))]


def _products(effort: Effort) -> Sequence[Job]:
    N = product_size(lambda size: on_host_clock(_product(size)), effort.product_ns, _LIMITS)
    return [Job(f"fp32 products of {N} x {N} x {N}, random numbers", 2 * N**3, on_host_clock(_product(N)))]


def _product(N: int) -> Callable[[], object]:
    import numpy as np

    draw = np.random.default_rng(0)
    x_NN, w_NN = (draw.standard_normal((N, N), dtype=np.float32) for _ in range(2))
    out_NN = np.empty_like(x_NN)
    return lambda: np.matmul(x_NN, w_NN.T, out=out_NN)
