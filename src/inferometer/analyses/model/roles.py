"""Which operator calls of a model a printed kernel stands for, recognised from its label.

A label names its role in the engine's own words (`ffn_down`, `mlp.down`, `w2`), or only its operator (`attention`,
`rmsnorm`). Roles come first; then each operator that names no role takes the calls of its kind that no role claimed.
Every call belongs to one class at most. What no class claims may be fused into another, or not be done at all: it is
kept apart, never added to a neighbour.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from inferometer.names import decode

Part = tuple[str, str]  # an operator and its role in the model

_WORD = re.compile(r"[A-Za-z0-9]+")
_PREFIX = re.compile(r"^(?:self_?attn|attn|attention|mlp|ffn|feed_forward)[_.]?(?=\w)")
_SUFFIX = re.compile(r"_?(?:proj(?:ection)?|linear|weight|matmul|gemm)$")
_ROLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("q", "query", "wq", "to_q"), ("q_proj",)),
    **dict.fromkeys(("k", "key", "wk", "to_k"), ("k_proj",)),
    **dict.fromkeys(("v", "value", "wv", "to_v"), ("v_proj",)),
    **dict.fromkeys(("kv", "wkv"), ("k_proj", "v_proj")),
    **dict.fromkeys(("qkv", "wqkv", "c_attn"), ("q_proj", "k_proj", "v_proj")),
    **dict.fromkeys(("o", "out", "wo", "output", "dense"), ("o_proj",)),
    **dict.fromkeys(("gate", "w1"), ("ffn_gate",)),
    **dict.fromkeys(("up", "w3"), ("ffn_up",)),
    **dict.fromkeys(
        ("gate_up", "gateup", "up_gate", "gate_and_up", "w13", "fc1", "expert_gate_up"), ("ffn_gate", "ffn_up")
    ),
    "shared_expert_gate_up": ("shared_expert_gate", "shared_expert_up"),
    **dict.fromkeys(("down", "w2", "fc2"), ("ffn_down",)),
    **dict.fromkeys(("lm_head", "head", "logits", "unembed", "unembedding"), ("lm_head",)),
    "scaled_embedding": ("embedding", "embedding_scale"),
    **dict.fromkeys(("embed", "embedding", "embeddings", "embed_tokens", "wte", "token_embd"), ("embedding",)),
}
_OPS: dict[str, tuple[str, ...]] = {  # the operators that a family of kernels without a role does
    "attention": ("attention",),
    "norm": ("rms_norm", "layer_norm"),
    "rope": ("rope",),
    "activation": ("activation",),
    "kv_cache": ("kv_write",),
    "sampling": ("sampling",),
    "moe_routing": ("moe_routing",),
    "gather_scatter": ("gather",),
}
_WORDS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (  # where the family isn't known, or takes in too much
    (frozenset({"scale"}), ("scale",)),
    (frozenset({"add", "residual"}), ("add",)),
)
_ATTENTION = frozenset({"attention", "attend", "attn", "sdpa", "mha", "gqa", "mqa", "mla"})
_FFN_WORDS = frozenset({"ffn", "mlp", "glu", "swiglu", "geglu"})
_FFN = ("ffn_gate", "ffn_up", "ffn_activation", "ffn_down")
_BEHIND: dict[str, tuple[tuple[str, ...], ...]] = {  # what may be fused behind a role: the first that the model has
    "o_proj": (("post_attention_norm",), ("attention_residual",)),
    "ffn_down": (("post_ffn_norm",), ("ffn_residual",)),
}
_NEXT_NORM = {"o_proj": "pre_ffn_norm"}  # where no norm stands between the role and the residual
_AROUND_ADD = (  # norm, residual, and the norms that may follow: what one kernel of norms does in a row
    ("post_attention_norm", "attention_residual", ("pre_ffn_norm",)),
    ("post_ffn_norm", "ffn_residual", ("input_norm", "final_norm")),
)
_IN_FRONT = {
    "q_proj": "input_norm",
    "ffn_gate": "pre_ffn_norm",
    "lm_head": "final_norm",
}  # norms that products may have
_HEAD_NORMS = ("q_norm", "k_norm")


def is_attention(label: str) -> bool:
    """Whether the operator that a label names is attention itself, by what names show or by its own words."""
    op = label if "::" in label else label.partition(":")[0]
    words = {word.lower() for word in _WORD.findall(op.replace("_", " "))}
    return decode(label).family.startswith("attention") or bool(words & _ATTENTION)


class Roles(msgspec.Struct, frozen=True):
    """`parts`: what each class does, in the model's order, empty where that isn't known; `unclaimed`: what none does.

    `shared`: parts that several classes have, each in its own layers.
    """

    parts: dict[str, tuple[Part, ...]]
    unclaimed: tuple[Part, ...]
    shared: frozenset[Part] = frozenset()


def match_roles(
    classes: Iterable[str], parts: Sequence[Part], layers: Mapping[str, Collection[int]] | None = None
) -> Roles:
    """What each class of a phase does.

    Args:
        classes: Labels without layers, of one phase.
        parts: Operators and roles of the model's step, each once, in order.
        layers: Of a class, the layers that its labels name. Classes of other layers may do the same part in these.
    """
    own = {name: frozenset(found) for name, found in (layers or {}).items()}
    taken: dict[Part, list[frozenset[int]]] = {}
    claimed: dict[str, tuple[Part, ...]] = {}
    names = list(dict.fromkeys(classes))
    for claim in (_claim_role, _claim_feed_forward, _claim_operator):
        for name in sorted(names):
            if not claimed.get(name):
                at = {part: _layers_at(name, part, own.get(name, frozenset())) for part in parts}
                free = tuple(part for part in parts if _is_free(taken.get(part, []), at[part]))
                wanted = set(claim(name, free))
                claimed[name] = tuple(part for part in free if part in wanted)
                for part in claimed[name]:
                    taken.setdefault(part, []).append(at[part])
    claimed = _with_head_norms(claimed, [part for part in parts if part not in taken])
    return Roles(
        {name: claimed[name] for name in names},
        tuple(part for part in parts if not any(part in found for found in claimed.values())),
        frozenset(part for part, by in taken.items() if len(by) > 1),
    )


def _layers_at(name: str, part: Part, layers: frozenset[int]) -> frozenset[int]:
    """Where a class of these layers does a part: what adds a layer's residual may have the next one's first norm."""
    adds = part[1] == "input_norm" and "add" in decode(name).fused
    return frozenset(layer + 1 for layer in layers) if adds else layers


def _is_free(taken: Sequence[frozenset[int]], layers: frozenset[int]) -> bool:
    """Whether a class of these layers may claim what others have: nobody has it, or all of them in other layers."""
    return not taken or (bool(layers) and all(others and layers.isdisjoint(others) for others in taken))


def _claim_role(name: str, parts: Sequence[Part]) -> list[Part]:
    role = name.partition(":")[2] or name
    wanted = set(_roles_of(role, {own for _, own in parts}))
    found = [part for part in parts if part[1] in wanted]
    return found and [*found, *_fused_with(name, wanted, parts), *_around_add(name, wanted, parts)]


def _around_add(name: str, roles: set[str], parts: Sequence[Part]) -> list[Part]:
    """What a kernel of norms does besides the role that it names: the residual, and the norms around that.

    `add_rms_norm` adds, then has one norm; `norm_add_norm` has one before that, too.
    """
    known = decode(name)
    if known.family != "norm" or "add" not in known.fused:
        return []
    found: list[str] = []
    for before, residual, behind in _AROUND_ADD:
        if roles.intersection((before, residual, *behind)):
            next_norm = next((each for each in behind if each in roles), behind[0])
            found += [residual, next_norm, *([before] if "rms_norm" in known.fused else [])]
    return [part for part in parts if part[1] in found]


def _with_head_norms(claimed: Mapping[str, tuple[Part, ...]], left: Sequence[Part]) -> dict[str, tuple[Part, ...]]:
    """Norms of heads that no kernel has are done by the rope kernel that puts the heads into the cache."""
    norms = tuple(part for part in left if part[1] in _HEAD_NORMS)
    writers = [name for name, found in claimed.items() if {"rope", "kv_write"} <= {op for op, _ in found}]
    return {name: (*norms, *found) if writers == [name] else found for name, found in claimed.items()}


def _roles_of(text: str, known: set[str]) -> tuple[str, ...]:
    """The model's roles that the engine's word means."""
    word = text.lower().replace(".", "_").replace(":", "_")
    if word in known:
        return (word,)
    last = text.lower().rpartition(".")[2]
    for spelled in (word, last, _PREFIX.sub("", word), _PREFIX.sub("", last)):
        for stem in (spelled, _SUFFIX.sub("", spelled)):
            if stem in _ROLES:
                return _with_experts(_ROLES[stem], text.lower(), known)
    return ()


def _with_experts(roles: tuple[str, ...], text: str, known: set[str]) -> tuple[str, ...]:
    """The experts' matrices where the words say so, or where the model has no others."""
    experts = tuple(role.replace("ffn_", "expert_") for role in roles)
    if "expert" in text or "moe" in text or not known.intersection(roles):
        return experts
    return roles


