"""What tools write differently in places that a pattern finds: casts, lambdas, operators, versions of a library.

The signs of operators are marked by single characters, so that no bracket among them is taken for a template's.
"""

from inferometer.patterns import late_re

_CAST = late_re(
    r"\((?:(?:(?:un)?signed )?(?:int|long long|long|short|char|__int128)(?: int)?|unsigned|bool|(?:std::)?size_t"
    r"|u?int(?:8|16|32|64)_t)\)(?=-?\d)"
)
_RETURN_TYPE = late_re(
    r"(?:(?<![\w ])void|(?:(?<=[<,(]&)|(?<=^&))(?!const\b)[\w:]+) (?=[A-Za-z_@])(?!const\b)"
)  # of a function, or of one whose address is taken
_ANONYMOUS = late_re(r"\b_GLOBAL__N_\w*|\b_INTERNAL_[0-9a-f]+_\w*")  # as compilers write it
_LLVM_LAMBDA = late_re(r"'lambda(\d*)'(\([^()]*\))")
_OPERATOR = late_re(r"\boperator\s*(\(\)|\[\]|->\*?|<=>|<<=?|>>=?|&&|\|\||[-+*/%^&|~!=<>]=?|,)")
_VERSION = late_re(r"\b(?:(?:CUB|THRUST|ROCPRIM|HIPCUB)_\d\w*|_V_\d\w*|_V\d+|__cxx11|__\d+)::|\[abi:\w+\]")
_MARK = late_re("[\ue000-\uefff]")
_SIGNS = (
    *("()", "[]", "->", "->*", "<=>", "<", "<=", "<<", "<<=", ">", ">=", ">>", ">>=", "&&", "||", ","),
    *(sign + equals for sign in "-+*/%^&|~!=" for equals in ("", "=")),
)
_TO_MARK = {sign: chr(0xE000 + i) for i, sign in enumerate(_SIGNS)}
CALLED, CALLED_CONST = chr(0xEF00), chr(0xEF01)  # the empty parameters after a call operator's name, which are kept
_FROM_MARK = {mark: sign for sign, mark in _TO_MARK.items()} | {CALLED: "()", CALLED_CONST: "()const"}
CALL, _ARROW = _TO_MARK["()"], _TO_MARK["->"]
_CALL_OPERATOR = f"operator{CALL}"


def unify_spellings(name: str) -> str:
    """`name` or a part of it, as all tools could have written it."""
    if not name.isascii():
        name = _MARK.sub("", name)
    if "  " in name or not name.isprintable():
        name = " ".join(name.split())
    name = name.replace(", ", ",").replace("> >", ">>").replace("> >", ">>").replace(" *", "*").replace(" &", "&")
    if "void " in name or "&" in name:
        name = _RETURN_TYPE.sub("", name)
    if "operator" in name:
        name = _mark_operators(name)
    if "->" in name:
        name = name.replace("->", _ARROW)
    if "lambda" in name:
        if "'lambda" in name:
            name = _LLVM_LAMBDA.sub(lambda m: f"{{lambda{m[2]}#{int(m[1][:9]) + 2 if m[1] else 1}}}", name)
        if " (instance " in name:
            name = name.replace("[lambda(", "{lambda(").replace(" (instance ", "#").replace(")]", "}")
    if "_GLOBAL_" in name or "_INTERNAL_" in name:
        name = _ANONYMOUS.sub("@anon", name)
    if ")" in name:
        name = _CAST.sub("", name)
    if "CUB_" in name or "_NS::" in name or "THRUST_" in name or "::_" in name or "[abi:" in name:
        name = _VERSION.sub("", name)
    return name


def unmark(text: str) -> str:
    """The signs of operators instead of their marks."""
    if text.isascii():
        return text
    text = text.replace(CALL, "()").replace(CALLED_CONST, "()const").replace(CALLED, "()")
    return text if text.isascii() else _MARK.sub(lambda mark: _FROM_MARK.get(mark[0], ""), text)


def _mark_operators(name: str) -> str:
    name = name.replace("operator ()", _CALL_OPERATOR).replace("operator()", _CALL_OPERATOR)
    if name.count("operator") > name.count(_CALL_OPERATOR):
        name = _OPERATOR.sub(lambda match: f"operator{_TO_MARK[match[1]]}", name)
    name = name.replace(f"{CALL}() const", CALL + CALLED_CONST).replace(f"{CALL}()const", CALL + CALLED_CONST)
    return name.replace(f"{CALL}()::", f"{CALL}{CALLED}::")
