"""PyTorch's own kernels, `at::native::…`. Source: aten/src/ATen/native/cuda.

Pointwise kernels are one template around an operator: the operator is the innermost `…_kernel_cuda`, `…_kernel_impl` or
functor, the type that of the innermost value lambda (the outer `lambda(int)` is an index). `reduce_kernel` names its
operation in `ReduceOp<T,Op<…>>`. `OpaqueType<2>` shows bytes, not a type. All others are in the list of functions.
"""

import re
from functools import lru_cache

from inferometer.names.dtypes import FLOATS, TYPES, dtype_of, first_dtype
from inferometer.names.function_lists import known_spaces
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName, last_word, split_template
from inferometer.names.short_names import short

_POINTWISE = {  # where the functor stands among the arguments
    "vectorized_elementwise_kernel": 1,
    "unrolled_elementwise_kernel": 0,
    "unrolled_elementwise_kernel_for_multi_outputs": 1,
    "elementwise_kernel": 2,
    "elementwise_kernel_manual_unroll": 2,
    "legacy_elementwise_kernel": 2,
    "vectorized_templated_elementwise_kernel": 1,
    "elementwise_kernel_with_index": 1,
    "elementwise_kernel_strided": 2,
    "modern_elementwise_kernel": 0,
    "kernelPointwiseApply1": 0,
    "kernelPointwiseApply2": 0,
}
_WORD = re.compile(r"\w+")
_OPERATOR = re.compile(r"CUDAFunctor|_kernel|Functor|[a-z]Kernel|KernelImpl|_cuda(?:_out)?$|_impl$|^launch_")
_WRAPPERS = re.compile(
    r"gpu_kernel\w*|(?:opmath_)?(?:symmetric_)?gpu_kernel_with_scalars\w*|\w*jitted_\w*|BinaryFunctor|[AB]UnaryFunctor|gpu_index_kernel|"
    r"operator|func_wrapper_t|unary_kernel|ReduceOp|opmath_\w*"
)
_TRIM = re.compile(
    r"^(?:CUDAFunctor(?:OnSelf|OnOther)?_|launch_|bitwise_(?=and|or|xor|not))|"
    r"(?:_?(?:cuda|CUDA)?_?[Kk]ernel(?:_?(?:cuda|impl|Impl|scalar|scalars|v|vec))*\w*|Functor\w*|_cuda_out|_cuda|_impl)$"
)
_FUNCTORS = (  # which a cut word may be the beginning of: those that are no arithmetic
    *("direct_copy_kernel_cuda", "bfloat16_copy_kernel_cuda", "float16_copy_kernel_cuda", "float8_copy_kernel_cuda"),
    *("bfloat16tofloat32_copy_kernel_cuda", "float16tofloat32_copy_kernel_cuda", "fill_kernel_cuda", "FillFunctor"),
    *(
        "copy_device_to_device",
        "GeluCUDAKernelImpl",
        "GeluBackwardCUDAKernelImpl",
        "silu_kernel",
        "sigmoid_kernel_cuda",
    ),
    *("silu_backward_kernel", "threshold_kernel_impl", "tanh_kernel_cuda", "leaky_relu_kernel", "hardswish_kernel"),
)
_SHORTEST_CUT = 6
_LONGEST_CUT = 1_024
_CUT_WORD = re.compile(r"[<:,]([A-Za-z]\w*)$")
_CUT_MANGLED = re.compile(r"_Z.*(?<!\d)\d{1,2}([A-Za-z]\w*)$")  # after its length
_LAMBDA = re.compile(r"\{lambda\(([^{}]*?)\)#\d+\}")
_ACTIVATIONS = {
    "threshold": "relu",
    "relu": "relu",
    "silu": "silu",
    "gelu": "gelu",
    "geluscalar": "gelu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "leaky_relu": "leaky_relu",
    "elu": "elu",
    "hardswish": "hardswish",
    "hardsigmoid": "hardsigmoid",
    "softplus": "softplus",
    "mish": "mish",
    "log_sigmoid": "log_sigmoid",
    "hardtanh": "hardtanh",
    "glu": "glu",
    "hardshrink": "hardshrink",
    "softshrink": "softshrink",
    "shrink": "shrink",
    "prelu": "prelu",
    "rrelu": "rrelu",
    "celu": "celu",
    "selu": "selu",
    "swish": "silu",
    "logit": "logit",
    "relu6": "relu6",
}
_COPIES = frozenset({"direct_copy", "copy", "fill", "TensorFillOp", "conj", "flip", "float8_copy", "eye", "neg_conj"})
_FLOAT_COPY = re.compile(r"(bfloat16|float16|half|float8_?\w*?|float8|fp8)_copy")
_TO_COPY = re.compile(r"(bfloat16|float16|half|float32|float)to(bfloat16|float16|half|float32|float)(_copy)?")
_GATHERS = frozenset(
    {
        "index",
        "index_put",
        "index_fill",
        "index_copy",
        "take",
        "put",
        "masked_scatter",
        "masked_select",
        "index_put_deterministic",
        "gather",
        "scatter",
        "scatter_add",
        "flip",
    }
)
_RANDOM = re.compile(
    r"normal|uniform|bernoulli|exponential|random|dropout|philox|cauchy|geometric|log_normal|poisson|multinomial"
)
_REDUCTIONS = (
    ("ArgMax", "argmax"),
    ("ArgMin", "argmin"),
    ("Mean", "mean"),
    ("MaxNan", "max"),
    ("MinNan", "min"),
    ("NormTwo", "norm2"),
    ("NormOne", "norm1"),
    ("NormZero", "norm0"),
    ("Norm", "norm"),
    ("Welford", "var"),
    ("AbsMax", "absmax"),
    ("AbsMin", "absmin"),
    ("MaxOps", "max"),
    ("MinOps", "min"),
    ("and_kernel", "all"),
    ("or_kernel", "any"),
    ("nansum", "sum"),
    ("sum_functor", "sum"),
    ("prod_functor", "prod"),
    ("NanSum", "sum"),
    ("sum_kernel", "sum"),
    ("prod_kernel", "prod"),
    ("xor_sum", "xor"),
    ("max_values", "max"),
    ("min_values", "min"),
    ("max_kernel", "max"),
    ("min_kernel", "min"),
    ("nonzero", "count nonzero"),
)


