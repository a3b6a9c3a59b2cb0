"""What a class of kernels is called in a sentence: what its kernel's name says, as in the tables; a label as it is."""

from inferometer.names import decode


def say_class(name: str) -> str:
    """`nvjet gemm bf16 192x32x64` of a kernel's name; of one that says nothing, and of an engine's label, itself."""
    known = decode(name)
    return known.short_name if known.is_known else name
