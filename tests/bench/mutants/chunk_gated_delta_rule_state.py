"""Wrong and right kernels of `chunk_gated_delta_rule_state`."""

from math import ceil

import torch
from tests.bench.mutants.shared import Kernel, as_in, bf16, cut, fp8, halves, shifted, times
from torch import Tensor

from inferometer.operators.catalogue.chunk_gated_delta_rule_state import reference

Three = tuple[Tensor, Tensor, Tensor]


def kernel(
    k: Tensor, w: Tensor, u: Tensor, g: Tensor, pool: Tensor, rows: Tensor, *, chunk_size: int = 64,
    keep: Kernel = Tensor.float, kept_late: bool = True, decay: bool = True, after: bool = False, padded: bool = False,
    known: bool = True, interleaved: bool = False, write: bool = True, split: bool = False,
) -> Three:  # fmt: skip
    """A chunk at a time.

    `keep` rounds the state after each chunk; `kept_late`: changes decay to the chunk's end; `decay`: the state does;
    `after`: h is the state after the chunk; `padded`: the last chunk decays as a whole one; `known`: w h is taken off;
    `interleaved`: value head j reads key head j % Hk; `write`: the pool is updated; `split`: the exp of
    a difference is a product of two.
    """
    own_type = as_in(k)
    T, group = u.shape[1], u.shape[2] // k.shape[2]
    k = k.repeat(1, 1, group, 1) if interleaved else k.repeat_interleave(group, 2)
    state = pool[rows.long()]
    h = k.new_empty(len(k), ceil(T / chunk_size), *state.shape[1:])
    v_new = torch.empty_like(u)
    for n, start in enumerate(range(0, T, chunk_size)):
        part = slice(start, min(start + chunk_size, T))
        k_c, w_c, u_c = (x[:, part].transpose(1, 2).float() for x in (k, w, u))
        g_c = g[:, part].transpose(1, 2)[..., None]
        last = g_c[:, :, -1:] * (chunk_size / (part.stop - start) if padded else 1)
        h[:, n] = state.to(h.dtype)
        change = u_c - times(w_c, h[:, n].float(), keep=own_type) if known else u_c
        v_new[:, part] = change.transpose(1, 2).to(u.dtype)
        late = last.exp() * (-g_c).exp() if split else (last - g_c).exp()
        kept = own_type(change * late) if kept_late else own_type(change)
        state = keep((state * last.exp() if decay else state) + times(k_c.mT, kept, keep=own_type))
        if after:
            h[:, n] = state.to(h.dtype)
    return h, v_new, pool.index_copy(0, rows.long(), state) if write else pool


WRONG: dict[str, Kernel] = {
    "overflow: exp of a difference as a product of two": lambda *x, **c: kernel(*x, split=True, **c),
    "overflow: state in fp16": lambda *x, **c: kernel(*x, keep=lambda y: y.half().float(), **c),
    "zeros: states below 1e-10 forgotten": lambda *x, **c: kernel(
        *x, keep=lambda y: y.masked_fill(y.abs() < 1e-10, 0.0), **c
    ),
    "NaN: 0 for it in the state": lambda *x, **c: kernel(*x, keep=lambda y: y.nan_to_num(0.0), **c),
    "dropped term: initial state": lambda k, w, u, g, p, r, **c: reference(k, w, u, g, torch.zeros_like(p), r, **c),
    "dropped term: gates": lambda k, w, u, g, p, r, **c: reference(k, w, u, torch.zeros_like(g), p, r, **c),
    "dropped term: decay of the state": lambda *x, **c: kernel(*x, decay=False, **c),
    "dropped term: decay of the changes": lambda *x, **c: kernel(*x, kept_late=False, **c),
    "dropped term: w h": lambda *x, **c: kernel(*x, known=False, **c),
    "dropped term: pool not updated": lambda *x, **c: kernel(*x, write=False, **c),
    "position: h after the chunk": lambda *x, **c: kernel(*x, after=True, **c),
    "position: rows of the pool off by one": lambda k, w, u, g, p, r, **c: reference(
        k, w, u, g, p, (r + 1) % len(p), **c
    ),
    "position: rows of the pool in order": lambda k, w, u, g, p, r, **c: reference(
        k, w, u, g, p, torch.arange(len(r)).to(r.dtype), **c
    ),
    "position: gates off by one token": lambda k, w, u, g, p, r, **c: reference(k, w, u, shifted(g, 1, 1), p, r, **c),
    "swapped: k and w": lambda k, w, u, g, p, r, **c: reference(
        w[:, :, :: w.shape[2] // k.shape[2]], k.repeat_interleave(w.shape[2] // k.shape[2], 2), u, g, p, r, **c
    ),
    "swapped: key heads interleaved": lambda *x, **c: kernel(*x, interleaved=True, **c),
    "swapped: halves of w": lambda k, w, u, g, p, r, **c: reference(k, halves(w), u, g, p, r, **c),
    "swapped: K and V of the states": lambda k, w, u, g, p, r, **c: reference(
        k, w, u, g, p.mT.reshape(p.shape), r, **c
    ),
    "swapped: value heads of u": lambda k, w, u, g, p, r, **c: reference(k, w, shifted(u, dim=2), g, p, r, **c),
    "missing part: last token": lambda k, w, u, g, p, r, **c: reference(cut(k, 1, 1), w, u, g, p, r, **c),
    "missing part: last eighth of K": lambda k, w, u, g, p, r, **c: reference(
        k, cut(w, w.shape[3] // 8), u, g, p, r, **c
    ),
    "padding: last chunk decays as a whole one": lambda *x, **c: kernel(*x, padded=True, **c),
    "scale: K^-0.5 as in attention": lambda k, w, u, g, p, r, **c: reference(
        k * k.shape[3] ** -0.5, w, u, g, p, r, **c
    ),
    "rounding: state in fp8": lambda *x, **c: kernel(*x, keep=fp8, **c),
    "rounding: keys in fp8": lambda k, *x, **c: reference(fp8(k.float()).to(k.dtype), *x, **c),
}

RIGHT: dict[str, Kernel] = {
    "products in blocks": kernel,
    "state in bf16": lambda *x, **c: kernel(*x, keep=bf16, **c),
    "in float64": lambda k, w, u, g, p, r, **c: tuple(
        x.to(like)
        for x, like in zip(reference(k, w, u, g.double(), p.double(), r, **c), (k.dtype, u.dtype, p.dtype), strict=True)
    ),
}

ONLY_IN = {"state in bf16": ("bf16",)}
HARMLESS = {
    "overflow: k in fp16": "it has more bits than bf16, and the range of rows of length 1",
    "overflow: w in fp16": "the same",
    "overflow: g in fp16": "where its last bit would matter, nothing is left",
    "zeros: numbers below 1e-20 of w": "what such weights take off is nothing",
}
INAPPLICABLE = {"mask": "no mask: a chunk's own tokens are in w and u", "expert": "no experts"}
