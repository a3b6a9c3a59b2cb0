"""Kernels for the catalogue's operators and for those of a decoder: a file or folder for each source of kernels."""

from functools import cache

from inferometer.backends.backend import Backend
from inferometer.errors import UnknownName
from inferometer.registry import collect


@cache
def backends() -> dict[str, Backend]:
    """All backends by name."""
    return collect("inferometer.backends", "BACKEND")


def require_backend(name: str) -> Backend:
    """The backend of this name.

    Raises:
        UnknownName: There is none; the nearest names come first.
    """
    known = backends()
    if name not in known:
        raise UnknownName("backend", name, list(known))
    return known[name]
