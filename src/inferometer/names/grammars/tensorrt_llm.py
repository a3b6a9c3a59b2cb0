"""TensorRT-LLM's product of experts for Ampere: `fused_moe::run_global<Fused_Moe_Kernel_sm80<…>>`.

Its arguments are the types of activations, weights and result, then M, N and K of the tile, stages, and the activation
function. Source: TensorRT-LLM's cutlass_extensions, `fused_moe_kernel_traits.cuh`.
"""

from inferometer.names.dtypes import dtype_of, product
from inferometer.names.kernel_name import Evidence, KernelName
from inferometer.names.reading import Grammar, ParsedName, last_word, numbers, split_template
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_KERNEL = late_re(r"Fused_Moe_Kernel(?:_\w+)?_sm(\d{2,3})")


def read(name: ParsedName) -> KernelName | None:
    """A fused layer of experts: gather, both products of a gated activation, or the second product."""
    if name.namespaces[:1] != ("fused_moe",) or not name.arguments:
        return None
    head, arguments = split_template(name.arguments[0])
    match = _KERNEL.match(last_word(head))
    if match is None:
        return None
    dtype = product(dtype_of(arguments[0]), dtype_of(arguments[1])) if len(arguments) > 1 else None
    m, n, k, stages = [*numbers(arguments[3:7]), None, None, None, None][:4]
    arch = f"sm{match[1]}"
    return KernelName(
        library="tensorrt_llm",
        family="grouped_gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=stages,
        arch=arch,
        short_name=short("trtllm fused moe", arch, dtype, size(m, n, k), f"s{stages}" if stages else ""),
        evidence=Evidence("TensorRT-LLM fused experts", "D"),
    )


GRAMMAR = Grammar("tensorrt_llm", "form", read, spaces="fused_moe", letters="")
