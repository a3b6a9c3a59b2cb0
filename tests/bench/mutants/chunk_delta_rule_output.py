"""Wrong and right kernels of `chunk_delta_rule_output`."""

import torch
from tests.bench.mutants.shared import Kernel, as_in, cut, fp8, halves, shifted, times
from torch import Tensor

from inferometer.operators.catalogue.chunk_delta_rule_output import reference


def kernel(
    q: Tensor, k: Tensor, v: Tensor, h: Tensor, g: Tensor, *, chunk_size: int = 64, diagonal: int = 1,
    state: bool = True, own: bool = True, interleaved: bool = False, keep: Kernel | None = None,
    scale: float | None = None, clamp: bool = False, split: bool = False,
) -> Tensor:  # fmt: skip
    """A chunk at a time, the scale in the queries first.

    Tokens from `diagonal` above the diagonal are hidden; `state` and `own` say which part is computed; `interleaved`:
    value head j reads key head j % Hk. `keep` rounds A. `clamp`: gates that rise are taken for level, not hidden;
    `split`: the exp of a difference is a product of two.
    """
    own_type = as_in(v)
    Hv, group = v.shape[2], v.shape[2] // q.shape[2]
    q, k = (x.repeat(1, 1, group, 1) if interleaved else x.repeat_interleave(group, 2) for x in (q.float(), k.float()))
    q = q * (q.shape[3] ** -0.5 if scale is None else scale)
    out = torch.empty_like(v)
    for n, start in enumerate(range(0, v.shape[1], chunk_size)):
        part = slice(start, start + chunk_size)
        q_c, k_c, v_c = (x[:, part].transpose(1, 2).float() for x in (q, k, v))
        g_c = g[:, part].transpose(1, 2)[..., None]
        past = (g_c - g_c.mT).clamp(max=0) if clamp else g_c - g_c.mT
        later = torch.ones_like(past, dtype=torch.bool).triu(diagonal)
        decay = past.masked_fill(later, float("-inf")).exp()
        if split:
            decay = (g_c.exp() * (-g_c).exp().mT).masked_fill(later, 0.0)
        A = (keep or own_type)((q_c @ k_c.mT) * decay)
        found = torch.zeros(len(v), Hv, q_c.shape[2], v.shape[3])
        if state:
            found = found + (g_c.exp() * q_c) @ h[:, n].float()
        if own:
            found = found + times(A, v_c, keep=own_type)
        out[:, part] = found.transpose(1, 2).to(out.dtype)
    return out


def unit_and_back(q: Tensor) -> Tensor:
    """Divided by its length, and multiplied by it."""
    length = q.float().norm(dim=-1, keepdim=True)
    return (q.float() / length * length).to(q.dtype)


def ungated(g: Tensor) -> Tensor:
    return torch.zeros_like(g)


WRONG: dict[str, Kernel] = {
    "overflow: exp of a difference as a product of two": lambda *x, **c: kernel(*x, split=True, **c),
    "overflow: states in fp16": lambda q, k, v, h, g, **c: reference(q, k, v, h.half().to(h.dtype), g, **c),
    "zeros: queries of length 1": lambda q, *x, **c: reference(unit_and_back(q), *x, **c),
    "NaN: in all columns": lambda *x, **c: kernel(*x, **c) + 0 * kernel(*x, **c).sum(-1, keepdim=True),
    "NaN: 0 for it in the result": lambda *x, **c: kernel(*x, **c).nan_to_num(0.0),
    "mask: none": lambda *x, **c: kernel(*x, diagonal=1000, clamp=True, **c),
    "mask: a token of the future": lambda *x, **c: kernel(*x, diagonal=2, **c),
    "mask: not the token itself": lambda *x, **c: kernel(*x, diagonal=0, **c),
    "dropped term: state": lambda *x, **c: kernel(*x, state=False, **c),
    "dropped term: own chunk": lambda *x, **c: kernel(*x, own=False, **c),
    "dropped term: gates": lambda q, k, v, h, g, **c: reference(q, k, v, h, ungated(g), **c),
    "dropped term: gates not added up": lambda q, k, v, h, g, **c: reference(
        q, k, v, h, torch.cat([g[:, :1], g[:, 1:] - g[:, :-1]], 1).clamp(max=0), **c
    ),
    "scale: none": lambda *x, **c: kernel(*x, scale=1.0, **c),
    "scale: 1 / K": lambda *x, **c: kernel(*x, scale=1 / x[0].shape[3], **c),
    "swapped: queries and keys": lambda q, k, v, h, g, **c: reference(k, q, v, h, g, **c),
    "swapped: key heads interleaved": lambda *x, **c: kernel(*x, interleaved=True, **c),
    "swapped: value heads": lambda q, k, v, h, g, **c: reference(q, k, shifted(v, dim=2), h, g, **c),
    "swapped: K and V of the state": lambda q, k, v, h, g, **c: reference(q, k, v, h.mT.reshape(h.shape), g, **c),
    "swapped: halves of the queries": lambda q, k, v, h, g, **c: reference(halves(q), k, v, h, g, **c),
    "position: state of the next chunk": lambda q, k, v, h, g, **c: reference(q, k, v, shifted(h, -1, 1), g, **c),
    "position: gates off by one token": lambda q, k, v, h, g, **c: kernel(
        q, k, v, h, shifted(g, 1, 1), clamp=True, **c
    ),
    "position: chunks of half the size": lambda q, k, v, h, g, *, chunk_size: reference(
        q, k, v, h.repeat_interleave(2, 1), g, chunk_size=chunk_size // 2
    ),
    "missing part: last key of each chunk": lambda q, k, v, h, g, *, chunk_size: reference(
        q, zeroed(k, chunk_size - 1, chunk_size), v, h, g, chunk_size=chunk_size
    ),
    "missing part: last eighth of K": lambda q, k, v, h, g, **c: reference(cut(q, q.shape[3] // 8), k, v, h, g, **c),
    "padding: last chunk's state not there": lambda q, k, v, h, g, **c: reference(q, k, v, cut(h, 1, 1), g, **c),
    "rounding: queries in fp8": lambda q, k, v, h, g, **c: reference(fp8(q.float()).to(q.dtype), k, v, h, g, **c),
    "rounding: states of two bits": lambda q, k, v, h, g, **c: reference(
        q, k, v, h.to(torch.float8_e5m2).to(h.dtype), g, **c
    ),
}


def zeroed(x: Tensor, first: int, step: int) -> Tensor:
    x = x.clone()
    x[:, first::step] = 0
    return x


RIGHT: dict[str, Kernel] = {
    "in blocks, the scale first": kernel,
    "A not rounded": lambda *x, **c: kernel(*x, keep=Tensor.float, **c),
    "queries scaled and rounded": lambda q, *x, **c: kernel(
        as_in(q)(q.float() * q.shape[3] ** -0.5), *x, scale=1.0, **c
    ),
    "result through bf16 twice": lambda *x, **c: (
        kernel(*x, state=False, **c).float() + kernel(*x, own=False, **c).float()
    ).to(x[2].dtype),
}

HARMLESS = {
    "overflow: k in fp16": "it has more bits than bf16, and the range of rows of length 1",
    "overflow: g in fp16": "where its last bit would matter, nothing is left",
}
INAPPLICABLE = {"expert": "no experts"}
