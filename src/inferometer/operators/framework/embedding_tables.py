"""FBGEMM's embedding tables and their exchange: what is read of a table is decided by what the batch looks up.

Sums of rows of tables (`split_embedding_codegen_lookup_…`) can't be modelled: the tables' row sizes and how many rows
each looks up stand in tensors' values.
"""

from inferometer.operators.framework.call import OpCall
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
    """A scale of 4 bytes for each row beside it."""
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


_LOOKUP = "what a table's rows are, and how many are looked up, stands in values that aren't recorded"
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
    },
    reasons={"fbgemm::split_embedding_codegen_lookup*": _LOOKUP},
)
