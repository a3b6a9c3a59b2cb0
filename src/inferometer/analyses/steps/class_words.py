"""What a class of kernels is called in a sentence: what its kernel's name says, as in the tables; a label as it is."""

from inferometer.names import decode

_OF_LABELS = frozenset({"webgpu", "other"})  # an engine's labels and ops read well as they are


def say_class(name: str) -> str:
    """`nvjet gemm bf16 192x32x64` of a library's kernel; an engine's label, an op and any other name stay."""
    known = decode(name)
    return known.short_name if known.is_known and known.library not in _OF_LABELS else name
