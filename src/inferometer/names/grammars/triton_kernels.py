"""The package triton_kernels: products over ragged batches of experts, `_matmul_ogs_…`, and their routing.

`_[p_]matmul_ogs_<layouts of Y, X, W>_<Y>x<X>x<W>_<BM>x<BN>x<BK>x<splitK>[_swiglu]`. Source:
triton_kernels/matmul_ogs.py.
"""

import re

from inferometer.names.dtypes import TYPES, product
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_MATMUL = late_re(
    r"_(?P<persistent>p_)?matmul(?:_ogs)?_(?P<layout>[NT]{3})_(?P<y>[a-z0-9]+?)x(?P<x>[a-z0-9]+?)x(?P<w>[a-z0-9]+?)_"
    r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:x(?P<split>\d+))?(?P<rest>\w*)"
)
_TYPES = TYPES | {"mxfp4": "mxfp4", "mxfp8": "mxfp8", "mxfp4e2m1": "mxfp4", "fp8e4": "fp8_e4m3", "u8": "", "uint8": ""}
_HELPERS: dict[str, Family] = {
    **dict.fromkeys(
        ("_topk", "_topk_forward", "_topk_backward", "_sum_bitmatrix_memset", "_sum_bitmatrix_rows",
         "_expt_data_compute", "_expt_data_memset", "_routing_compute_indx", "_routing_compute_indx_offs",
         "_routing_compute_expt_offs", "_routing_clear_bitmatrix", "_routing_memset_indx", "_combined_routing_compute",
         "_combined_routing_memset", "_combined_routing", "_combined_routing_fused", "_stage2_pow2",
         "_combined_routing_compute_pow2", "pack_bitmatrix", "_bitmatrix_metadata_compute_stage1",
         "_bitmatrix_metadata_compute_stage2", "_bitmatrix_metadata_memset", "_ragged_tensor_metadata_compute",
         "_ragged_tensor_metadata_memset", "_compaction", "_masked_compaction", "_expt_data_fill",
         "vpopc"), "moe_routing"),
    "_finalize_matmul": "gemm_epilogue",
    "_finalize_split_k": "gemm_epilogue",
    "_reduce_grouped": "gemm_epilogue",
    "_swiglu": "activation",
    "_upcast_from_mxfp": "quantize",
    "_downcast_to_mxfp": "quantize",
    "_downcast_to_mxfp_kernel": "quantize",
    "_quantize_mxfp8_fn": "quantize",
}  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A product of triton_kernels, or one of the kernels around it."""
    if not name.is_bare or not name.function.startswith(("_", "pack_bit", "vpopc")):
        return None
    family = _HELPERS.get(name.function)
    if family is not None:
        words = name.function.strip("_").replace("_", " ")
        return KernelName(
            library="triton_kernels",
            family=family,
            short_name=short("triton_kernels", words),
            evidence=Evidence("triton_kernels function", "D"),
        )
    if name.function in ("_matmul_ogs", "_p_matmul_ogs"):
        return KernelName(
            library="triton_kernels",
            family="grouped_gemm",
            short_name=short("triton_kernels matmul_ogs"),
            evidence=Evidence("triton_kernels function", "D"),
        )
    match = _MATMUL.fullmatch(name.function)
    return None if match is None else _read_matmul(match)


def _read_matmul(match: re.Match[str]) -> KernelName:
    dtype = product(_TYPES.get(match["x"]) or None, _TYPES.get(match["w"]) or None)
    m, n, k = (int(match[axis][:6]) for axis in "mnk")
    split = int(match["split"][:4]) if match["split"] else None
    fused = ("swiglu",) if "swiglu" in match["rest"] else ()
    return KernelName(
        library="triton_kernels",
        family="grouped_gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        split_k=split,
        layout=match["layout"],
        flags=("persistent",) if match["persistent"] else (),
        fused=fused,
        short_name=short(
            *("moe matmul", dtype, size(m, n, k), f"splitK{split}" if split and split > 1 else "", *fused),
            "persistent" if match["persistent"] else "",
        ),
        evidence=Evidence("triton_kernels matmul_ogs", "D"),
    )


GRAMMAR = Grammar("triton_kernels", "form", read, spaces="", letters="_pv")
