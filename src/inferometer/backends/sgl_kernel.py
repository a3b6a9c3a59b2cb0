"""SGLang's kernel library: sglang-kernel, sgl-kernel before that; either is imported as `sgl_kernel`.

Interfaces of sglang-kernel 0.4.10 and sgl-kernel 0.3.21, read in their wheels; what a kernel demands of its arguments,
in the sources under `sgl-kernel/csrc` of SGLang's repository. Not run on a GPU yet: tried against stand-ins of the
same signatures. From 0.4 on, the library's norms are FlashInfer's where that is installed: its version is recorded.

What is in the time besides the kernel, where it isn't what an engine does for each layer:

- `fused_qkv_rope`: copies of q, k and v, see `rope_by_table`;
- `causal_conv1d`: copies of x, which the library overwrites with the answer, and of the state, which it updates.

`fp8_dynamic_per_token_quant` gives rows of zeros the scale 0, and in small batches no zeros. `topk_softmax` leaves
open which of equal experts comes first where their number is no power of two.

Left out: `moe_align_block_size` (places by atomics keep no order), `topk_filter` (of probabilities, not of logits),
`fused_qk_rmsnorm` (fused with rotation), `block_scaled_mm` and latent attention (0.4 has them no more).
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import Backend, Kernel
from inferometer.backends.vendor import (
    Loader,
    load_from,
    missing,
    no_gpu,
    part,
    require,
    require_largest,
)
from inferometer.backends.vendor_kernels import added_norm_in_place, norm_by_answer, rope_by_table

if TYPE_CHECKING:
    from torch import Tensor

_LIBRARY = "sgl-kernel"
_MODULE = "sgl_kernel"
_FP8, _LARGEST = "fp8_e4m3fn", 448.0  # the only type, and its largest value: compiled in
_VECTOR = 16  # bytes that a load takes: rows of gates are a multiple
_GROUPS = (16, 32, 64, 128)  # columns of a group that `sgl_per_token_group_quant_8bit_v2` is compiled for
_WIDTHS = (2, 3, 4)  # of a convolution that `causal_conv1d_fwd` is compiled for; of others it does nothing
_NO_SLOT = -1  # state that marks padding


def _unavailable(device: str) -> str | None:
    return missing("sgl-kernel", _MODULE, "pip install sglang-kernel") or no_gpu("sgl-kernel", device)


def _rms_norm() -> Kernel:
    return norm_by_answer(part(_MODULE, "rmsnorm"))


def _fused_add_rms_norm() -> Kernel:
    return added_norm_in_place(part(_MODULE, "fused_add_rmsnorm"))


def _silu_and_mul() -> Kernel:
    activate = part(_MODULE, "silu_and_mul")

    def kernel(x: "Tensor") -> "Tensor":
        row = x.shape[-1] * x.element_size()
        require(row % _VECTOR == 0, f"sgl-kernel's silu_and_mul wants rows of a multiple of 16 bytes, found {row}")
        out: Tensor = activate(x)
        return out

    return kernel


def _fused_qkv_rope() -> Kernel:
    return rope_by_table(part(_MODULE, "rotary_embedding"))


def _fp8_dynamic_per_token_quant() -> Kernel:
    import torch

    quantise = part(_MODULE, "sgl_per_token_quant_fp8")

    def kernel(
        x_TH: "Tensor", *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        T, H = x_TH.shape
        _require_fp8(fp8_dtype, fp8_max)
        require(H % 4 == 0, f"sgl-kernel's sgl_per_token_quant_fp8 wants a multiple of 4 columns, found {H}")
        q_TH = torch.empty(T, H, dtype=torch.float8_e4m3fn, device=x_TH.device)
        scale_T1 = torch.empty(T, 1, dtype=torch.float32, device=x_TH.device)
        quantise(x_TH, q_TH, scale_T1)
        return q_TH, scale_T1.squeeze(-1)

    return kernel


def _per_token_group_quant_fp8() -> Kernel:
    """The second version of the kernel, which SGLang takes for these groups; its least magnitude is 1e-10."""
    import torch

    quantise = part(_MODULE, "sgl_per_token_group_quant_8bit")

    def kernel(
        x_TH: "Tensor", *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        T, H = x_TH.shape
        _require_fp8(fp8_dtype, fp8_max)
        require(group_size in _GROUPS, f"sgl-kernel has groups of 16, 32, 64 and 128 columns, expected {group_size}")
        q_TH = torch.empty(T, H, dtype=torch.float8_e4m3fn, device=x_TH.device)
        scale_TG = torch.empty(T, H // group_size, dtype=torch.float32, device=x_TH.device)
        quantise(x_TH, q_TH, scale_TG, group_size, 1e-10, -_LARGEST, _LARGEST, enable_v2=True)
        return q_TH, scale_TG

    return kernel


def _require_fp8(dtype: str, largest: float | None) -> None:
    require(dtype == _FP8, f"sgl-kernel quantises to {_FP8}, expected {dtype}")
    require_largest(_LIBRARY, dtype, largest, _LARGEST, _LARGEST)


def _moe_topk_gating_softmax() -> Kernel:
    import torch

    choose = part(_MODULE, "topk_softmax")

    def kernel(
        logits_TE: "Tensor", *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
    ) -> "tuple[Tensor, Tensor]":
        require(not (num_expert_groups > 0 and topk_group > 0), "sgl-kernel's topk_softmax has no groups of experts")
        shape, device = (logits_TE.shape[0], top_k), logits_TE.device
        weights_Tk = torch.empty(shape, dtype=torch.float32, device=device)
        ids_Tk = torch.empty(shape, dtype=torch.int32, device=device)
        choose(weights_Tk, ids_Tk, logits_TE)
        return weights_Tk, ids_Tk

    return kernel


def _moe_sum_reduce() -> Kernel:
    import torch

    add = part(_MODULE, "moe_sum_reduce")

    def kernel(expert_outputs_TkH: "Tensor", *, routed_scaling_factor: float = 1.0) -> "Tensor":
        T, _, H = expert_outputs_TkH.shape
        out_TH = torch.empty(T, H, dtype=expert_outputs_TkH.dtype, device=expert_outputs_TkH.device)
        add(expert_outputs_TkH, out_TH, routed_scaling_factor)
        return out_TH

    return kernel


def _causal_conv1d() -> Kernel:
    convolve = part(_MODULE, "causal_conv1d_fwd")

    def kernel(
        x_DT: "Tensor",
        weight_DW: "Tensor",
        bias_D: "Tensor",
        initial_state: "Tensor",
        *,
        activation: str | None = "silu",
    ) -> "Tensor":
        T, W = x_DT.shape[1], weight_DW.shape[1]
        require(W in _WIDTHS, f"sgl-kernel's causal_conv1d_fwd has widths of 2, 3 and 4, expected {W}")
        out_DT, state = x_DT.clone(), initial_state.clone()
        starts, first, has_state = _one_sequence(T, x_DT.device)
        convolve(out_DT, weight_DW, bias_D, state, starts, first, has_state, activation is not None, _NO_SLOT)
        return out_DT

    return kernel


@lru_cache(maxsize=32)
def _one_sequence(tokens: int, device: Any) -> "tuple[Tensor, Tensor, Tensor]":
    """Where the only sequence begins and ends, its state's row, and that it has a state: made once, as engines do."""
    import torch

    starts = torch.tensor([0, tokens], dtype=torch.int32, device=device)
    return starts, starts[:1], torch.ones(1, dtype=torch.bool, device=device)


_LOADERS: dict[str, Loader] = {
    "causal_conv1d": _causal_conv1d,
    "fp8_dynamic_per_token_quant": _fp8_dynamic_per_token_quant,
    "fused_add_rms_norm": _fused_add_rms_norm,
    "fused_qkv_rope": _fused_qkv_rope,
    "moe_sum_reduce": _moe_sum_reduce,
    "moe_topk_gating_softmax": _moe_topk_gating_softmax,
    "per_token_group_quant_fp8": _per_token_group_quant_fp8,
    "rms_norm": _rms_norm,
    "silu_and_mul": _silu_and_mul,
}


def _load(name: str) -> Kernel:
    return load_from(_LOADERS, name)


BACKEND = Backend(
    name="sgl-kernel",
    summary="SGLang's kernel library, called as SGLang's layers call it.",
    operators=tuple(_LOADERS),
    unavailable=_unavailable,
    load=_load,
    packages=("torch", "sglang-kernel", "sgl-kernel", "flashinfer-python"),
)
