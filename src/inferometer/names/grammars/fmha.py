"""Memory-efficient attention of PyTorch and xformers: `fmha_cutlassF_bf16_aligned_64x128_rf_sm80`.

F is forward, B backward; types, alignment, tile, where the result is kept (`rf`, `gmem`) or the largest head size
(`k64`), architecture. Source: aten/src/ATen/native/transformers/cuda/mem_eff_attention.
"""

from inferometer.names.dtypes import TYPES, dtype_of
from inferometer.names.kernel_name import Evidence, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName, arguments_of, numbers
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_ARCH = late_re(r"Sm(\d{2,3})")
_NAME = late_re(
    r"fmha_cutlass(?P<way>[FB])_(?P<type>bf16|f16|f32)_(?:not)?aligned_(?P<m>\d+)x(?P<n>\d+)_(?P<rest>\w*?)_?sm(?P<arch>\d+)"
)


def read(name: ParsedName) -> KernelName | None:
    """A kernel of memory-efficient attention, named, or as the template `AttentionKernel<…>`."""
    if name.function.startswith("attention_kernel") and "AttentionKernel<" in name.text:
        return _read_template(name)
    match = _NAME.fullmatch(name.function) if name.function.startswith("fmha_cutlass") else None
    if match is None:
        return None
    dtype, m, n, arch = TYPES[match["type"]], int(match["m"][:6]), int(match["n"][:6]), f"sm{match['arch']}"
    way = "fwd" if match["way"] == "F" else "bwd"
    return _answer(dtype, m, n, arch, short("mem-efficient attention", way, arch, dtype, size(m, n)))


def _read_template(name: ParsedName) -> KernelName:
    """`AttentionKernel<T, Arch, aligned, M, N, largest head, …>`, of PyTorch unless in another's namespace."""
    arguments = (*arguments_of("AttentionKernel", name.text), "", "", "", "", "")
    found = _ARCH.search(arguments[1])
    dtype, arch = dtype_of(arguments[0]), f"sm{found[1]}" if found else None
    m, n = numbers(arguments[3:5])
    is_torch = name.namespaces[:1] in ((), ("PyTorchMemEffAttention",))
    words = short("mem-efficient attention", arch, dtype, size(m, n))
    return _answer(dtype, m, n, arch, words, library="pytorch" if is_torch else "other")


def _answer(
    dtype: str | None, m: int | None, n: int | None, arch: str | None, words: str, *, library: Library = "pytorch"
) -> KernelName:
    return KernelName(
        library=library,
        family="attention",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        arch=arch,
        short_name=words,
        evidence=Evidence("memory-efficient attention", "D"),
    )


GRAMMAR = Grammar("fmha", "form", read, spaces="PyTorchMemEffAttention|onnxruntime", letters="fa")
