"""C++ names as people write them. Source: the Itanium C++ ABI, decoded by cpp-demangle."""

from functools import cache, lru_cache
from math import log

from inferometer.guarded import Guarded, GuardedError
from inferometer.patterns import late_re

_CLONE = "[clone "
_REFERENCE = late_re(r"[ST][0-9A-Z]*_")  # to what stood before in the name
_LOG_OF_LARGE = log(1 << 20)
"""Each may stand for all before it, and three of them make that three times as long: no split of them makes more."""
_MOST_GROWN = 64  # times as long; of 373 mangled names in real traces and libraries, one is 11 times, all others 7
_MEMORY_BYTES = 1 << 30
_NESTED = late_re(r"_Z(?:N[KVR]*)?(?:St)?")
_WORD_LENGTH = late_re(r"[1-9]\d{0,3}")
_BUILTIN = {
    "DF16b": "std::bfloat16_t",
    "DF16_": "_Float16",
    "f": "float",
    "d": "double",
    "i": "int",
    "l": "long",
    "b": "bool",
}
_ARGUMENT = late_re(
    r"(?P<builtin>DF16b|DF16_|[fdilb](?=[A-Z0-9fdilb]))|L[a-z](?P<value>\d+)E|(?:NS\w?_)?(?P<length>[1-9]\d{0,3})(?=[A-Za-z_])"
)


def strip_suffixes(name: str) -> str:
    """`name` without blanks around it and without what AMD's tools add to a kernel's symbol: `.kd`, ` [clone .kd]`."""
    name = name.strip()
    end, before = len(name), -1
    while end != before:
        before = end
        end = _without_suffix(name, end)
    return name[:end]


def _without_suffix(name: str, end: int) -> int:
    """Where `name[:end]` ends without one such suffix: no copy, for a name may have any number of them."""
    if name.endswith(".kd", 0, end):
        return end - len(".kd")
    if name.endswith("(.kd)", 0, end):
        return _without_blanks(name, end - len("(.kd)"))
    begin = name.rfind("[", 0, end) if name.endswith("]", 0, end) else -1
    is_clone = begin >= 0 and name.startswith(_CLONE, begin) and name.find("]", begin) == end - 1
    return _without_blanks(name, begin) if is_clone else end


def _without_blanks(name: str, end: int) -> int:
    while end and name[end - 1].isspace():
        end -= 1
    return end


@lru_cache(maxsize=65_536)
def demangle(name: str) -> str:
    """`_Z…` in readable form; anything else, and what the decoder doesn't know, comes back as it is.

    So does a name that stands for a text 64 times as long or more, which no compiler wrote.
    """
    if not name.startswith("_Z"):
        return name
    if log(len(name)) + log(3) / 3 * len(_REFERENCE.findall(name)) <= _LOG_OF_LARGE:
        return decode_mangled(name)
    try:
        readable: str = _guarded().call("demangle", name)
    except GuardedError:
        return name
    return readable


def decode_mangled(name: str) -> str:
    """`name` in readable form, or as it is; it may take as much memory as what its references stand for."""
    import cpp_demangle

    try:
        readable: str = cpp_demangle.demangle(name)
    except ValueError:
        return name
    return readable if len(readable) < _MOST_GROWN * len(name) else name


@cache
def _guarded() -> Guarded:
    return Guarded("inferometer.names.demangle_worker", memory_bytes=_MEMORY_BYTES, seconds=1.0)


def read_beginning(name: str) -> str:
    """What stands plainly at the beginning of a mangled name: namespaces, function, first template arguments.

    For what no demangler knows, or was cut: `_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16…` gives
    `sgl_hip::activation::act_and_mul_kernel<__hip_bfloat16`. Empty when nothing is plain.
    """
    start = _NESTED.match(name)
    position, words = start.end() if start else len(name), list[str]()
    while (word := _WORD_LENGTH.match(name, position)) is not None:
        text = name[word.end() : word.end() + int(word[0])]
        position = word.end() + int(word[0])
        words.append("@anon" if text.startswith(("_GLOBAL__N_", "_INTERNAL_")) else text)
        if not name.startswith("_ZN"):
            break
    arguments = _plain_arguments(name, position + 1) if name[position : position + 1] == "I" else []
    path = "::".join(word for word in words if word)
    return f"{path}<{','.join(arguments)}" if arguments else path


def _plain_arguments(name: str, position: int) -> list[str]:
    """Template arguments as far as they are builtin types, names or numbers."""
    arguments = []
    while (match := _ARGUMENT.match(name, position)) is not None:
        end = match.end()
        if match["length"]:
            end += int(match["length"])
            arguments.append(name[match.end() : end])
        else:
            arguments.append(match["value"] or _BUILTIN[match["builtin"]])
        position = end
    return arguments
