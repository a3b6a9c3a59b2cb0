"""FBGEMM's embedding tables and their exchange: what is read of a table is decided by what the batch looks up.

Of sums of rows of tables (`split_embedding_codegen_lookup_…`) only the certain least counts: how wide the rows are, how
many are different and which of the sums have any stands in tensors' values. Indices are read in any case, and where
the sums of each begin. Source of positions: FBGEMM's `embedding_forward_split` and its bounds checks, and real traces.
"""

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work


def _same_size(call: OpCall) -> Work:
    """Rows or columns in another order: everything is read and written once."""
    x = call.tensor(0)
    return moved(read_bytes(call.all_tensors), x.numel * x.item_bytes)


def _permuted_sparse(call: OpCall) -> Work:
    """Permutation, lengths, values: lengths and values in another order."""
    tensors = [tensor for at in range(1, 4) if (tensor := call.maybe_tensor(at)) is not None]
    return moved(read_bytes(call.all_tensors), read_bytes(tensors))


def _to_8_bits(call: OpCall) -> Work:
    x = call.tensor(0)
    return moved(x.bytes, x.numel, vector=2 * x.numel)


def _to_8_bits_by_row(call: OpCall) -> Work:
    """A scale of 4 bytes next to each row."""
    x = call.tensor(0)
    rows = x.numel // x.dims[-1] if x.dims and x.dims[-1] else 0
    return moved(x.bytes, x.numel + 4 * rows, vector=2 * x.numel)


def _from_8_bits(call: OpCall) -> Work:
    x = call.tensor(0)
    return moved(x.bytes, 4 * x.numel, vector=x.numel)


def _from_8_bits_by_row(call: OpCall) -> Work:
    """Rows end with scales: they are read, and no number of the result."""
    x = call.tensor(0)
    rows = x.numel // x.dims[-1] if x.dims and x.dims[-1] else 0
    return moved(x.bytes, 4 * (x.numel - 8 * rows), vector=x.numel)


def _scan(call: OpCall) -> Work:
    x = call.tensor(0)
    return moved(x.bytes, x.bytes, vector=x.numel)


def _checked(call: OpCall) -> Work:
    """Rows of each table, indices, offsets: all are read, and only what is wrong is written."""
    return moved(read_bytes(call.tensor(at) for at in range(3)), 0)


def _lookup(call: OpCall) -> Work:
    """Tables at 6 (places of their columns), all columns at 7, indices and offsets at 11 and 12, mode at 13, weights.

    Each batch has a sum for each table, and offsets one more. A sum is as wide as its table's rows, of a byte at least.
    """
    indices, offsets, tables = call.tensor(11), call.tensor(12), call.tensor(6).numel - 1
    if tables < 1 or (offsets.numel - 1) % tables:
        raise Unmodelled(f"expected offsets of {tables} tables, found {offsets.numel}")
    sums = offsets.numel - 1
    columns = _columns(call)
    written = min(sums, indices.numel) if columns is None else sums // tables * columns
    return moved(read_bytes((indices, offsets, call.maybe_tensor(14))), written, assumes=(_ROWS,))


def _columns(call: OpCall) -> int | None:
    """Of all tables together, where they are recorded and rows are summed: mode 0 sums, 1 averages, 2 does neither."""
    try:
        return call.integer(7) if call.integer(13) in (0, 1) else None
    except Unmodelled:
        return None


def _lookup_backward(call: OpCall) -> Work:
    """The gradient of the sums. The indices are those of the forward op, or what it makes of their size first."""
    return moved(_indices_of(call).bytes, 0, assumes=(_ROWS,))


def _indices_of(call: OpCall) -> Tensor:
    for inner in call.inside:
        first = inner.maybe_tensor(0)
        if inner.op.startswith(_FORWARD):
            return inner.tensor(11)
        if inner.op in ("aten::empty_like", "aten::zeros_like") and first is not None and first.dtype in _WHOLE:
            return first
    raise Unmodelled("how many indices it has isn't recorded, and which call is its forward op isn't known")


def _gradient(call: OpCall) -> Work:
    """What came in another order goes back: everything is read and written once."""
    x = call.tensor(0)
    return moved(x.bytes, x.numel * x.item_bytes)


def _bucketized(call: OpCall) -> Work:
    """Lengths, indices, whether places are kept and their order is, sizes of blocks, their number, weights.

    Indices and weights are written once more, in another order, and as many lengths for each block: for one, at least.
    """
    lengths, indices, weights = call.tensor(0), call.tensor(1), call.maybe_tensor(6)
    in_order = read_bytes((lengths, indices, weights))
    return moved(in_order + call.tensor(4).bytes, in_order)


_WHOLE = ("long", "long int", "int")
_FORWARD = "fbgemm::split_embedding_codegen_lookup_"
_NODE = "torch::autograd::CppNode<"
_ROWS = "rows count as next to nothing: how wide and how many they are stands in values that aren't recorded"
FAMILY = OpFamily(
    name="embedding tables",
    models={
        "fbgemm::permute_pooled_embs_auto_grad": _same_size,
        "fbgemm::recat_embedding_grad_output_mixed_D_batch": _same_size,
        **dict.fromkeys(("fbgemm::permute_2D_sparse_data", "fbgemm::permute_sparse_features"), _permuted_sparse),
        "fbgemm::FloatToHFP8Quantized": _to_8_bits,
        "fbgemm::FloatToFP8RowwiseQuantized": _to_8_bits_by_row,
        "fbgemm::HFP8QuantizedToFloat": _from_8_bits,
        "fbgemm::FP8RowwiseQuantizedToFloat": _from_8_bits_by_row,
        **dict.fromkeys(("fbgemm::asynchronous_complete_cumsum", "fb::asynchronous_complete_cumsum"), _scan),
        "fbgemm::bounds_check_indices": _checked,
        "fbgemm::block_bucketize_sparse_features": _bucketized,
    },
    prefixes={
        _FORWARD: _lookup,
        f"{_NODE}SplitLookupFunction_": _lookup_backward,
        f"{_NODE}fbgemm_gpu::PermutePooledEmbsFunction": _gradient,
    },
    looks_inside=frozenset({f"{_NODE}SplitLookupFunction_"}),
    forward_ops={f"{_NODE}SplitLookupFunction_": _FORWARD},
)
