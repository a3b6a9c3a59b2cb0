"""cuDNN: generated attention, convolutions by FFT, Winograd and implicit products, its namespaces.

Undocumented: read from recorded names. `f16` in a generated name also stands for bf16: the type stays empty. Names that
the generator of cuBLAS made (`…_cudnn`, `ampere_scudnn_…`) are read in `cublas.py`.
"""

import re

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_SDPA = late_re(r"_sdpa_(?:sm(?P<arch>\d+)_)?(?P<rest>\w*)")
_TILE = late_re(r"knob_\w{1,40}?_(\d+)x(\d+)x(\d+)")
_SPACES = late_re(r"(?:(?:cask|cask_plugin|xmma)_(?:_\dx_)?)?cudnn(?:_\w+)?|DSE")
_CONV = late_re(
    r"fft[12]d_[rc]2[rc]|flip_filter|winograd|convolve|conv2d_|(?:dgrad|wgrad)_?(?:2d_|alg|engine)|computeOffsets|"
    r"im2col4d|precomputed_convolve|compute_gemm_pointers|dgrad|wgrad|fprop|[Cc]onv(?!ert)"
)
_BARE = late_re(
    r"fft[12]d_[rc]2[rc]_\w+|implicit_convolve_sgemm|explicit_convolve_sgemm|precomputed_convolve_sgemm|"
    r"conv2d_grouped_direct_kernel|conv2d_c1_k1_nhwc_kernel\w*|dgrad_engine|dgrad_alg1_engine|wgrad_alg[01]_engine\w*|"
    r"wgrad2d_c1_k1_nhwc_kernel\w*|dgrad2d_c1_k1_nhwc_kernel\w*|convolve_common_engine_float_NHWC|"
    r"computeOffsetsKernel|computeWgradSplitKOffsetsKernel|computeBOffsetsKernel|generateWinogradTilesKernel|"
    r"winograd(?:Forward|Wgrad)\w*|flip_filter|cudnn_\w*(?:conv|cudnn)\w*"
)
_ATTENTION = late_re(r"dot_do_o|fmha|sdpa|qkv|(?:^|_)dq(?:_|$)|contract_dbias|packed_dbias|attn|Attn")
_OPS: tuple[tuple[str, Family], ...] = (
    ("nchwToNhwc", "copy"), ("nhwcToNchw", "copy"), ("ToFolded", "copy"), ("foldedN", "copy"),
    ("Transpose", "copy"), ("nchwAddPadding", "copy"),
    ("convertTensor", "copy"), ("setTensor", "copy"), ("scaleTensor", "elementwise"), ("op_tensor", "elementwise"),
    ("op_generic_tensor", "elementwise"), ("add_tensor", "elementwise"), ("pooling_", "other"), ("max_pool", "other"),
    ("bn_", "norm"), ("batchnorm", "norm"), ("softmax_", "softmax"), ("LSTM_", "other"), ("GRU_", "other"),
    ("RNN_", "other"), ("elementWiseRNN", "other"), ("activation_", "activation"), ("tensorTransform", "copy"),
)  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A name that cuDNN generated, or one of its functions."""
    function = name.function
    if function.startswith("cudnn_generated_"):
        return _read_generated(function)
    in_space = bool(name.namespaces) and bool(_SPACES.fullmatch(name.namespaces[0]))
    if not in_space and not _BARE.fullmatch(function):
        return None
    family, dtype = _family(name), first_dtype(name.arguments, FLOATS)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", function.removeprefix("cudnn_")).lower()
    return KernelName(
        library="cudnn",
        family=family,
        dtype=dtype,
        short_name=short("cudnn", words, dtype),
        evidence=Evidence("cuDNN function", "I"),
    )


def _family(name: ParsedName) -> Family:
    if _ATTENTION.search(name.function):
        return "attention_combine" if "reduce_head" in name.function else "attention"
    if (
        _CONV.search(name.function)
        or re.search(r"[dfw](?:grad|prop)", name.path)
        or "winograd" in name.path
        or "::cnn::" in f"{name.path}::"
        or name.namespaces[:1] == ("DSE",)  # convolutions by FFT
    ):
        return "conv"
    for word, family in _OPS:
        if word in name.function:
            return family
    return find_family(name.function) or "other"


def _read_generated(function: str) -> KernelName:
    match = _SDPA.search(function)
    if match is None:
        family = find_family(function.removeprefix("cudnn_generated_")) or "other"
        return KernelName(
            library="cudnn",
            family=family,
            short_name=short("cudnn", function.removeprefix("cudnn_generated_")[:50]),
            evidence=Evidence("words of a generated cuDNN name", "I"),
        )
    arch = f"sm{match['arch']}" if match["arch"] else None
    tile = _TILE.search(match["rest"])
    m, n, k = (int(number[:6]) for number in tile.groups()) if tile else (None, None, None)
    direction = "bwd" if "bprop" in match["rest"] else "fwd"
    return KernelName(
        library="cudnn",
        family="attention",
        tile_m=m,
        tile_n=n,
        tile_k=k,
        arch=arch,
        head_dim=k,
        short_name=short("cudnn sdpa", direction, arch, size(m, n, k)),
        evidence=Evidence("generated cuDNN attention", "I"),
    )


GRAMMAR = Grammar("cudnn", "namespace", read, spaces=".*cudnn.*|DSE", letters="cdefgipw")
