"""Literal text in a window: what `bytearray.find` says, whichever function finds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.formats.json_text import search
from inferometer.formats.json_text.search import Search

TEXT = st.text('ab"', max_size=60).map(str.encode)
NEEDLE = st.text('ab"', min_size=1, max_size=4).map(str.encode)


@given(TEXT, NEEDLE, st.integers(0, 60), st.integers(0, 60))
def test_it_finds_what_bytearray_finds(text: bytes, needle: bytes, first: int, second: int) -> None:
    buf = bytearray(text)
    start, end = sorted((min(first, len(buf)), min(second, len(buf))))
    assert (Search(buf).find(needle, start, end) if buf else -1) == buf.find(needle, start, end)


def test_without_memmem_it_is_bytearray_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_memmem", lambda: None)
    assert Search(bytearray(b"abcabc")).find(b"bc", 2, 6) == 4
    assert Search(bytearray(b"abcabc")).find(b"bc", 2, 5) == -1
