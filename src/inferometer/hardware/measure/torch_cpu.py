"""The processor, measured by PyTorch with all the threads that it takes; timed by the host's clock.

A product counts as one of the matrix units only where the processor has instructions for tiles (AMX). A launch is the
call of an op from Python: there is nothing to launch on.
"""

from collections.abc import Sequence
from functools import partial

from inferometer.hardware.measure.host import load_remarks, product_fact, read_host
from inferometer.hardware.measure.sizes import far_copy_bytes, near_copy_bytes
from inferometer.hardware.measure.subject import Subject, Task, make_device
from inferometer.hardware.measure.timing import Effort, Job, on_host_clock
from inferometer.hardware.measure.torch import copy_job, product_job, smallest_op

_LIMITS = (512, 4096)  # of products
_DTYPES = ("fp32", "bf16", "fp16", "int8")


def describe_cpu() -> Subject:
    """The processor at hand."""
    import torch

    host = read_host()
    facts = [(dtype, product_fact(host, dtype)) for dtype in _DTYPES]
    return Subject(
        on="cpu",
        device=make_device(host.facts, name=host.name),
        library=f"torch {torch.__version__} on {torch.get_num_threads()} threads of the CPU",
        tasks=(
            Task("memory_bandwidth", lambda effort: _copies(far_copy_bytes(host.cache_bytes, host.free_bytes))),
            Task("l2_bandwidth", lambda effort: _copies(near_copy_bytes(host.cache_bytes))),
            Task("launch", _launches),
            *(Task(fact, partial(_products, dtype)) for dtype, fact in facts if fact),
        ),
        remarks=load_remarks(host),
    )


def _copies(size_bytes: int) -> Sequence[Job]:
    return [copy_job("cpu", size_bytes, on_host_clock)]


def _launches(effort: Effort) -> Sequence[Job]:
    return [Job("the smallest op, called in a loop", 1, on_host_clock(smallest_op("cpu")))]


def _products(dtype: str, effort: Effort) -> Sequence[Job]:
    return [product_job(dtype, "cpu", on_host_clock, effort, _LIMITS)]
