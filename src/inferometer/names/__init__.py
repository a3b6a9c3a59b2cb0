"""Kernel names: what a mangled or generated name says.

from inferometer.names import decode
decode("nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT").short_name

`names/canonical.py` makes one text of all spellings of a kernel's name: demangled, without return types and
parameters, with one way to write casts, lambdas and anonymous namespaces. `reading.py` takes it apart. Each naming
family is a file of `grammars/` that declares a `GRAMMAR`; `decoding.py` asks them in the order in which their answers
can be trusted: exact forms, namespaces, lists of known functions (`lists/*.json`, each with its source), words. What a
name doesn't show is null, and `evidence` says which rule answered and how well it is founded. Names are decoded, never
launches: millions of these have a few hundred names.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.names.canonical import canonical_name as canonical_name
    from inferometer.names.decoding import decode as decode
    from inferometer.names.kernel_name import KernelName as KernelName

_WHERE = {"decode": "decoding", "canonical_name": "canonical", "KernelName": "kernel_name"}
__all__ = ["KernelName", "canonical_name", "decode"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
