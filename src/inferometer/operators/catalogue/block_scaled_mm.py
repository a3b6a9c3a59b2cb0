"""FP8 product of a and transposed b, with scales of a for each row and group of k, and of b for each tile.

m rows, n columns, k depth; k is a multiple of group_k, the last tile of n may be smaller. The scheme: DeepSeek-V3,
arXiv:2412.19437, section 3.3.2. The published contract is e4m3fn (largest value 448); AMD's CDNA 3 multiplies
e4m3fnuz, which `inputs` draws where `fp8_dtype` asks for it (largest 240, of activations 224).

The published inputs take the scale of a tile of b from its largest value, not from its largest magnitude: where the
most negative weight is the longer one, it and others next to it saturate. Here it is the magnitude, so none does.
"""

from collections.abc import Mapping
from math import ceil, nan
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes, tiles
from inferometer.operators.catalogue import per_token_group_quant_fp8
from inferometer.operators.catalogue.draws import Draws, largest_of, torch_dtype
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, no_tokens, scaled, spoiled, zeroed
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Product, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(
    a_mk: "Tensor", b_nk: "Tensor", a_scales: "Tensor", b_scales: "Tensor", *, group_n: int = 128, group_k: int = 128
) -> "Tensor":
    """fp32 [m, n]: the product of every group of k, times both scales, added up. a and b may be of either FP8 type.

    Production returns bf16 or fp16: half the bytes written.
    """
    import torch

    n, k = b_nk.shape
    b32_nk = b_nk.float()
    scale_Gn = b_scales.repeat_interleave(group_n, 0)[:n].T

    def rows(a_rk: "Tensor", scale_rG: "Tensor") -> "Tensor":
        out_rn = torch.zeros(a_rk.shape[0], n, device=a_rk.device)
        for group in range(k // group_k):
            of = slice(group * group_k, (group + 1) * group_k)
            out_rn += a_rk[:, of].float() @ b32_nk[:, of].T * scale_rG[:, group, None] * scale_Gn[group]
        return out_rn

    (out_mn,) = by_rows(rows, a_mk, a_scales, out=(torch.empty(a_mk.shape[0], n, device=a_mk.device),))
    return out_mn


def inputs(
    *,
    m: int,
    n: int,
    k: int,
    group_n: int = 128,
    group_k: int = 128,
    fp8_dtype: str = "fp8_e4m3fn",
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Activations and weights, both quantised as engines do it: scales from largest magnitudes, nothing saturates."""
    draw = Draws(seed, device)
    a_mk, a_scales = per_token_group_quant_fp8.reference(
        draw.activations(m, k), group_size=group_k, fp8_dtype=fp8_dtype
    )
    weight_nk = draw.normal(n, k, dtype="fp32", scale=k**-0.5) * draw.uniform(n, 1, low=0.5, high=2.0)
    b_nk, b_scales = _tiles(weight_nk, group_n, group_k, fp8_dtype)
    return {"a": a_mk, "b": b_nk, "a_scales": a_scales, "b_scales": b_scales}


def _tiles(weight_nk: "Tensor", group_n: int, group_k: int, fp8_dtype: str) -> "tuple[Tensor, Tensor]":
    """FP8 weights and fp32 [n / group_n, k / group_k]: a tile's largest magnitude becomes the type's largest value."""
    import torch

    n, k = weight_nk.shape
    most, tiles = largest_of(fp8_dtype), ceil(n / group_n)
    whole = torch.nn.functional.pad(weight_nk, (0, 0, 0, tiles * group_n - n))
    tile_NnGk = whole.view(tiles, group_n, k // group_k, group_k)
    scale_N1G1 = tile_NnGk.abs().amax((1, 3), keepdim=True) / most
    b_NnGk = (tile_NnGk / scale_N1G1).clamp(-most, most).to(torch_dtype(fp8_dtype))
    return b_NnGk.view(-1, k)[:n].contiguous(), scale_N1G1[:, 0, :, 0].contiguous()


def cost(*, m: int, n: int, k: int, group_n: int = 128, group_k: int = 128, **_: object) -> Cost:
    """The product; a group of k: two multiplies and an add for each element, but for the first add."""
    G, N = k // group_k, ceil(n / group_n)
    return Cost(
        2 * m * n * k + m * n * (3 * G - 1), read_bytes=m * k + n * k + 4 * m * G + 4 * N * G, written_bytes=4 * m * n
    )


def work(*, m: int, n: int, k: int, group_n: int = 128, group_k: int = 128, **_: object) -> Work:
    """The product in FP8; a group of k: one multiply and add for each element, by the product of both scales.

    That product is one multiply for each row and tile. Operands that are scaled first spare the rest, but then they
    are no longer FP8 and their product takes longer than all of it. A single row needs no matrix unit: no padding.
    """
    G, N = k // group_k, ceil(n / group_n)
    return Work(
        dtype="fp8",
        products=(Product(2 * m * n * k, M=m if m > 1 else None, N=n if n > 1 else None),),
        vector_flops=m * n * (2 * G - 1) + m * N * G,
        read_bytes=m * k + n * k + 4 * m * G + 4 * N * G,
        written_bytes=4 * m * n,
    )


def _largest(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    """Every number of a is the type's largest, with the sign that it had."""
    import torch

    a = tensors["a"].float()
    return {"a": torch.where(a < 0, -1.0, 1.0).mul(torch.finfo(tensors["a"].dtype).max).to(tensors["a"].dtype)}


OPERATOR = Operator(
    name="block_scaled_mm",
    summary="FP8 matrix product with scales for groups of a row of a and for tiles of b.",
    dims={"m": "rows", "n": "columns", "k": "depth", "G": "groups of k", "N": "tiles of n"},
    axes=Axes(
        op_type="gemm",
        sizes={
            "m": "m",
            "n": "n",
            "k": "k",
            "G": lambda k, group_k: k // group_k,
            "N": lambda n, group_n: tiles(n, group_n),
        },
        varying=("m",),
        inputs={"a": "m k: fp8_dtype", "b": "n k: fp8_dtype", "a_scales": "m G: fp32", "b_scales": "N G: fp32"},
        outputs={"out": "m n: fp32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros", zeroed("a")),
            HardCase("large numbers", "the type's largest numbers", "their sums, which are float32", _largest),
            HardCase("large numbers", "large scales", "as much larger outputs", scaled(2.0**60, "a_scales")),
            HardCase("tiny numbers", "tiny scales", "as much smaller outputs", scaled(2.0**-60, "a_scales")),
            HardCase("NaN", "NaN in one number", "NaN in all of its row and in no other", spoiled(nan, "a")),
            no_tokens(m=0),
        ),
        few=at_most(m=8),
        left_out={"infinity": "the type has none"},
    ),
    settings=("group_n", "group_k"),
    # Hopper's matrix units keep about 14 bits of an FP8 product's sums (arXiv:2412.19437, section 3.3.2): about 2e-4 in
    # groups of 128. Operands scaled and rounded to bf16, or an output that was bf16, are about 2e-3 off: not fp32.
    tolerance={"out": 1e-3},
    tiny=(
        {"m": 1, "n": 128, "k": 256, "group_n": 128, "group_k": 128},
        {"m": 63, "n": 72, "k": 96, "group_n": 24, "group_k": 32},
        {"m": 5, "n": 129, "k": 128, "group_n": 64, "group_k": 64},
        {"m": 17, "n": 32, "k": 64, "group_n": 32, "group_k": 64, "fp8_dtype": "fp8_e4m3fnuz"},
    ),
)