def read(name: ParsedName) -> KernelName | None:
    """A pointwise kernel, a reduction, or a foreach kernel of PyTorch."""
    function = name.function
    in_torch = name.namespaces[:2] == ("at", "native")
    if not in_torch and (name.namespaces or not (name.text.startswith("@anon") or _is_base_name(name))):
        return None
    if function in _POINTWISE:
        return _read_pointwise(name)
    if function == "reduce_kernel":
        return _read_reduction(name)
    if function == "index_elementwise_kernel":
        return _read_index(name)
    if function == "multi_tensor_apply_kernel" and in_torch:
        return _read_foreach(name)
    if function.startswith("distribution_"):
        dtype = first_dtype(name.arguments, FLOATS)
        found = _RANDOM.search(name.text)
        return _answer("random", dtype, short("random", found[0] if found else "", dtype))
    return None


def _is_base_name(name: ParsedName) -> bool:
    """Whether a tool that leaves out namespaces (`nsys stats` with base names, some of ROCm's) wrote it."""
    return name.function in _POINTWISE or (name.function == "reduce_kernel" and "ReduceOp<" in name.text)


def _read_pointwise(name: ParsedName) -> KernelName:
    at = _POINTWISE[name.function]
    functor = _inner(name.arguments[at] if len(name.arguments) > at else ",".join(name.arguments))
    operator = _completed(functor if len(name.arguments) > at else name.text) or _operator(functor)
    vector = name.arguments[0] if name.arguments and name.function.startswith("vectorized") else ""
    width = int(vector) if vector.isdecimal() and len(vector) < 4 else None
    library = _library(functor)
    dtype = _value_type(functor)
    casts = "LoadWithCast" in name.text or "::gpu_kernel_impl<" in name.text
    family, words, dtype = _meaning(operator, dtype, casts=casts)
    if library == "fbgemm" and family != "copy":
        family = find_family(operator) or family
    return KernelName(
        library=library,
        family=family,
        dtype=dtype,
        vector=width,
        short_name=short(words, dtype, f"v{width}" if width else ""),
        evidence=Evidence("PyTorch pointwise operator", "D"),
    )


