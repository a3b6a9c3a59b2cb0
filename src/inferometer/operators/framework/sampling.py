"""Sampling of tokens in serving engines: probabilities are read once, and a token a row is written.

Arrays of a number a row (how many to keep, how likely) are read, too. Positions: the bindings of SGLang's sgl-kernel,
FlashInfer and vLLM, in which probabilities or logits [rows, vocabulary] come first.
"""

from inferometer.operators.framework.call import OpCall
from inferometer.operators.framework.counting import moved, row_count
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

_TOKEN_BYTES = 4


def _drawn(call: OpCall) -> Work:
    """A token for each row."""
    x = call.tensor(0)
    return moved(x.bytes, row_count(x) * _TOKEN_BYTES, vector=x.numel)


def _rescaled(call: OpCall) -> Work:
    """As many numbers as before: what is kept is made to add up to 1, or what isn't is hidden."""
    x = call.tensor(0)
    return moved(x.bytes, x.numel * x.item_bytes, vector=2 * x.numel)


def _penalised(call: OpCall) -> Work:
    """Logits, two masks of the tokens that were there, penalties: of logits only those of such tokens."""
    masks = (call.tensor(1), call.tensor(2))
    return moved(sum(mask.bytes for mask in masks), 0, vector=masks[0].numel, assumes=(_NO_TOKEN,))


_NO_TOKEN = "no token is punished: which were there isn't recorded"
_DRAWS = (
    *("top_k_top_p_sampling_from_probs", "top_p_sampling_from_probs", "min_p_sampling_from_probs"),
    *("top_k_sampling_from_probs", "sampling_from_probs", "sampling_from_logits"),
)
_LIBRARIES = ("sgl_kernel", "flashinfer")
FAMILY = OpFamily(
    name="sampling",
    models={
        **{f"{library}::{name}": _drawn for library in _LIBRARIES for name in _DRAWS},
        **{
            f"{library}::{name}": _rescaled
            for library in _LIBRARIES
            for name in ("top_k_renorm_probs", "top_p_renorm_probs", "top_k_mask_logits")
        },
        "_C::apply_repetition_penalties_": _penalised,
    },
)
