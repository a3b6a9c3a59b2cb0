"""What runs in the guarded process of mangled names whose references may double their text again and again."""

from collections.abc import Callable, Mapping

from inferometer.names.demangle import decode_mangled

_LONGEST = 1 << 20  # characters of a readable name


def _demangle(name: str) -> str:
    readable = decode_mangled(name)
    return readable if len(readable) <= _LONGEST else name


SERVED: Mapping[str, Callable[..., str]] = {"demangle": _demangle}
