"""Names that fit and tell rows apart: short names of kernels, and names cut in the middle, never two to one text.

Where two names would read alike, the words at which they part are added, in brackets after a short name and between
the beginning and the end of one that is cut. Names that differ in nothing that is shown are numbered: `#2`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rich.cells import cell_len

from inferometer.errors import clean
from inferometer.names import canonical_name, decode
from inferometer.names.demangle import demangle, read_beginning

LEAST_WIDTH: Final = 12
"""A name can be cut to so many columns and still differ from any number of others."""

_CUT: Final = "…"
_WORD: Final = re.compile(r"_?[^\W_]+|[\W_]")
_HEAD: Final = 0.6  # of what is kept of a name: beginnings say more than ends


def label_kernels(names: Iterable[str]) -> dict[str, str]:
    """By name of a kernel what it is, as its name says: `moe matmul bf16×mxfp4 16x128x256`, no two alike.

    A name that shows nothing stays, without its parameters.
    """
    distinct = [*dict.fromkeys(names)]
    labels = {name: _label(name) for name in distinct}
    for alike in _alike(labels):
        parts = _parts({name: clean(canonical_name(name)) for name in alike})
        parts = parts or _parts({name: clean(name) for name in alike})
        labels |= {name: f"{labels[name]} [{part}]" for name, part in parts.items() if part}
    return _numbered(labels, lambda label, mark: f"{label} {mark}")


def readable_kernel(name: str) -> str:
    """The whole name, never mangled: of one that no demangler knows, its beginning."""
    text = demangle(name)
    return f"{read_beginning(text)}{_CUT}" if text.startswith("_Z") and read_beginning(text) else text


def cut_names(texts: Mapping[str, str], width: int) -> dict[str, str]:
    """By key its text in `width` columns, of which there are 12 or more: whole, or cut in the middle; no two alike."""
    shown = {key: cut_middle(text, width) for key, text in texts.items()}
    for alike in _alike(shown):
        parts = _parts({key: texts[key] for key in alike})
        shown |= {key: _around(texts[key], part, width) for key, part in parts.items() if part}
    return _numbered(shown, lambda text, mark: f"{_head(text.rstrip(_CUT), width - cell_len(mark) - 1)}{_CUT}{mark}")


def cut_middle(text: str, width: int) -> str:
    """The beginning and the end of a text that is too wide; of blanks in front of it a third of the width at most."""
    if cell_len(text) <= width:
        return text
    blanks = len(text) - len(text.lstrip(" "))
    if blanks > width // 3:
        return " " * (width // 3) + cut_middle(text.lstrip(" "), width - width // 3)
    rest = width - 1
    head = _head(text, max(1, round(rest * _HEAD)))
    return f"{head}{_CUT}{_tail(text, rest - cell_len(head))}"


def parting_words(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By text the words at which it parts from the others, in order: `vectorized`, and `BFloat16`.

    None where a word ends, alone or before a sign, at which others go on.
    """
    words = {text: _WORD.findall(text) for text in texts}
    found: dict[str, tuple[str, ...]] = {}
    open_groups: list[tuple[list[str], int, tuple[str, ...]]] = [([*words], 0, ())]
    while open_groups:
        group, at, parting = open_groups.pop()
        if len(group) == 1:
            found[group[0]] = parting
            continue
        while len({*(tuple(words[text][at : at + 1]) for text in group)}) == 1:
            at += 1
        by_word: dict[str, list[str]] = {}
        for text in group:
            by_word.setdefault("".join(words[text][at : at + 1]), []).append(text)
        signs = [word for word in by_word if not word.isidentifier() and not word.isalnum()]
        for word, members in by_word.items():
            new = word if len(members) > 1 or word not in signs else _word_after(words[members[0]], at)
            more = [] if [word] == signs else [new.strip("_") or new]
            open_groups.append((members, at + 1, (*parting, *filter(None, more))))
    return found


def _word_after(words: Sequence[str], at: int) -> str:
    """The first word after the sign there, or the sign."""
    return next((word for word in words[at:] if word.isidentifier() or word.isalnum()), "".join(words[at : at + 1]))


def _label(name: str) -> str:
    known = decode(name)
    if not known.is_known:
        return clean(canonical_name(name)) or clean(name)
    return clean(known.short_name)


def _alike(shown: Mapping[str, str]) -> list[list[str]]:
    """Groups of keys that are shown as one text."""
    groups: dict[str, list[str]] = {}
    for key, text in shown.items():
        groups.setdefault(text, []).append(key)
    return [group for group in groups.values() if len(group) > 1]


def _parts(texts: Mapping[str, str]) -> dict[str, str]:
    """By key the words that tell its text from the others'; empty where two texts are the same."""
    if len({*texts.values()}) < len(texts):
        return {}
    words = parting_words([*texts.values()])
    return {key: " ".join(words[text]) for key, text in texts.items()}


def _around(text: str, part: str, width: int) -> str:
    """Beginning, the part that differs, end."""
    part = cut_middle(part, width // 2)
    rest = width - cell_len(part) - 2
    head = _head(text, max(1, round(rest * _HEAD)))
    return f"{head}{_CUT}{part}{_CUT}{_tail(text, rest - cell_len(head))}"


def _numbered(shown: Mapping[str, str], mark: Callable[[str, str], str]) -> dict[str, str]:
    """Texts as they are where no earlier one is the same; else marked with the next number that makes them differ."""
    taken, numbers, found = set[str](), Counter[str](), dict[str, str]()
    once = Counter(shown.values())
    for key, text in shown.items():
        new = text
        while new in taken or (new != text and new in once):
            numbers[text] += 1
            new = mark(text, f"#{numbers[text] + 1}")
        taken.add(new)
        found[key] = new
    return found


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(0, width)]
    end, used = 0, 0
    while end < len(text) and (used := used + cell_len(text[end])) <= width:
        end += 1
    return text[:end]


def _tail(text: str, width: int) -> str:
    return _head(text[::-1], width)[::-1]
