"""Sizes of a model's weights as buffers on a GPU: one a weight, the experts of a layer together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferometer.architectures import Model

ELEMENT_BYTES = 2


def weight_sizes(model: "Model") -> tuple[int, ...]:
    """Bytes of every weight at 2 bytes per element; a table that is embedding and output at once counts once."""
    return tuple(_sizes(model))


def _sizes(model: "Model") -> Iterator[int]:
    from inferometer.architectures import step_calls

    yield model.vocab * model.hidden * ELEMENT_BYTES  # the embedding, of which a step gathers only some rows
    for call in step_calls(model, tokens=1, context=0, weight_bytes=ELEMENT_BYTES, activation_bytes=ELEMENT_BYTES):
        if call.op == "gather" or not call.weight_bytes:
            continue
        is_output = call.op == "matmul" and call.layer is None and call.shape.get("N") == model.vocab
        if is_output and model.tied_embeddings:
            continue
        if call.op == "grouped_matmul":  # a token touches few of the experts; all are there
            yield call.shape["experts"] * call.shape["N"] * call.shape["K"] * ELEMENT_BYTES
        else:
            yield call.weight_bytes
