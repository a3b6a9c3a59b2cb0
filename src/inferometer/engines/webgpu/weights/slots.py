"""The weights of a `ModelSpec`: the engine's names for them, transformers' names, and their shapes.

Source of names: modules of transformers' classes for the families, and files of published models where they differ:
those of Mixtral, and of all mixtures of experts, whose experts' weights transformers 5 joins when it loads them.
"""

from collections.abc import Iterator, Mapping

import msgspec

from inferometer.engines.webgpu.model_spec import Experts, ModelSpec

_TRUNKS = (("model.", ""), ("language_model.model.", "language_model."), ("model.language_model.", ""), ("", ""))
_SEEING = ("vision_tower.", "multi_modal_projector.")


class Joined(msgspec.Struct, frozen=True):
    """A weight that transformers' modules have since version 5 for several of a file's: of all experts of a layer.

    Attributes:
        tensor: Its name.
        shape: Of the whole.
        first: The first of its numbers that is meant.
    """

    tensor: str
    shape: tuple[int, ...]
    first: int = 0


class Slot(msgspec.Struct, frozen=True):
    """One weight.

    Attributes:
        tensor: Its name in files of transformers' text model: `model.layers.0.self_attn.q_proj.weight`.
        shape: [N, K] of a matrix, [n] of a norm or bias.
        joined: What has it in transformers' modules, and in some files; None: a weight of the same name.
    """

    tensor: str
    shape: tuple[int, ...]
    joined: Joined | None = None


def weight_slots(spec: ModelSpec) -> dict[str, Slot]:
    """Every weight by the engine's name (`layers.0.q`), as `model_spec` lists them; `lm_head` only where it isn't tied.

    The order is that in which a pass needs them.
    """
    slots = {"embed": Slot("model.embed_tokens.weight", (spec.vocab, spec.hidden))}
    for layer in range(spec.layers):
        prefix = f"model.layers.{layer}."
        for name, module, shape in _layer(spec, layer):
            slots[f"layers.{layer}.{name}"] = Slot(f"{prefix}{module}", shape)
        if spec.experts is not None and layer in spec.experts.layers:
            slots.update({f"layers.{layer}.{name}": slot for name, slot in _experts(spec, spec.experts, prefix)})
    slots["final_norm"] = Slot("model.norm.weight", (spec.hidden,))
    if not spec.tied:
        slots["lm_head"] = Slot("lm_head.weight", (spec.vocab, spec.hidden))
    return slots


def _layer(spec: ModelSpec, layer: int) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Name, module and shape of each weight of a layer."""
    hidden, inner = spec.hidden, spec.intermediate
    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    yield "attention_norm", "input_layernorm.weight", (hidden,)
    for name, width in (("q", queries), ("k", keys), ("v", keys)):
        yield name, f"self_attn.{name}_proj.weight", (width, hidden)
        if spec.qkv_bias:
            yield f"{name}_bias", f"self_attn.{name}_proj.bias", (width,)
    if spec.head_norms:
        yield "q_norm", "self_attn.q_norm.weight", (spec.head_dim,)
        yield "k_norm", "self_attn.k_norm.weight", (spec.head_dim,)
    yield "o", "self_attn.o_proj.weight", (hidden, queries)
    if spec.o_bias:
        yield "o_bias", "self_attn.o_proj.bias", (hidden,)
    if spec.sandwich:
        yield "attention_post_norm", "post_attention_layernorm.weight", (hidden,)
        yield "ffn_norm", "pre_feedforward_layernorm.weight", (hidden,)
    else:
        yield "ffn_norm", "post_attention_layernorm.weight", (hidden,)
    is_dense = spec.experts is None or layer not in spec.experts.layers
    for name, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
        if is_dense:
            yield name, f"mlp.{name}_proj.weight", shape
        if is_dense and spec.ffn_bias:
            yield f"{name}_bias", f"mlp.{name}_proj.bias", shape[:1]
    if spec.sandwich:
        yield "ffn_post_norm", "post_feedforward_layernorm.weight", (hidden,)


def _experts(spec: ModelSpec, experts: Experts, prefix: str) -> Iterator[tuple[str, Slot]]:
    """Name and slot of each weight of a mixture; Mixtral's files have names of their own."""
    hidden, size, count = spec.hidden, experts.size, experts.count
    is_mixtral = spec.family == "mixtral"
    block = f"{prefix}{'block_sparse_moe' if is_mixtral else 'mlp'}"
    names = ("w1", "w3", "w2") if is_mixtral else ("gate_proj", "up_proj", "down_proj")
    router = Joined(f"{prefix}mlp.gate.weight", (count, hidden)) if is_mixtral else None
    yield "router", Slot(f"{block}.gate.weight", (count, hidden), router)
    if experts.shared_size is not None:
        yield "shared_router", Slot(f"{block}.shared_expert_gate.weight", (1, hidden))
    both, down = f"{prefix}mlp.experts.gate_up_proj", f"{prefix}mlp.experts.down_proj"
    for expert in range(count):
        file = f"{block}.experts.{expert}"
        for i, name in enumerate(("gate", "up")):
            joined = Joined(both, (count, 2 * size, hidden), (2 * expert + i) * size * hidden)
            yield f"experts.{expert}.{name}", Slot(f"{file}.{names[i]}.weight", (size, hidden), joined)
        joined = Joined(down, (count, hidden, size), expert * hidden * size)
        yield f"experts.{expert}.down", Slot(f"{file}.{names[2]}.weight", (hidden, size), joined)
    if experts.shared_size is not None:
        wide = (experts.shared_size, hidden)
        for name, shape in (("gate", wide), ("up", wide), ("down", wide[::-1])):
            yield f"shared_{name}", Slot(f"{block}.shared_expert.{name}_proj.weight", shape)


def stored_name(tensor: str, found: Mapping[str, object]) -> str:
    """The name that files give this tensor of the text model: those of models that see too have more in front."""
    trunk, head = next((pair for pair in _TRUNKS if f"{pair[0]}embed_tokens.weight" in found), _TRUNKS[0])
    return f"{trunk}{tensor.removeprefix('model.')}" if tensor.startswith("model.") else f"{head}{tensor}"


def is_of_seeing(name: str) -> bool:
    """Whether a stored tensor is of the part of Gemma 3 that sees, which no text needs."""
    return name.removeprefix("model.").startswith(_SEEING)


def require_slot(slots: Mapping[str, Slot], name: str, *, matrix: bool | None = None) -> Slot:
    """The slot of a name, `lm_head` of a tied model being `embed`; a name that isn't there is a mistake of the caller.

    Args:
        slots: Of `weight_slots`.
        name: The engine's.
        matrix: What it must be; None: either.

    Raises:
        KeyError: No such weight, or the other kind.
    """
    slot = slots.get("embed" if name == "lm_head" and name not in slots else name)
    if slot is None or matrix not in (None, len(slot.shape) == 2):
        raise KeyError(
            f"{name}: expected a {'weight' if matrix is None else 'matrix' if matrix else 'vector'} of the model"
        )
    return slot


def require_span(name: str, slot: Slot, first: int, last: int | None) -> tuple[int, int]:
    """The rows asked for; None is the last one.

    Raises:
        IndexError: They aren't rows of it.
    """
    rows = slot.shape[0]
    last = rows if last is None else last
    if not 0 <= first <= last <= rows:
        raise IndexError(f"{name}: expected rows within 0 to {rows}, found {first} to {last}")
    return first, last
