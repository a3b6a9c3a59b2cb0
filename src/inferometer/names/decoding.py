"""From a name to its facts: canonical form, parts, and the first naming family that knows it.

Pure and memoised by the raw name. A million launches have a few hundred names: decode the names, not the launches.
"""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from inferometer.names.canonical import canonical_parts, is_too_long
from inferometer.names.demangle import strip_suffixes
from inferometer.names.kernel_name import KernelName
from inferometer.names.reading import Grammar, ParsedName, parse
from inferometer.names.short_names import short
from inferometer.patterns import late_re
from inferometer.registry import collect

if TYPE_CHECKING:
    import polars as pl

_REMEMBERED = 65_536
_CUT = ("…", "...", "....kd")
_LIMITS = frozenset({63, 127, 255, 511, 1023})  # buffers of tools, less the zero at their end
_CUT_INSIDE = late_re(r"(?:\.\.\.|…)(?=[>)])")
_SIGNATURE = late_re(r"_0[dce]*1[dce]*(?:[1-9]0?[dce]*)*$|_0[dce]+$")
_ORDER = ("form", "namespace", "list", "words")


@lru_cache(maxsize=_REMEMBERED)
def decode(name: str) -> KernelName:
    """What the kernel's name says, mangled or not; fields that it doesn't show are None.

    Never fails: an unknown name is of library and family `other`, with its own beginning as short name. All spellings
    of one name (`canonical_name`) have the same facts.
    """
    parsed = read_parts(name)
    if is_too_long(parsed.text):
        return KernelName(short_name=short(parsed.text[:200]))
    space = parsed.namespaces[0] if parsed.namespaces else ""
    for grammar in _route(space, "" if space else parsed.function[:1]):
        known = grammar.read(parsed)
        if known is not None:
            return known
    return KernelName(short_name=short(parsed.function[:200].strip() or parsed.text[:200]))


def read_parts(name: str) -> ParsedName:
    """The name in its parts, whichever tool wrote it, without the dots in the place of what a table cut off.

    Nor with the arguments that Triton 2 wrote after a kernel's name: `_0d1d2de`, their numbers and what is known of
    them.
    """
    is_bare = "(" not in name and not name.lstrip().startswith("_Z")
    is_amd = ".kd" in name or "[clone " in name
    is_cut = _is_cut(name)
    if name.endswith(_CUT):
        name = strip_suffixes(name).rstrip(" .…")
    elif "..." in name or "…" in name:
        name = _CUT_INSIDE.sub("", name)
    if is_bare and (signature := _SIGNATURE.search(name)) is not None and re.search("[dce]", signature[0]):
        name = name[: signature.start()]
    return parse(canonical_parts(name), is_bare=is_bare, is_amd=is_amd, is_cut=is_cut)


def _is_cut(name: str) -> bool:
    """Whether a tool or table cut the name before its function's own name had ended."""
    if not name.endswith(_CUT) and len(name) not in _LIMITS:
        return False
    return not any(bracket in name.replace("(anonymous namespace)", "").replace("<unnamed>", "") for bracket in "<(")


def decode_frame(names: "pl.Series") -> "pl.DataFrame":
    """The facts of each distinct name as columns, with the raw name in `kernel`: to be joined to launches or totals.

    Null names are left out. Takes as long as the distinct names need, however many rows there are.
    """
    import polars as pl

    distinct = names.drop_nulls().unique(maintain_order=True).cast(pl.String)
    decoded = [decode(name) for name in distinct]
    columns = {
        field: pl.Series(field, [getattr(known, field) for known in decoded], dtype, strict=False)
        for field, dtype in _columns().items()
    }
    columns["split_k"] = pl.Series(
        "split_k", [None if k.split_k is None else str(k.split_k) for k in decoded], pl.String
    )
    return pl.DataFrame([distinct.alias("kernel"), *columns.values()])


def _columns() -> "dict[str, pl.DataType]":
    import polars as pl

    text = ("library", "family", "dtype", "arch", "short_name", "cluster", "layout", "instruction", "coop", "role")
    whole = ("tile_m", "tile_n", "tile_k", "stages", "vector", "head_dim", "layer")
    return {**dict.fromkeys(text, pl.String()), **dict.fromkeys(whole, pl.Int64()), "split_k": pl.String()}


@lru_cache(maxsize=4_096)
def _route(space: str, letter: str) -> tuple[Grammar, ...]:
    """The grammars that may know such a name, in the order of asking."""
    return tuple(grammar for grammar in _grammars() if grammar.may_read(space, letter))


@cache
def _grammars() -> tuple[Grammar, ...]:
    found: dict[str, Grammar] = collect("inferometer.names.grammars", "GRAMMAR", group="inferometer.names")
    return tuple(sorted(found.values(), key=lambda grammar: (_ORDER.index(grammar.reads), grammar.name)))
