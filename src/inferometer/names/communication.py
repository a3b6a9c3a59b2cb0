"""Which kernels move data between devices, and by which collective, recognised from their names.

Sources: XLA's operations (`all-reduce-start.1`), the public kernels of NCCL and RCCL, MSCCL and MSCCL++, NVSHMEM,
PyTorch's symmetric memory, vLLM, SGLang and aiter (custom and quick all-reduce), TensorRT-LLM and FlashInfer (one-shot,
two-shot, Lamport, fused with a norm), DeepEP with its hybrid form, UCCL, MoRI and pplx (expert parallelism),
Transformer Engine's userbuffers.

Only the function's own name counts, not its template arguments and parameters: a reduction over `AllReduceParams` is
no all-reduce. What fuses a collective into a matrix multiplication keeps the matrix units busy and stays compute; so do
local parts such as the layout of a dispatch. Copies between devices that a copy engine makes are no kernels.
"""

import re
from collections.abc import Collection
from typing import Literal

from inferometer.names.demangle import demangle
from inferometer.patterns import late_re

Collective = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "send_recv", "other"
]

_COMPUTE = late_re(
    r"(?<!fb)gemm|matmul|triton_(?:poi|per|red|tem|mm)_|(?:block|warp|thread|wave)_?(?:all_?reduce|all_?gather)"
    r"|get_dispatch_layout|checkForNaN|hybrid_ep::(?:scan|(?:un)?permute)",
    re.IGNORECASE,
)
_LIBRARIES = late_re(
    r"nccl|rccl|msccl|nvshmem|rocshmem|userbuffers|quick_?reduce|deep_ep|hybrid_ep|\bmori::|\bpplx|\buccl|(?<![a-z])multimem_|\bc10d::"
    r"|_on_stream_kernel|(?:intra|inter)node(?:_ll)?::|ep(?:dispatch|combine)(?:intra|inter)node",
    re.IGNORECASE,
)
_COLLECTIVES: tuple[tuple[Collective, str], ...] = (
    # A Lamport exchange marks arrival in the data itself.
    (
        "all_to_all",
        r"all[_-]?to[_-]?all|a2a|(?:deep_ep|hybrid_ep|uccl|mori|pplx|node(?:_ll)?)\b.{0,400}(?:dispatch|combine)",
    ),
    ("all_gather", r"all[_-]?gather|\bfcollect_on_stream"),
    ("reduce_scatter", r"reduce[_-]?scatter(?!_elementwise)"),
    ("broadcast", r"^collective-broadcast"),
    ("send_recv", r"^collective-permute|^(?:send|recv)(?:-done|\.\d)"),
    ("other", r"^async-collective-"),
    ("all_reduce", r"all[_-]?reduce|cross_device_reduce|lamport|quick_?reduce|\brdxn_on_stream"),
)
_HALF = late_re(r"([a-z-]{1,40})-(start|done)(?:\.\d{1,9}){0,4}")
_OF_LIBRARIES: tuple[tuple[Collective, str], ...] = (
    ("broadcast", r"broadcast"),
    ("send_recv", r"send|recv"),
    ("reduce", r"reduce"),
)


_RECORDED: tuple[tuple[Collective, str], ...] = (  # of the name without underscores
    ("all_to_all", r"alltoall"),
    ("all_gather", r"allgather"),
    ("reduce_scatter", r"reducescatter"),
    ("all_reduce", r"allreduce"),
    ("broadcast", r"broadcast"),
    ("reduce", r"reduce"),
    ("send_recv", r"send|recv"),
)


def read_collective(recorded: str) -> Collective:
    """The collective that a program's name for it means: PyTorch's `allreduce`, `_allgather_base`, `all_to_allv`.

    `other` for those without an entry of their own (`gather`, `scatter`, `barrier`).
    """
    name = recorded.replace("_", "").lower()
    return next((collective for collective, pattern in _RECORDED if re.search(pattern, name)), "other")


def find_collective(name: str) -> Collective | None:
    """The collective that the kernel `name` takes part in; None for a kernel that computes.

    Args:
        name: As in the file, mangled or not.

    Returns:
        `other` where the name shows that the kernel communicates but not what, as RCCL's `ncclDevKernel_Generic`.
    """
    function = _function(demangle(name))
    if _COMPUTE.search(function):
        return None
    for collective, pattern in _COLLECTIVES:
        if re.search(pattern, function, re.IGNORECASE):
            return collective
    if not _LIBRARIES.search(function):
        return None
    for collective, pattern in _OF_LIBRARIES:
        if re.search(pattern, function, re.IGNORECASE):
            return collective
    return "other"


def done_halves(names: Collection[str]) -> frozenset[str]:
    """Those of these kernels that wait for the end of a collective which another of them begins.

    XLA splits `all-reduce` into `all-reduce-start` and `all-reduce-done`: both take time, but they are one collective.
    """
    halves = [(match[1], match[2], name) for name in names if (match := _HALF.fullmatch(name)) is not None]
    begun = {operation for operation, half, _ in halves if half == "start"}
    return frozenset(
        name for operation, half, name in halves if half == "done" and operation in begun and find_collective(name)
    )


def _function(name: str) -> str:
    """`name` without template arguments and parameters; one that the profiler cut short is read as far as it goes."""
    depth, kept = 0, []
    for piece in re.split(r"([<>(){}])", name.replace("(anonymous namespace)", "_")):
        if piece in ("<", "(", "{"):
            depth += 1
        elif piece in (">", ")", "}"):
            depth -= 1
        elif depth <= 0:
            kept.append(piece)
    return "".join(kept)
