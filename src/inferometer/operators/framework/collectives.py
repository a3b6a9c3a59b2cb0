"""Collectives, as PyTorch, vLLM and custom all-reduces call them: bytes by their tensors, ranks where a call says so.

Sources: schemas of torch 2.13 (`c10d`, `_c10d_functional`, `symm_mem`), vLLM's `parallel_state.py`. Which group it is
isn't an argument that profilers record. How many ranks it has follows from what is gathered or scattered, from an
argument of some ops, or from `record_param_comms` within, which PyTorch has recorded values of since 2.2.

Lists of tensors have no types (`c10d::allreduce_`): their bytes stand in the record of the launch alone, if anywhere.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.exchange import Exchange
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

NAME: Final = "collectives"
_Reader = Callable[[OpCall], Exchange]
_RECORD: Final = "record_param_comms"
_FIELDS_OF_RECORD: Final = 10  # tensor(s), sequence, group, rank, collective, splits in and out, first, stride, ranks


def exchange_of(call: OpCall) -> Exchange:
    """What a call of an op of this family exchanges, as far as its arguments show.

    Raises:
        Unmodelled: Nothing can be read of them.
    """
    return _READERS[call.op](call)


def _same(kind: str, at: int = 0) -> _Reader:
    """A tensor, which goes in and comes out."""

    def read(call: OpCall) -> Exchange:
        size = _bytes(call.tensor(at))
        return Exchange(kind, size, size, _recorded_ranks(call))

    return read


def _listed(kind: str) -> _Reader:
    """A list of tensors, whose bytes aren't known."""

    def read(call: OpCall) -> Exchange:
        return Exchange(kind, None, None, _recorded_ranks(call))

    return read


def _gathered(call: OpCall) -> Exchange:
    """Output, and the part of it that each rank puts in."""
    out, part = _bytes(call.tensor(0)), _bytes(call.tensor(1))
    return Exchange("all_gather", part, out, _ratio(out, part) or _recorded_ranks(call))


def _scattered(call: OpCall) -> Exchange:
    """The part that each rank gets, and the input."""
    part, whole = _bytes(call.tensor(0)), _bytes(call.tensor(1))
    return Exchange("reduce_scatter", whole, part, _ratio(whole, part) or _recorded_ranks(call))


def _exchanged(call: OpCall) -> Exchange:
    """Output, input, group, how many rows of the output come from each rank, and of the input go to each."""
    out, given = call.tensor(0), call.tensor(1)
    splits = [_splits(call, at) for at in (4, 3)]
    has_both = bool(splits[0]) and len(splits[0]) == len(splits[1])
    return Exchange(
        "all_to_all",
        _bytes(given),
        _bytes(out),
        len(splits[0]) if has_both else _recorded_ranks(call),
        kept_shares(*splits) if has_both else None,
        has_splits=has_both,
    )


def kept_shares(given: Sequence[int], got: Sequence[int]) -> tuple[Fraction, Fraction] | None:
    """The greatest share of each side that one rank can have for itself, of splits by rank; None if one is of nothing.

    Which of them is its own can't be known from the splits alone.
    """
    return (Fraction(max(given), sum(given)), Fraction(max(got), sum(got))) if sum(given) and sum(got) else None


def _splits(call: OpCall, at: int) -> tuple[int, ...]:
    """Counts by rank; none where they aren't recorded, are equal, or can't be."""
    try:
        found = call.integers(at)
    except Unmodelled:
        return ()
    return found if min(found, default=-1) >= 0 else ()


def _sized(kind: str, ranks_at: int) -> _Reader:
    """An input, and the number of ranks as an argument: the output is as many times as large, or as small."""

    def read(call: OpCall) -> Exchange:
        size, ranks = _bytes(call.tensor(0)), call.integer(ranks_at)
        if ranks < 1:
            raise Unmodelled(f"argument {ranks_at} should be a number of ranks, and the file has {ranks} there")
        return Exchange(kind, size, size * ranks if kind == "all_gather" else size // ranks, ranks)

    return read


def _bytes(tensor: Tensor) -> int:
    return tensor.numel * tensor.item_bytes


def _ratio(whole: int, part: int) -> int | None:
    """How many parts make the whole; None if no whole number does."""
    return whole // part if part and whole and whole % part == 0 else None


def _recorded_ranks(call: OpCall) -> int | None:
    """The number of ranks that the record within a call ends with."""
    for inner in call.inside:
        if inner.op == _RECORD and len(inner.inputs) in (_FIELDS_OF_RECORD, _FIELDS_OF_RECORD - 1):
            try:
                ranks = inner.integer(len(inner.inputs) - 1, 0)
            except Unmodelled:
                return None
            return ranks if ranks > 0 else None
    return None


_READERS: Final[dict[str, _Reader]] = {
    "c10d::allreduce_": _listed("all_reduce"),
    "c10d::allreduce_coalesced_": _listed("all_reduce"),
    "c10d::broadcast_": _listed("broadcast"),
    "c10d::reduce_": _listed("reduce"),
    "c10d::send": _listed("send_recv"),
    "c10d::recv_": _listed("send_recv"),
    "c10d::_allgather_base_": _gathered,
    "c10d::_reduce_scatter_base_": _scattered,
    "c10d::alltoall_base_": _exchanged,
    "_c10d_functional::all_gather_into_tensor": _sized("all_gather", 1),
    "_c10d_functional::reduce_scatter_tensor": _sized("reduce_scatter", 2),
    "vllm::all_gather": _sized("all_gather", 2),
    "vllm::reduce_scatter": _sized("reduce_scatter", 2),
    **dict.fromkeys(
        (
            *("_c10d_functional::all_reduce", "_c10d_functional::all_reduce_", "vllm::all_reduce"),
            *("sglang::inplace_all_reduce", "sglang::outplace_all_reduce", "sglang::all_reduce"),
            *("symm_mem::multimem_all_reduce_", "symm_mem::one_shot_all_reduce", "symm_mem::two_shot_all_reduce_"),
        ),
        _same("all_reduce"),
    ),
    "sglang::reg_all_gather_into_tensor": _gathered,
    **dict.fromkeys(
        ("_C_custom_ar::all_reduce", "_C_custom_ar::qr_all_reduce", "sgl_kernel::all_reduce"), _same("all_reduce", 1)
    ),
    "_c10d_functional::broadcast": _same("broadcast"),
}


def _work(call: OpCall) -> Work:
    return exchange_of(call).work()


FAMILY = OpFamily(
    name=NAME,
    models=dict.fromkeys(_READERS, _work),
    covering=frozenset(_READERS),
    looks_inside=frozenset(_READERS),
)