def _inner(functor: str) -> str:
    """The operator inside `gpu_kernel_impl<F>::{lambda(int)#1}`, whose lambda runs over indices."""
    if "gpu_kernel_impl" not in functor:
        return functor
    begin = functor.find("<", functor.find("gpu_kernel_impl"))
    end = functor.rfind(">::{lambda(")
    return functor[begin + 1 : end] if 0 < begin < end else functor


@lru_cache(maxsize=4_096)
def _operator(functor: str) -> str:
    """The innermost operator's name, without the words that all such names share."""
    for whole in reversed(_WORD.findall(functor)):
        if _OPERATOR.search(whole) and not _WRAPPERS.fullmatch(whole):
            return _trimmed(whole)
    head = functor.split("::{lambda", 1)[0]
    return last_word(split_template(head)[0]).strip("_")


def _completed(functor: str) -> str | None:
    """The operator that a functor's cut name can only be the beginning of; None for whole names, and in doubt."""
    if "::copy_device_to_device" in functor:
        return "copy"
    match = _CUT_MANGLED.match(functor[:_LONGEST_CUT]) or _CUT_WORD.search(functor[-60:])
    if match is None or len(match[1]) < _SHORTEST_CUT:
        return None
    found = {_trimmed(whole) for whole in _FUNCTORS if whole.startswith(match[1]) and whole != match[1]}
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=4_096)
def _trimmed(whole: str) -> str:
    word = _TRIM.sub("", _TRIM.sub("", whole))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower().strip("_") or whole.lower()


def _meaning(operator: str, dtype: str | None, *, casts: bool) -> tuple[Family, str, str | None]:
    typed = _FLOAT_COPY.fullmatch(operator)
    if typed:
        to = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}.get(typed[1], "fp8")
        return "copy", "cast", f"{dtype}>{to}" if dtype and dtype != to else dtype
    cast = _TO_COPY.fullmatch(operator)
    if cast:
        return "copy", "cast", f"{TYPES[cast[1]]}>{TYPES[cast[2]]}" if cast[3] else None  # the name may be cut
    if operator == "copy" or operator.startswith("direct_copy"):  # whose end may be cut off
        return "copy", "copy with cast" if casts else "copy", dtype
    backward = operator.endswith("_backward")
    plain = operator.removesuffix("_backward")
    if plain in _ACTIVATIONS:
        return "activation", f"{_ACTIVATIONS[plain]}{' backward' if backward else ''}", dtype
    words = operator.replace("_", " ")
    if operator in _COPIES:
        return "copy", words, dtype
    if operator in _GATHERS:
        return "gather_scatter", operator, dtype
    if "masked_softmax" in operator:
        return "softmax", words, dtype
    if operator in ("addr", "addmv"):
        return "elementwise", words, dtype
    if "quantize" in operator or "float_to_" in operator:
        return "quantize", words, None
    if _RANDOM.match(operator):
        return "random", words, dtype
    renamed = {
        "pow tensor scalar": "pow",
        "pow tensor tensor": "pow",
        "clamp scalar": "clamp",
        "compare scalar": "compare",
    }
    words = re.sub(r"^div floor.*", "floor_div", words).replace("div true", "div").replace("masked fill", "masked_fill")
    return "elementwise", renamed.get(words, words), dtype


