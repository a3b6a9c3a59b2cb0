"""Architectures: from a model's configuration to the operator calls of a step, with their FLOPs and bytes.

from inferometer.architectures import find_model, step_calls
calls = step_calls(find_model("gemma-3-1b"), tokens=1, context=512)

`architectures/config.py` reads a Hugging Face `config.json` field by field; of a multimodal one, the language model's
part. Each family is a file that declares an `ARCHITECTURE`: the `model_type`s that it reads, how a configuration
becomes a `Model` (plain integers), and the calls of a step, composed of `blocks.py`. `calls.py` holds the arithmetic:
every `OperatorCall` has a shape, FLOPs and the least bytes that it must read and write, as exact integers. What an
engine fuses is not its subject.

A step is a number of new tokens per sequence, a context and a batch. Attention counts exactly the pairs that a causal
mask and the layer's window leave. Of a mixture's experts, those count that evenly routed tokens are expected to
touch; real routing touches fewer. DeepSeek's latent attention is absorbed in steps of one token a sequence and
expanded in longer ones.

`models/*.json` holds the sizes of public models with their source. A test adds up the weights of each one's calls and
holds them against the published number of parameters.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.architectures.calls import OperatorCall as OperatorCall
    from inferometer.architectures.known import bundled_models as bundled_models
    from inferometer.architectures.known import find_model as find_model
    from inferometer.architectures.known import read_model as read_model
    from inferometer.architectures.known import require_model as require_model
    from inferometer.architectures.model import Model as Model
    from inferometer.architectures.steps import count_parameters as count_parameters
    from inferometer.architectures.steps import step_calls as step_calls

_WHERE = {
    "Model": "model",
    "OperatorCall": "calls",
    "bundled_models": "known",
    "count_parameters": "steps",
    "find_model": "known",
    "read_model": "known",
    "require_model": "known",
    "step_calls": "steps",
}
__all__ = [
    "Model",
    "OperatorCall",
    "bundled_models",
    "count_parameters",
    "find_model",
    "read_model",
    "require_model",
    "step_calls",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
