"""Names that fit into a table: words in lower case, at most 64 characters."""

import re

from inferometer.names.kernel_name import LONGEST_SHORT_NAME
from inferometer.patterns import late_re

_PAIR = late_re(r"([a-z]\w*)\*([a-z]\w*)", re.ASCII)  # a dtype that multiplies two


def short(*words: object) -> str:
    """The words that are there, in order, as many as fit; of a dtype of two types `bf16×mxfp4`."""
    text = " ".join([readable_type(str(word)) for word in words if word is not None and word != ""])
    if len(text) <= LONGEST_SHORT_NAME:
        return text
    cut = text[: LONGEST_SHORT_NAME + 1].rsplit(" ", 1)[0]
    return cut if 0 < len(cut) <= LONGEST_SHORT_NAME and len(cut) > LONGEST_SHORT_NAME // 3 else _cut(text)


def size(*numbers: int | None) -> str:
    """`128x64`, of the numbers that are known."""
    return "x".join(str(number) for number in numbers if number is not None)


def readable_type(word: str) -> str:
    """A dtype as people read it: `bf16×mxfp4` of `bf16*mxfp4`, which data have; any other text as it is."""
    pair = _PAIR.fullmatch(word) if "*" in word else None
    return f"{pair[1]}×{pair[2]}" if pair else word


def _cut(text: str) -> str:
    return text[: LONGEST_SHORT_NAME - 1] + "…"
