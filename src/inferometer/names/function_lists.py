"""Lists of functions known by their names, library by library: the files `lists/*.json`, and look-ups over them.

Each list says where its names come from. `spaces` are the namespaces of the library, `inside` its functions there.
`bare` are identifiers with nothing around them. `templates` count without a namespace, but only with template arguments
or parameters, as C++ has them; a bare identifier of that name may be anybody's. `prefixes` begin generated names.
"""

from functools import cache

import msgspec

from inferometer.names.kernel_name import Family, Library
from inferometer.patterns import late_re

Known = tuple[Library, Family]

_DISTINCTIVE = late_re(r"\w*[a-z]{2}[A-Z][a-z]+[A-Z]|cunn_|vectorized_|[a-z0-9]+(?:_[a-z0-9]+){4}")

_SHORTEST_CUT = 8  # a beginning that is shorter fits too much


class FunctionList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of `lists/`: families and their functions, by how these are written."""

    library: Library
    source: str
    spaces: tuple[str, ...] = ()
    bare: dict[Family, tuple[str, ...]] = {}
    templates: dict[Family, tuple[str, ...]] = {}
    inside: dict[Family, tuple[str, ...]] = {}
    prefixes: dict[Family, tuple[str, ...]] = {}


@cache
def lists() -> tuple[FunctionList, ...]:
    """All lists, by file name; where two know a function, the first counts."""
    from importlib.resources import files

    folder = files("inferometer.names") / "lists"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    return tuple(msgspec.json.decode(path.read_bytes(), type=FunctionList) for path in paths)


@cache
def known_spaces() -> dict[str, Library]:
    """The library of each namespace that is one library's own."""
    return {space: item.library for item in lists() for space in item.spaces}


@cache
def bare_functions() -> dict[str, Known]:
    """Identifiers that stand alone."""
    return _index("bare")


@cache
def template_functions() -> dict[str, Known]:
    """C++ functions outside all namespaces."""
    return _index("templates")


@cache
def inside_functions(library: Library) -> dict[str, Known]:
    """Functions in the library's own namespaces."""
    return _index("inside", library)


def completed(library: Library, cut: str) -> Known | None:
    """What every function of the library that begins so is; None where they differ, or too little is left.

    For names that a table cut: `at::native::GammaBetaBac…` can only be PyTorch's `GammaBetaBackwardCUDAKernel…`.
    """
    if len(cut) < _SHORTEST_CUT:
        return None
    found = {known for function, known in inside_functions(library).items() if function.startswith(cut)}
    return found.pop() if len(found) == 1 else None


@cache
def base_functions() -> dict[str, Known]:
    """Functions in namespaces that their own name reveals: distinctive, and of one library, but for SGLang's copies.

    Tools that print base names (`nsys stats` with `:base`) leave out namespaces and templates.
    """
    owners: dict[str, dict[Library, Known]] = {}
    for item in lists():
        for written in (item.inside, item.templates):
            for family, functions in written.items():
                for function in functions:
                    owners.setdefault(function, {}).setdefault(item.library, (item.library, family))
    found: dict[str, Known] = {}
    for function, known in owners.items():
        originals = [stated for library, stated in known.items() if library != "sgl_kernel"] or list(known.values())
        if _DISTINCTIVE.match(function) and len(originals) == 1:
            found[function] = originals[0]
    return found


@cache
def known_prefixes() -> tuple[tuple[str, Known], ...]:
    """Beginnings of generated functions, with what they say."""
    return tuple(_index("prefixes").items())


@cache
def cpp_functions() -> frozenset[str]:
    """Every function of a C++ library that a list knows."""
    return frozenset(
        function
        for item in lists()
        for families in (item.templates, item.inside)
        for functions in families.values()
        for function in functions
    )


def _index(where: str, library: Library | None = None) -> dict[str, Known]:
    found: dict[str, Known] = {}
    for item in lists():
        if library is None or item.library == library:
            for family, functions in getattr(item, where).items():
                for function in functions:
                    found.setdefault(function, (item.library, family))
    return found
