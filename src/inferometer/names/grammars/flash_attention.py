"""FlashAttention 2 and 3, read as their public sources declare the templates.

FlashAttention 3 wraps `FlashAttnFwdSm90<Mainloop,Epilogue,Scheduler>` in `cutlass::device_kernel`. Its mainloop's flags
are the run of bools after the architecture; their meaning is known for twelve only (older releases have fewer), else
just the first two are read. The causal flag isn't the phase: decode sets it too.
"""

import re
from itertools import takewhile

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.grammars.cutlass import unwrap
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, last_word, split_template, tuple_numbers
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_FLAGS_3 = (
    *("causal", "local", "softcap", "varlen", "paged", "append", "qv", "", "", "packgqa", "split", ""),
)  # the unnamed ones show how it computes, not what
_FLAGS_3_AMPERE = ("causal", "local", "softcap", "varlen", "paged", "append", "packgqa", "split")
_FLAGS_2 = {
    7: ("dropout", "causal", "local", "alibi", "", "", ""),
    8: ("dropout", "causal", "local", "alibi", "", "", "softcap", ""),
}
_FLAGS_2_SPLIT = {
    7: ("causal", "local", "alibi", "", "", "split", "append"),
    8: ("causal", "local", "alibi", "", "", "softcap", "split", "append"),
}
_BACKWARD_2 = {
    "flash_bwd_dot_do_o_kernel": "bwd dot(dO, O)",
    "flash_bwd_clear_dkvaccum_kernel": "bwd clear",
    "flash_bwd_convert_dq_kernel": "bwd convert dQ",
    "flash_bwd_convert_dkv_kernel": "bwd convert dKV",
}
_SM = late_re(r"Sm(\d+)")


def read(name: ParsedName) -> KernelName | None:
    """A kernel in the namespace `flash` or `pytorch_flash`, or launched through CUTLASS."""
    if name.function.startswith("device_kernel") and name.namespaces[:1] == ("cutlass",):
        inner = unwrap(name)
        head, arguments = split_template(inner)
        if head.startswith("flash::FlashAttn"):
            return _read_3(last_word(head), arguments)
        return _read_cut(head)
    if name.function == "prepare_varlen_num_blocks_kernel":
        return _read_metadata(name)
    if name.function.startswith("FlashAttn") and name.namespaces[:1] == ("flash",):
        return _read_3(name.function, name.arguments)
    if name.function.startswith(("flash_fwd_", "flash_bwd_")) and "mla" not in name.function:
        return _read_2(name) if not name.is_bare or name.function.startswith("flash_fwd_splitkv_") else None
    return None


def _read_cut(head: str) -> KernelName | None:
    """`flash::FlashA`, cut before it says forward or backward: of all that begin so, only a combine is no attention."""
    if not ("flash::FlashAttn".startswith(head) and head.startswith("flash::F")):
        return None
    return KernelName(
        library="flash_attn3",
        family="attention",
        short_name=short("flash_attn3"),
        evidence=Evidence("FlashAttention 3, cut", "I"),
    )


def _read_3(kind: str, arguments: tuple[str, ...]) -> KernelName:
    if "Comb" in kind:  # whose end may be cut off
        return _read_combine(arguments)
    is_forward = "Fwd" in kind
    mainloop = split_template(arguments[0])[1] if arguments else ()
    found = _SM.search(mainloop[6] if len(mainloop) > 6 else "") or _SM.search(kind)
    arch = f"sm{found[1]}" if found else None
    dtype = first_dtype(mainloop, FLOATS)
    if not is_forward or len(mainloop) < 4:
        step = " ".join(re.findall(r"[A-Z][a-z]+", kind.removeprefix("FlashAttn"))).lower().replace(" sm", "")
        return _answer(
            "flash_attn3", "attention", dtype or first_dtype(arguments, FLOATS), arch, short("flash_attn", step, arch)
        )
    is_ampere = "FwdSm80" in kind  # warps, stages, whether Q stays in registers; no cluster
    stage = mainloop[1 if is_ampere else 0]
    stages = int(stage) if re.fullmatch(r"\d{1,3}", stage) else None
    tile = tuple_numbers(mainloop[3 if is_ampere else 2])
    m, n, depth = tile[:3] if len(tile) >= 3 else (None, None, None)
    bools = _bools_after_arch(mainloop)
    known = _FLAGS_3_AMPERE if is_ampere else _FLAGS_3
    names = known if len(bools) == len(known) else known[:2]
    flags = tuple(flag for flag, is_set in zip(names, bools, strict=False) if is_set and flag)
    head_dim = f"d{depth}" if depth else ""
    return KernelName(
        library="flash_attn3",
        family="attention",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=depth,
        stages=stages,
        split_k="yes" if "split" in flags else None,
        arch=arch,
        cluster=None if is_ampere else "x".join(map(str, tuple_numbers(mainloop[1]))) or None,
        head_dim=depth,
        flags=flags,
        short_name=short("flash_attn fwd", arch, dtype, head_dim, *flags),
        evidence=Evidence("FlashAttention 3 template", "D"),
    )


