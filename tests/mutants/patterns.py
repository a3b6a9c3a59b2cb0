"""Small changes of a regular expression: an alternative less, a quantifier less, a look-around turned round."""

import re
from collections.abc import Iterator


def changed_patterns(pattern: str) -> Iterator[str]:
    """Patterns that compile and differ from `pattern` by one small change."""
    for changed in dict.fromkeys((*_without_alternatives(pattern), *_without_quantifiers(pattern), *_turned(pattern))):
        try:
            re.compile(changed)
        except re.error:
            continue
        if changed != pattern:
            yield changed


def _marks(pattern: str) -> Iterator[tuple[int, str]]:
    """Places of `(`, `)`, `|` and quantifiers that mean what they mean: not escaped, not in a class of characters."""
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\":
            at += 1
        elif mark == "[":
            at = pattern.index("]", at + 2)
        elif mark == "(" and pattern.startswith("(?", at):
            yield at, mark
            at += 1
        elif mark in "()|?*+":
            yield at, mark
        at += 1


def _without_alternatives(pattern: str) -> Iterator[str]:
    """One alternative less, of each group that has several."""
    open_groups = [[0]]  # where the alternatives of each open group begin
    for at, mark in (*_marks(pattern), (len(pattern), ")")):
        if mark == "(":
            inner = re.compile(r"\((?:\?(?:P<\w+>|<?[:=!]|<[=!]))?").match(pattern, at)
            open_groups.append([inner.end() if inner else at + 1])
        elif mark == "|":
            open_groups[-1].append(at + 1)
        elif mark == ")":
            begins = open_groups.pop()
            if len(begins) > 1:
                ends = [begin - 1 for begin in begins[1:]] + [at]
                texts = [pattern[begin:end] for begin, end in zip(begins, ends, strict=True)]
                for left_out in range(len(texts)):
                    kept = "|".join(text for i, text in enumerate(texts) if i != left_out)
                    yield pattern[: begins[0]] + kept + pattern[at:]


def _without_quantifiers(pattern: str) -> Iterator[str]:
    """`x?` and `x+` become `x`, `x*` becomes `x+`; a `?` after a quantifier makes it lazy, and stays."""
    before = -2
    for at, mark in _marks(pattern):
        if mark in "?*+":
            if before != at - 1:
                yield pattern[:at] + ("+" if mark == "*" else "") + pattern[at + 1 :]
            before = at


def _turned(pattern: str) -> Iterator[str]:
    for found in re.finditer(r"\(\?<?([=!])", pattern):
        at = found.start(1)
        yield pattern[:at] + ("!" if found[1] == "=" else "=") + pattern[at + 1 :]
