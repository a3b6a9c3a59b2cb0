"""Names of the `__global__` functions in CUDA or HIP source, without a compiler.

Source: the function and variable annotations of the CUDA C++ Programming Guide, and where C++ allows attributes.
Comments and texts are passed over; macros aren't expanded.
"""

import re
from collections.abc import Iterator, Sequence

_EXTERN_C = 'extern "C"'
_TOKEN = re.compile(
    r'extern\s*"C"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<word>[A-Za-z_]\w*)|::|\d[\w.]*|\S', re.DOTALL
)
_CLOSING = {"(": ")", "<": ">"}
_AFTER_PARAMETERS = frozenset({"noexcept", "const"})


def global_functions(source: str) -> Iterator[str]:
    """Each with its namespaces (`ns::k`), but for anonymous ones; an `extern "C"` one has none, as in a profile."""
    tokens = list(_tokens(source))
    open_braces: list[str | None] = []  # a namespace's name, or None for any other
    is_c = False
    for i, token in enumerate(tokens):
        if token == _EXTERN_C:
            is_c = True
        elif token == "__global__":
            name = _name_after(tokens, i + 1)
            if name is not None:
                spaces = [] if is_c or _EXTERN_C in open_braces else [space for space in open_braces if space]
                yield "::".join([*spaces, name])
        elif token == "{":
            open_braces.append(_opened(tokens, i))
            is_c = False
        elif token == "}":
            if open_braces:
                open_braces.pop()
            is_c = False
        elif token == ";":
            is_c = False


def _tokens(source: str) -> Iterator[str]:
    for match in _TOKEN.finditer(source):
        text = match[0]
        if text.startswith("extern") and text.endswith('"'):
            yield _EXTERN_C
        elif not text.startswith(("//", "/*", '"')):
            yield text


def _opened(tokens: Sequence[str], brace: int) -> str | None:
    """What is before a brace: `namespace a::b`, `extern "C"`, or anything else."""
    begin = brace
    while begin > 0 and (tokens[begin - 1] == "::" or _is_word(tokens[begin - 1])):
        begin -= 1
    before = tokens[begin:brace]
    if "namespace" in before:
        return "".join(before[before.index("namespace") + 1 :]) or None
    return _EXTERN_C if not before and brace and tokens[brace - 1] == _EXTERN_C else None


def _name_after(tokens: Sequence[str], i: int) -> str | None:
    """The function's name: the first word with parameters after it that is no attribute or macro.

    An attribute or macro with arguments is followed by one more word (`__launch_bounds__(256) name(`).
    """
    while i < len(tokens):
        token, following = tokens[i], tokens[i + 1 : i + 2]
        if not _is_word(token) and token not in ("::", "*", "&", "[", "]"):
            return None
        end = _close(tokens, i + 1) if following and following[0] in _CLOSING else i
        after = tokens[end + 1 : end + 2]
        if following == ["<"] and after == ["("] and _is_word(token):
            return token  # a specialisation
        if following == ["("] and _is_word(token) and not _is_attribute(token, after):
            return token
        i = end + 1
    return None


def _is_attribute(word: str, after: Sequence[str]) -> bool:
    if word == "alignas" or (word.startswith("__") and word.endswith("__")):
        return True
    return bool(after) and _is_word(after[0]) and after[0] not in _AFTER_PARAMETERS


def _close(tokens: Sequence[str], at: int) -> int:
    """Where the bracket at `at` is closed, or the last token."""
    opening, depth = tokens[at], 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] == opening) - (tokens[i] == _CLOSING[opening])
        if not depth:
            return i
    return len(tokens) - 1


def _is_word(token: str) -> bool:
    return token[0].isalpha() or token[0] == "_"
