"""Text of tokens as they come: only whole characters, each shown once.

A character may be made of several tokens (bytes, or parts of byte-level tokens). What isn't whole yet decodes to
U+FFFD at the end of the text, at most three of them, and is held back until a token completes it or the text ends.

A tokenizer that takes back what it gave (one that decodes a whole run of bytes anew when one of them is wrong) can't be
followed on a terminal: what was shown stays. The text of all tokens at once is the right one then.
"""

from collections.abc import Callable, Sequence

UNKNOWN = "\ufffd"
_MOST_HELD = 3  # bytes of a character of UTF-8 that lacks its last
_LONGEST, _KEPT = 64, 16  # tokens decoded anew with each, and of these the last ones: what a tokenizer looks back at


class TextStream:
    """Give it tokens one at a time; it gives the text that is sure by then.

    Args:
        decode: The text of some tokens.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        self._shown = 0  # characters of their text

    def add(self, token: int) -> str:
        """The characters that are whole with this token; often none."""
        self._tokens.append(token)
        text = self._decode(self._tokens)
        whole = text[: len(text) - _held(text)]
        piece = whole[self._shown :]
        self._shown = max(self._shown, len(whole))
        if len(self._tokens) >= _LONGEST and len(whole) == len(text):
            del self._tokens[:-_KEPT]
            self._shown = len(self._decode(self._tokens))
        return piece

    def rest(self) -> str:
        """What was held back: the text is over."""
        piece = self._decode(self._tokens)[self._shown :]
        self._shown += len(piece)
        return piece


def _held(text: str) -> int:
    return min(len(text) - len(text.rstrip(UNKNOWN)), _MOST_HELD)
