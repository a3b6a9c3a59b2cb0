"""Backends of a decoder's operators, made for a test."""

from collections.abc import Callable, Collection

from inferometer.backends.backend import Backend, DecoderKernel, DecoderKernels


def decoder_backend(
    name: str,
    operators: Collection[str],
    load: Callable[[str], DecoderKernel],
    *,
    unavailable: Callable[[str], str | None] = lambda device: None,
    prepare: Callable[[str], None] = lambda device: None,
) -> Backend:
    """One that has nothing of the catalogue."""
    decoder = DecoderKernels(tuple(operators), load, unavailable, prepare)
    return Backend(name, "made for a test", unavailable, decoder=decoder)
