"""C++ names as people write them. Source: the Itanium C++ ABI, decoded by cpp-demangle."""

from functools import lru_cache


@lru_cache(maxsize=65_536)
def demangle(name: str) -> str:
    """`_Z…` in readable form; anything else, and what the decoder doesn't know, comes back as it is."""
    if not name.startswith("_Z"):
        return name
    import cpp_demangle

    try:
        readable: str = cpp_demangle.demangle(name)
    except ValueError:
        return name
    return readable
