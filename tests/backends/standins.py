"""Stand-ins for vendor libraries: modules of the same names, whose functions have the real signatures.

They compute with torch on the CPU, in place where the real ones do, and demand of dtypes, shapes and strides what the
real ones demand. They show that an adapter calls a library rightly; not that the library is right.
"""

import importlib.machinery
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from inferometer.backends import require_backend
from inferometer.bench.comparison import compare_outputs
from inferometer.errors import Unavailable
from inferometer.operators import operators


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **parts: Any) -> ModuleType:
    """A module of that name, and of its parents', that can be imported for the rest of the test."""
    path = name.split(".")
    for depth in range(1, len(path) + 1):
        each = ".".join(path[:depth])
        if each not in sys.modules:
            module = ModuleType(each)
            module.__spec__ = importlib.machinery.ModuleSpec(each, None, is_package=True)
            module.__path__ = []
            monkeypatch.setitem(sys.modules, each, module)
            if depth > 1:
                monkeypatch.setattr(sys.modules[".".join(path[: depth - 1])], path[depth - 1], module, raising=False)
    for part, value in parts.items():
        monkeypatch.setattr(sys.modules[name], part, value, raising=False)
    return sys.modules[name]


def assert_right(backend: str, name: str, args: Mapping[str, Any], kernel: Callable[..., Any] | None = None) -> None:
    """The backend answers as the reference does, and leaves inputs alone that production doesn't update."""
    import torch

    operator = operators()[name]
    tensors = operator.inputs(**args, seed=5)
    before = {each: tensor.clone() for each, tensor in tensors.items()}
    wanted = operator.answer(before, args)
    call = kernel or require_backend(backend).load(name)
    found = call(*tensors.values(), **operator.settings_of(args))
    assert [check.reason for check in compare_outputs(operator, found, wanted)] == [None] * len(wanted)
    for each, tensor in tensors.items():
        if each not in operator.updates:
            assert torch.equal(_bits(tensor), _bits(before[each])), f"{each} was changed"


def assert_tiny(backend: str, name: str, *refused: str | None) -> None:
    """Every tiny shape is right, or refused with these words: one pattern a shape, None where it is right."""
    tiny = operators()[name].tiny
    for args, words in zip(tiny, refused or [None] * len(tiny), strict=True):
        if words is None:
            assert_right(backend, name, args)
            continue
        with pytest.raises(Unavailable) as error:
            assert_right(backend, name, args)
        assert re.search(words, str(error.value)), str(error.value)


def _bits(tensor: Any) -> Any:
    import torch

    return tensor.view(torch.uint8) if tensor.dtype.itemsize == 1 else tensor


def rms_normed(x: Any, weight: Any, eps: float) -> Any:
    """float32 inside."""
    import torch

    return torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps).to(x.dtype)


def gated(x: Any) -> Any:
    """SiLU of the first half times the second."""
    import torch

    one, other = x.float().chunk(2, -1)
    return (torch.nn.functional.silu(one) * other).to(x.dtype)


def quantise_rows(out: Any, x: Any, scales: Any, largest: float, least: float = 0.0) -> None:
    """FP8 values and the scale of each row; `least` is the least scale."""
    scale = (x.float().abs().amax(-1, keepdim=True) / largest).clamp(min=least)
    out.copy_((x.float() / scale).clamp(-largest, largest))
    scales.copy_(scale.view(scales.shape))


def attended(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    """One sequence, [t, Hq, d] over [L, Hk, d]; the mask is aligned to the last key."""
    import torch

    group = q.shape[1] // k.shape[1]
    q, k, v = (x.float().transpose(0, 1) for x in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)))
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1]) if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, seen, scale=scale).transpose(0, 1)


def attended_packed(q: Any, k: Any, v: Any, q_starts: Any, k_starts: Any, scale: float) -> Any:
    """Sequences one after another, without a mask."""
    import torch

    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    ends = zip(q_starts[:-1], q_starts[1:], k_starts[:-1], k_starts[1:], strict=True)
    for q0, q1, k0, k1 in ends:
        out[q0:q1] = attended(q[q0:q1], k[k0:k1], v[k0:k1], scale, causal=False).to(q.dtype)
    return out


def rotate_in_place(positions: Any, query: Any, key: Any, head_size: int, cos_sin_cache: Any, is_neox: bool) -> None:
    """As vLLM's and SGLang's `rotary_embedding`: positions int64, a table of the query's dtype, packed heads."""
    import torch

    assert positions.dtype == torch.int64
    assert is_neox
    tokens = positions.shape[0]
    heads = [x.shape[1] // head_size for x in (query, key)]
    assert heads[0] % heads[1] == 0
    assert int(positions.max()) < cos_sin_cache.shape[0]
    assert cos_sin_cache.dtype == query.dtype
    cos, sin = cos_sin_cache[positions].float().chunk(2, -1)
    half = cos.shape[1]
    for x in (query, key):
        assert x.dim() == 2
        view = x.view(tokens, -1, head_size)
        one, other = view[..., :half].float(), view[..., half : 2 * half].float()
        view[..., :half] = one * cos[:, None] - other * sin[:, None]
        view[..., half : 2 * half] = other * cos[:, None] + one * sin[:, None]


def choose_experts(weights: Any, ids: Any, logits: Any) -> None:
    """Softmax over all, the largest first, lower ids first among equals."""
    import torch

    assert weights.dtype == torch.float32
    assert ids.dtype == torch.int32
    assert weights.shape == ids.shape
    ranked, order = torch.softmax(logits.float(), -1).sort(dim=-1, descending=True, stable=True)
    weights.copy_(ranked[:, : weights.shape[1]])
    ids.copy_(order[:, : weights.shape[1]])


def write_slots(key: Any, value: Any, key_cache: Any, value_cache: Any, slots: Any) -> None:
    """As `reshape_and_cache_flash`: negative slots are skipped."""
    kept = slots >= 0
    place = (slots[kept] // key_cache.shape[1], slots[kept] % key_cache.shape[1])
    key_cache[place], value_cache[place] = key[kept], value[kept]
