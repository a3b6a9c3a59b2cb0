"""Names that fit into a table: words in lower case, at most 64 characters, one for each set of facts in a report."""

from collections.abc import Sequence

from inferometer.names.kernel_name import LONGEST_SHORT_NAME, KernelName


def short(*words: object) -> str:
    """The words that are there, in order, as many as fit."""
    text = " ".join([str(word) for word in words if word is not None and word != ""])
    if len(text) <= LONGEST_SHORT_NAME:
        return text
    cut = text[: LONGEST_SHORT_NAME + 1].rsplit(" ", 1)[0]
    return cut if 0 < len(cut) <= LONGEST_SHORT_NAME and len(cut) > LONGEST_SHORT_NAME // 3 else _cut(text)


def size(*numbers: int | None) -> str:
    """`128x64`, of the numbers that are known."""
    return "x".join(str(number) for number in numbers if number is not None)


def unique_short_names(names: Sequence[KernelName]) -> list[str]:
    """The short names, made different where the facts are: the second set of facts under one name gets ` #2`."""
    seen: dict[str, dict[KernelName, int]] = {}
    unique = []
    for name in names:
        numbers = seen.setdefault(name.short_name, {})
        number = numbers.setdefault(name, len(numbers) + 1)
        suffix = f" #{number}" if number > 1 else ""
        unique.append(name.short_name[: LONGEST_SHORT_NAME - len(suffix)] + suffix)
    return unique


def _cut(text: str) -> str:
    return text[: LONGEST_SHORT_NAME - 1] + "…"