def _library(functor: str) -> Library:
    """Other libraries use PyTorch's template too: theirs is the operator that stands first."""
    space = functor.split("::", 1)[0]
    return known_spaces().get(space, "pytorch") if "::" in functor and space != "at" else "pytorch"


@lru_cache(maxsize=4_096)
def _value_type(functor: str) -> str | None:
    """The first argument of the innermost lambda over values; else the functor's own first type."""
    for arguments in reversed(_LAMBDA.findall(functor)):
        types = [dtype_of(argument) for argument in arguments.split(",")]
        values = [dtype for dtype in types if dtype is not None]
        if values:
            return next((dtype for dtype in values if dtype != "bool"), values[0])
    if "OpaqueType" in functor:
        return None
    for piece in functor.split("<")[1:]:
        dtype = dtype_of(piece.split(",", 1)[0].rstrip(">"))
        if dtype is not None:
            return dtype
    return None


def _read_reduction(name: ParsedName) -> KernelName:
    text = name.arguments[2] if len(name.arguments) > 2 else name.text
    arguments = split_template(text)[1]
    dtype = first_dtype(arguments[:1])
    operation = arguments[1] if len(arguments) > 1 else text
    words = next((word for mark, word in _REDUCTIONS if mark in operation), "")
    prefix = "" if words in ("argmax", "argmin") else "reduce"
    return _answer("reduction", dtype, short(prefix, words, dtype))


def _read_index(name: ParsedName) -> KernelName:
    operator = next(
        (
            word
            for word in ("index_put", "index_fill", "index_copy", "take", "put_", "index", "flip", "roll")
            if f"{word.strip('_')}_kernel" in name.text or f"cuda_{word}" in name.text
        ),
        "index",
    )
    size = re.search(r"OpaqueType<(\d+)>", name.text)
    dtype = None if size else _value_type_of_index(name.text)
    return _answer("gather_scatter", dtype, short(operator.strip("_"), f"{size[1]}-byte" if size else dtype))


def _value_type_of_index(text: str) -> str | None:
    found = re.search(r"index_(?:put_)?kernel_impl<([^<>]+)>", text)
    return dtype_of(found[1]) if found else None


def _read_foreach(name: ParsedName) -> KernelName:
    functor = name.arguments[1] if len(name.arguments) > 1 else name.text
    head, arguments = split_template(functor)
    kind = last_word(head)
    dtype = first_dtype(arguments) or first_dtype(name.arguments[1:])
    if re.search(r"Adam|Sgd|SGD|Adagrad|Lamb|Optimize|RMSprop", kind) or "::FusedOptimize" in name.text:
        words = re.sub(r"MathFunctor|Functor", "", kind).lower()
        return _answer("optimizer", dtype, short("foreach", words.replace("fused", "fused "), dtype))
    inner = re.search(
        r"std::(plus|minus|multiplies|divides|sqrt|exp|maximum)|at::native::(?:@anon::)?(\w+?)<",
        ",".join(name.arguments[2:]),
    )
    operation = (
        {"plus": "add", "minus": "sub", "multiplies": "mul", "divides": "div"}.get(
            inner[1] or inner[2], inner[1] or inner[2]
        )
        if inner
        else ""
    )
    if "Norm" in kind or "MaxFunctor" in kind:
        return _answer("reduction", dtype, short("foreach", "norm" if "Norm" in kind else "max", dtype))
    if "Copy" in kind:
        return _answer("copy", dtype, short("foreach copy", dtype))
    words = operation or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removesuffix("Functor")).lower()
    return _answer("elementwise", dtype, short("foreach", words, dtype))


def _answer(family: Family, dtype: str | None, words: str) -> KernelName:
    return KernelName(
        library="pytorch",
        family=family,
        dtype=dtype,
        short_name=words,
        evidence=Evidence("PyTorch template", "D"),
    )


GRAMMAR = Grammar("pytorch", "form", read, spaces="at")
