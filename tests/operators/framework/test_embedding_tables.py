"""Embedding tables against a count of all that is touched: a model counts what is certain, never more."""

import json
import random
from typing import Any

import pytest

from inferometer.operators.framework.call import OpCall, Unmodelled, read_call
from inferometer.operators.framework.family import model_of
from inferometer.operators.work import Work

LOOKUP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
BACKWARD = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"
PERMUTED = "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >"
LONG, FLOAT, HALF, SUMS, ROWS = 8, 4, 2, "0", "2"


def call_of(op: str, dims: list[Any], types: list[str], values: dict[int, str] | None = None, **more: Any) -> OpCall:
    texts = [(values or {}).get(at, "") for at in range(len(dims))]
    return read_call(op, json.dumps(dims), json.dumps(types), None, json.dumps(texts) if values else None, **more)


def lookup(tables: int, indices: int, offsets: int, values: dict[int, str] | None = None, *, weighted: bool) -> OpCall:
    """A call as files of 2022 and 2023 have it, up to its weights."""
    weights = [indices] if weighted else []
    dims = [[0], [999], [0], [0, 0], [tables], [tables], [tables + 1], [], [], [tables + 1], [], [indices], [offsets]]
    types = ["float", "c10::Half", "c10::Half", "c10::Half", "int", "long", "int", "Scalar", "Scalar", "long"]
    after = ["Scalar", "long", "long", "Scalar", "float" if weighted else ""]
    return call_of(LOOKUP, [*dims, [], weights], [*types, *after], values)


def work_of(call: OpCall) -> Work:
    found = model_of(call.op)
    assert found is not None
    return found.work(call)


def touched(widths: list[int], bags: list[list[list[int]]], *, weighted: bool) -> tuple[int, int, int]:
    """Bytes read without rows, bytes of rows of 16 bits, bytes of the sums in float32, counted one by one."""
    read, rows, written = LONG, set(), 0  # one offset more than sums
    for table, (width, sums) in enumerate(zip(widths, bags, strict=True)):
        for bag in sums:
            read += LONG
            written += width * FLOAT
            for index in bag:
                read += LONG + (FLOAT if weighted else 0)
                rows.add((table, index, width))
    return read, sum(width * HALF for _, _, width in rows), written


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_lookup_reads_indices_offsets_and_weights_and_at_most_what_is_touched(seed: int, is_recorded: bool) -> None:
    draw = random.Random(seed)
    widths = [draw.choice((4, 8, 64)) for _ in range(draw.randint(1, 4))]
    batch, weighted = draw.randint(1, 9), bool(seed % 2)
    bags = [
        [[draw.randrange(20) for _ in range(draw.randint(0, 3))] for _ in range(batch)]
        for _ in widths
    ]  # fmt: skip
    indices = sum(len(bag) for sums in bags for bag in sums)
    values = {7: str(sum(widths)), 13: SUMS} if is_recorded else None

    work = work_of(lookup(len(widths), indices, len(widths) * batch + 1, values, weighted=weighted))

    read, rows, written = touched(widths, bags, weighted=weighted)
    assert work.read_bytes == read <= read + rows
    assert work.written_bytes <= written
    assert not is_recorded or work.written_bytes * FLOAT == written
    assert "rows" in work.assumes[0]


def test_a_lookup_of_single_rows_writes_as_many_as_it_has_indices_at_least() -> None:
    assert work_of(lookup(2, 5, 21, {7: "64", 13: ROWS}, weighted=False)).written_bytes == 5


def test_offsets_that_dont_fit_the_tables_are_a_reason() -> None:
    with pytest.raises(Unmodelled, match="expected offsets of 3 tables, found 11"):
        work_of(lookup(3, 5, 11, weighted=False))


def backward(*inside: OpCall) -> OpCall:
    return call_of(BACKWARD, [[4, 96]], ["float"], inside=inside)


def test_the_gradient_of_a_lookup_reads_the_indices_that_its_forward_op_had() -> None:
    fill = call_of("aten::zero_", [[1]], ["int"])
    same = call_of("aten::empty_like", [[7], [], []], ["long", "Scalar", ""])
    floats = call_of("aten::empty_like", [[4, 96], [], []], ["float", "Scalar", ""])

    assert work_of(backward(floats, fill, same)).read_bytes == 7 * LONG
    assert work_of(backward(fill, lookup(2, 5, 9, weighted=True))).read_bytes == 5 * LONG
    with pytest.raises(Unmodelled, match="how many indices it has isn't recorded"):
        work_of(backward(fill, floats))


def test_other_steps_of_autograd_with_kernels_of_their_own_stay_unknown() -> None:
    with pytest.raises(Unmodelled, match="kernels of its own"):
        work_of(call_of("torch::autograd::CppNode<Mine>", [[4, 96]], ["float"]))


def test_what_came_in_another_order_goes_back_in_another_order() -> None:
    work = work_of(call_of(PERMUTED, [[3, 10]], ["float"]))

    assert (work.read_bytes, work.written_bytes) == (3 * 10 * FLOAT, 3 * 10 * FLOAT)


@pytest.mark.parametrize("blocks", [1, 3])
def test_indices_in_buckets_move_at_least_what_a_bucket_sort_does(blocks: int) -> None:
    lengths, size = [2, 0, 3], 4
    indices = [index for count in lengths for index in range(count)]
    buckets: list[list[int]] = [[] for _ in range(blocks)]
    for index in indices:
        buckets[min(index // size, blocks - 1)].append(index)
    written = sum(len(bucket) for bucket in buckets) * 4 + blocks * len(lengths) * 4
    dims, types = [[3], [5], [], [], [1], [], []], ["int", "int", "Scalar", "Scalar", "int", "Scalar", ""]

    work = work_of(call_of("fbgemm::block_bucketize_sparse_features", dims, types))

    assert work.read_bytes == (len(lengths) + len(indices) + 1) * 4
    assert work.written_bytes <= written
    assert blocks > 1 or work.written_bytes == written
