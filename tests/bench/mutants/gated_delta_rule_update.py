"""Wrong and right kernels of `gated_delta_rule_update`."""

from typing import Any

import torch
from tests.bench.mutants.shared import Kernel, bf16, cut, fp8, halves, shifted, summed
from torch import Tensor

from inferometer.operators.catalogue.gated_delta_rule_update import reference

Two = tuple[Tensor, Tensor]


def by_eps(x: Tensor) -> Tensor:
    return (summed(x.square()) + 1e-12).rsqrt()


def kernel(
    A_log: Tensor, a: Tensor, dt_bias: Tensor, q: Tensor, k: Tensor, v: Tensor, b: Tensor, pool: Tensor, rows: Tensor,
    *, softplus_beta: float = 1.0, softplus_threshold: float = 20.0, use_qk_l2norm: bool = True,
    fault: str = "", keep: Kernel = Tensor.float, power: float = -0.5, length: Kernel = by_eps,
    open: Kernel = torch.sigmoid,
) -> Two:  # fmt: skip
    """A token at a time; `keep` rounds the state after each; `power` of K is the scale."""
    group = v.shape[2] // q.shape[2]
    q, k = (
        x.repeat(1, 1, group, 1) if fault == "interleaved" else x.repeat_interleave(group, 2)
        for x in (q.float(), k.float())
    )
    if use_qk_l2norm:
        q, k = (x * length(x) for x in (q, k))
    x = a.float() + dt_bias.float()
    naive = (1 + (x * softplus_beta).exp()).log() / softplus_beta
    step = (
        naive
        if fault == "softplus spelt out"
        else torch.where(x * softplus_beta > softplus_threshold, x, (x * softplus_beta).exp().log1p() / softplus_beta)
    )
    decay, beta = (-A_log.float().exp() * step).exp()[..., None, None], open(b.float())[..., None]
    state, out = pool[rows.long()], torch.empty_like(v)
    for t in range(v.shape[1]):
        if fault != "decay last":
            state = state * decay[:, t]
        known = (k[:, t][..., None] * state).sum(2) * (fault != "not the known")
        before = state
        state = keep(state + k[:, t][..., None] * (beta[:, t] * (v[:, t].float() - known))[..., None, :])
        if fault == "decay last":
            state = state * decay[:, t]
        read = before if fault == "state before" else state
        out[:, t] = (q.shape[3] ** power * (q[:, t][..., None] * read).sum(2)).to(out.dtype)
    return out, pool if fault == "not written" else pool.index_copy(0, rows.long(), state)


def faulty(fault: str) -> Kernel:
    def wrong(*tensors: Tensor, **settings: Any) -> Two:
        return kernel(*tensors, fault=fault, **settings)

    return wrong


def changed(place: int, change: Kernel) -> Kernel:
    """The reference with another tensor at a place: 0 A_log, 1 a, 2 dt_bias, 3 q, 4 k, 5 v, 6 b, 7 pool, 8 rows."""

    def wrong(*tensors: Tensor, **settings: Any) -> Two:
        spoilt = [*tensors[:place], change(tensors[place]), *tensors[place + 1 :]]
        return reference(*spoilt, **settings)

    return wrong


def in_float64(*tensors: Tensor, **settings: Any) -> Two:
    wide = [*tensors[:7], tensors[7].double(), tensors[8]]
    out, pool = reference(*wide, **settings)
    return out, pool.float()


WRONG: dict[str, Kernel] = {
    "dropped term: decay": changed(0, lambda x: torch.full_like(x, -1000.0)),
    "dropped term: bias of the decay": changed(2, torch.zeros_like),
    "dropped term: beta": changed(6, lambda x: torch.full_like(x, 100.0)),
    "dropped term: initial state": changed(7, torch.zeros_like),
    "dropped term: what the state knows already": faulty("not the known"),
    "dropped term: pool not updated": faulty("not written"),
    "dropped term: norm of q and k": lambda *x, **s: reference(*x, **{**s, "use_qk_l2norm": False}),
    "dropped term: softplus's own settings": lambda *x, **s: reference(*x, use_qk_l2norm=s["use_qk_l2norm"]),
    "scale: none": lambda *x, **s: kernel(*x, power=0.0, **s),
    "scale: 1 / K": lambda *x, **s: kernel(*x, power=-1.0, **s),
    "scale: A not exponentiated": changed(0, lambda x: x.abs().clamp(min=1e-3).log()),
    "position: out of the state before the token": faulty("state before"),
    "position: decay after the update": faulty("decay last"),
    "position: rows of the pool in order": changed(8, lambda x: torch.arange(len(x)).to(x.dtype)),
    "position: tokens of the gates off by one": changed(1, lambda x: shifted(x, 1, 1)),
    "swapped: queries and keys": lambda A, a, d, q, k, *x, **s: reference(A, a, d, k, q, *x, **s),
    "swapped: key heads interleaved": faulty("interleaved"),
    "swapped: K and V of the states": changed(7, lambda x: x.mT.reshape(x.shape)),
    "swapped: halves of the keys": changed(4, halves),
    "swapped: a and b": lambda A, a, d, q, k, v, b, *x, **s: reference(A, b, d, q, k, v, a, *x, **s),
    "missing part: last token": changed(5, lambda x: cut(x, 1, 1)),
    "missing part: last eighth of K": changed(3, lambda x: cut(x, x.shape[3] // 8)),
    "overflow: softplus without a threshold": faulty("softplus spelt out"),
    "overflow: beta of exp(b) / (1 + exp(b))": lambda *x, **s: kernel(*x, open=lambda b: b.exp() / (1 + b.exp()), **s),
    "overflow: steps of at most 20": changed(1, lambda x: x.clamp(max=20.0)),
    "overflow: state in fp16": lambda *x, **s: kernel(*x, keep=lambda y: y.half().float(), **s),
    "zeros: keys divided by their length": lambda *x, **s: kernel(*x, length=lambda y: summed(y.square()).rsqrt(), **s),
    "NaN: 0 for it in the state": lambda *x, **s: kernel(*x, keep=lambda y: y.nan_to_num(0.0), **s),
    "rounding: state in bf16": lambda *x, **s: kernel(*x, keep=bf16, **s),
    "rounding: keys in fp8": changed(4, lambda x: fp8(x.float()).to(x.dtype)),
}

RIGHT: dict[str, Kernel] = {
    "norms in blocks, softplus spelt out": kernel,
    "in float64": in_float64,
    "length at least eps": lambda *x, **s: kernel(
        *x, length=lambda y: y.norm(dim=-1, keepdim=True).clamp(min=1e-6).reciprocal(), **s
    ),
    "beta by a tanh": lambda *x, **s: kernel(*x, open=lambda b: 0.5 + 0.5 * (b / 2).tanh(), **s),
}

INAPPLICABLE = {"mask": "no mask: token by token", "expert": "no experts", "padding": "nothing is padded"}
