"""Mend one event's JSON text: raw control characters, bytes that are not UTF-8, NaN and infinity, bad escapes.

Profilers write all of these. What was mended is counted; structure is never guessed at.
"""

import re

from inferometer.trace.losses import Losses

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[-+]?(?:NaN|nan|NAN|Infinity|infinity|inf|Inf|INF)\b', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])', re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)


def repair(text: bytes, losses: Losses, *, category: str | None = None) -> bytes:
    """`text` with its defects mended; the same bytes when it has none of those known here."""

    def count(name: str) -> None:
        losses.count(name, category=category, example=text[:80].decode("utf-8", "replace"))

    def mend(match: re.Match[bytes]) -> bytes:
        token = match[0]
        if token[:1] != b'"':
            count("not_finite")
            return b"null"
        if _CONTROL.search(token):
            count("control_character")
            token = _CONTROL.sub(b" ", token)
        if b"\\" in token:
            mended = _SURROGATE.sub(_mend_surrogate, _ESCAPE.sub(_mend_escape, token))
            if mended != token:
                count("bad_escape")
            token = mended
        return token

    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        count("invalid_utf8")
        text = text.decode("utf-8", "replace").encode()
    return _TOKEN.sub(mend, text)


def _mend_escape(match: re.Match[bytes]) -> bytes:
    return b"\\" + match[0] if _BAD_ESCAPE.match(match[0]) else match[0]


def _mend_surrogate(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    return b"\\ufffd" if len(escape) == 6 else escape
