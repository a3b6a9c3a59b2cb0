"""Wrong and right kernels of `fp8_blockscale_fused_moe`: those of `fused_moe` on values times scales, and of scales."""

import torch
from tests.bench.mutants import fused_moe
from tests.bench.mutants.shared import Kernel, bf16, cut, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.fp8_blockscale_fused_moe import reference
from inferometer.operators.catalogue.fused_moe import reference as experts


def over_scaled(kernel: Kernel) -> Kernel:
    """A kernel of `fused_moe` over dequantised values, cast at the end."""

    def run(h: Tensor, a: Tensor, b: Tensor, w: Tensor, i: Tensor, s: Tensor, t: Tensor, u: Tensor) -> Tensor:
        h32 = h.float() * s.repeat_interleave(h.shape[1] // s.shape[1], 1)
        result: Tensor = kernel(h32, _scaled(a, t), _scaled(b, u), w, i).to(h.dtype)
        return result

    return run


def _scaled(values: Tensor, tiles: Tensor) -> Tensor:
    rows, columns = values.shape[1] // tiles.shape[1], values.shape[2] // tiles.shape[2]
    return values.float() * tiles.repeat_interleave(rows, 1).repeat_interleave(columns, 2)


def in_groups(x: Tensor, width: int = 32) -> Tensor:
    """Rounded to e4m3 with a scale for each 32 columns, as production rounds what goes into the second product."""
    parts = x.split(width, -1)
    most = [part.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448 for part in parts]
    return torch.cat([(p / m).to(torch.float8_e4m3fn).float() * m for p, m in zip(parts, most, strict=True)], -1)


def other(x: Tensor) -> Tensor:
    """The bits read as the other e4m3."""
    return x.view(torch.float8_e4m3fnuz if x.dtype == torch.float8_e4m3fn else torch.float8_e4m3fn)


SAME = (
    "expert: the next one", "expert: first choice for all", "expert: of the next token",
    "expert: second product of the next one", "scale: weights dropped", "scale: weights equal",
    "scale: weights in the other order", "swapped: gate and up", "swapped: gate and up interleaved",
    "swapped: halves of a row", "dropped term: activation", "dropped term: up", "dropped term: GELU in place of SiLU",
    "missing part: last choice", "missing part: slots beyond four an expert", "missing part: last eighth of H",
    "missing part: last eighth of I", "position: tokens off by one", "padding: a slot of padding added to token 0",
)  # fmt: skip

WRONG: dict[str, Kernel] = {
    **{
        name: over_scaled(fused_moe.WRONG[name])
        for name in ("zeros: weights that add up to 1", "zeros: divided by a token's length", "NaN: in all tokens")
    },
    "NaN: 0 for it between the products": over_scaled(
        lambda h, a, b, w, i: fused_moe.kernel(h, a, b, w, i, keep=lambda x: bf16(x).nan_to_num(0))
    ),
    "expert: one tile of eight slots for each": over_scaled(
        fused_moe.WRONG["expert: one tile of eight slots for each"]
    ),
    **{name: over_scaled(fused_moe.WRONG[name]) for name in SAME},
    "scale: none of the tokens": lambda h, a, b, w, i, s, t, u: reference(
        h, a, b, w, i, torch.full_like(s, 0.02), t, u
    ),
    "scale: first part of a token for all": lambda h, a, b, w, i, s, t, u: reference(
        h, a, b, w, i, s[:, :1].expand_as(s), t, u
    ),
    "scale: one of w1's tiles for all": lambda h, a, b, w, i, s, t, u: reference(
        h, a, b, w, i, s, t[:, :1, :1].expand_as(t), u
    ),
    "scale: one of w2's tiles for all": lambda h, a, b, w, i, s, t, u: reference(
        h, a, b, w, i, s, t, u[:, :1, :1].expand_as(u)
    ),
    "scale: of the next expert": lambda h, a, b, w, i, s, t, u: reference(h, a, b, w, i, s, shifted(t), shifted(u)),
    "scale: e4m3fn read as e4m3fnuz and the other way": lambda h, a, b, w, i, s, t, u: reference(
        h, a, other(b), w, i, s, t, u
    ),
    "swapped: tiles of w1's scales": lambda h, a, b, w, i, s, t, u: reference(
        h, a, b, w, i, s, t.mT.reshape(t.shape), u
    ),
    "swapped: gate's and up's scales": lambda h, a, b, w, i, s, t, u: reference(h, a, b, w, i, s, halves(t, 1), u),
    "position: token scales off by one": lambda h, a, b, w, i, s, t, u: reference(h, a, b, w, i, shifted(s), t, u),
    "missing part: last tile of w2": lambda h, a, b, w, i, s, t, u: reference(h, a, b, w, i, s, t, cut(u)),
    "rounding: result of two bits": lambda *x: reference(*x).float().to(torch.float8_e5m2).float().to(x[0].dtype),
}

RIGHT: dict[str, Kernel] = {
    "fp8 by groups between the products, as production": over_scaled(
        lambda h, a, b, w, i: fused_moe.kernel(h, a, b, w, i, keep=in_groups)
    ),
    "values times scales in bf16": over_scaled(lambda h, a, b, w, i: experts(bf16(h), bf16(a), bf16(b), w, i)),
    "bf16 between the products": over_scaled(fused_moe.kernel),
    "weights before the second product": over_scaled(lambda h, a, b, w, i: fused_moe.kernel(h, a, b, w, i, early=True)),
    "result through bf16": over_scaled(lambda h, a, b, w, i: bf16(fused_moe.kernel(h, a, b, w, i))),
}

HARMLESS = dict.fromkeys(
    (
        *(f"rounding: {name} in whole numbers" for name in ("hidden_states", "w1", "w2")),
        *(f"rounding: {name} in fp8" for name in ("topk_weights", "a_scale", "fc1_scale", "fc2_scale")),
        *(f"overflow: {name} in fp16" for name in ("topk_weights", "a_scale", "fc1_scale", "fc2_scale")),
    ),
    "the result is rounded to three bits, which is coarser",
)
INAPPLICABLE = {
    "overflow": "left out: the published cast and hardware differ beyond the type's range",
    "mask": "no mask",
}