def _fused_with(name: str, roles: set[str], parts: Sequence[Part]) -> list[Part]:
    """What the label names besides a product: the norm in front, the norm and the residual behind, the activation.

    A rope kernel that writes to the cache has turned what it writes.
    """
    words = {word.lower() for word in _WORD.findall(name.partition(":")[0])}
    has_norm = any("norm" in word for word in words)
    found: list[str] = []
    for role in roles:
        own = {known for _, known in parts}
        if has_norm and role in _BEHIND:
            norm, residual = (each[0] for each in _BEHIND[role])
            found += [norm if norm in own else _NEXT_NORM.get(role, ""), residual]
        elif words & {"residual", "add"} and role in _BEHIND:
            found.append(_BEHIND[role][1][0])
        if words & {"gelu", "silu", "relu", "activation", "act"} or "activation" in decode(name).fused:
            found.append(f"{role.rpartition('_')[0]}_activation")
        if "combine" in decode(name).fused:
            found.append("expert_combine")
        if role == "shared_expert_add" and "scale" in decode(name).fused:
            found.append("shared_expert_scale")
        if decode(name).family == "gemm" and name.startswith("norm_"):
            found.append(_IN_FRONT.get(role, ""))
    if roles == {"kv_write"} and decode(name).family == "rope":
        return [part for part in parts if part[0] == "rope"]
    return [part for part in parts if part[1] in found]


def _claim_feed_forward(name: str, parts: Sequence[Part]) -> list[Part]:
    """A kernel that is only called feed-forward does what of that is left."""
    words = {word.lower() for word in _WORD.findall(name)} | {word.lower() for word in re.findall("[a-z]+", name)}
    return [part for part in parts if part[1] in _FFN] if words & _FFN_WORDS else []


def _claim_operator(name: str, parts: Sequence[Part]) -> list[Part]:
    known = decode(name)
    words = {word.lower() for word in re.findall("[A-Za-z]+", name)}
    ops = {"attention"} if is_attention(name) else set(_OPS.get(known.family, ()))
    for marks, named in _WORDS:
        if words & marks and known.family in ("elementwise", "other"):
            ops.update(named)
    if "embedding" in words:
        ops.add("gather")
    return [part for part in parts if part[0] in ops]
