"""What runs in the guarded process of mangled names whose references may double their text again and again."""

from collections.abc import Callable, Mapping

from inferometer.names.demangle import decode_mangled

SERVED: Mapping[str, Callable[..., str]] = {"demangle": decode_mangled}