def _bools_after_arch(mainloop: tuple[str, ...]) -> list[bool]:
    at = next((i for i, argument in enumerate(mainloop) if "arch::Sm" in argument), len(mainloop))
    bools = []
    for argument in mainloop[at + 1 :]:
        if argument not in ("0", "1"):
            break
        bools.append(argument == "1")
    return bools[: len(_FLAGS_3)] if len(bools) == len(_FLAGS_3) + 1 and len(mainloop) > at + 13 else bools


def _read_combine(arguments: tuple[str, ...]) -> KernelName:
    tile = tuple_numbers(arguments[0]) if arguments else []
    found = _SM.search(arguments[-1]) if arguments else None
    arch = f"sm{found[1]}" if found else None
    dtype = first_dtype(arguments, FLOATS)
    depth = tile[1] if len(tile) > 1 else None
    return KernelName(
        library="flash_attn3",
        family="attention_combine",
        dtype=dtype,
        tile_m=tile[0] if tile else None,
        arch=arch,
        head_dim=depth,
        short_name=short("flash_attn combine", arch, dtype, f"d{depth}" if depth else ""),
        evidence=Evidence("FlashAttention 3 template", "D"),
    )


def _read_metadata(name: ParsedName) -> KernelName:
    warps = name.arguments[0] if name.arguments else ""
    words = f"{warps} warps" if warps.isdecimal() and len(warps) < 4 else ""
    is_sorted = name.arguments[1:2] == ("1",)
    return _answer(
        *("flash_attn3", "attention_metadata", None, None),
        short("flash_attn varlen metadata", words, "sorted" if is_sorted else ""),
        flags=("sorted",) if is_sorted else (),
    )


def _read_2(name: ParsedName) -> KernelName:
    function = name.function
    traits = split_template(next((text for text in name.arguments if "<" in text), ""))[1]
    numbers = [int(text) if re.fullmatch(r"\d{1,4}", text) else None for text in traits[:3]]
    head_dim, m, n = numbers if len(numbers) == 3 else (None, None, None)
    dtype = first_dtype(traits, FLOATS)
    bools = tuple(argument == "1" for argument in takewhile(("0", "1").__contains__, name.arguments[1:]))
    if "combine" in function or function in _BACKWARD_2:
        words = "split-kv combine" if "combine" in function else _BACKWARD_2[function]
        family: Family = "attention_combine" if "combine" in function else "attention"
        head = f"d{head_dim}" if head_dim else ""
        return _answer("flash_attn2", family, dtype, None, short("flash_attn2", words, dtype, head), head_dim=head_dim)
    is_split = "splitkv" in function
    names = _FLAGS_2_SPLIT.get(min(len(bools), 8), ()) if is_split else _FLAGS_2.get(len(bools), ())
    if "_bwd_" in function:
        names = ("dropout", "causal", "local", "alibi")
    flags = tuple(flag for flag, is_set in zip(names, bools, strict=False) if is_set and flag)
    direction = "bwd" if "_bwd_" in function else "fwd sparse" if "sparse" in function else "fwd"
    shown = [flag for flag in flags if flag != "split"]
    return KernelName(
        library="flash_attn2",
        family="attention",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        split_k="yes" if "split" in flags else None,
        head_dim=head_dim,
        flags=flags,
        short_name=short(
            *("flash_attn2", direction, "split-kv" if is_split else "", dtype, f"d{head_dim}" if head_dim else ""),
            *(size(m, n), *shown),
        ),
        evidence=Evidence("FlashAttention 2 template", "D"),
    )


def _answer(library: str, family: str, dtype: str | None, arch: str | None, words: str, **more: object) -> KernelName:
    return KernelName(
        library=library,  # type: ignore[arg-type]
        family=family,  # type: ignore[arg-type]
        dtype=dtype,
        arch=arch,
        short_name=words,
        evidence=Evidence("FlashAttention function", "D"),
        **more,  # type: ignore[arg-type]
    )


GRAMMAR = Grammar("flash_attention", "form", read, spaces="flash|pytorch_flash|onnxruntime|cutlass", letters="fp")
