"""Text as it comes is whole characters, and together they are the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.scripted_engine import Bytes

from inferometer.engines.chat.text_stream import UNKNOWN, TextStream

decode = Bytes().decode


def pieces_of(tokens: bytes) -> list[str]:
    stream = TextStream(decode)
    return [*(stream.add(token) for token in tokens), stream.rest()]


def test_a_character_of_several_tokens_comes_with_its_last() -> None:
    assert pieces_of("a€ü".encode()) == ["a", "", "", "€", "", "ü", ""]


def test_what_never_becomes_a_character_comes_when_it_is_sure() -> None:
    assert pieces_of(b"\xe2\x82a") == ["", "", f"{UNKNOWN}a", ""]
    assert pieces_of(b"a\xe2\x82") == ["a", "", "", UNKNOWN]
    held = pieces_of(b"\xff" * 10)
    assert (held[:4], held[-1]) == (["", "", "", UNKNOWN], 3 * UNKNOWN)


@given(st.text(max_size=300))
def test_good_text_is_never_shown_in_parts_of_characters(text: str) -> None:
    pieces = pieces_of(text.encode())
    assert "".join(pieces) == text
    assert all(UNKNOWN not in piece for piece in pieces) or UNKNOWN in text


@given(st.binary(max_size=400))
def test_any_bytes_come_out_as_their_whole_text(tokens: bytes) -> None:
    assert "".join(pieces_of(tokens)) == decode(tokens)


def test_the_cost_of_a_token_doesnt_grow_with_the_text() -> None:
    longest = 0

    def decode_and_look(tokens: object) -> str:
        nonlocal longest
        longest = max(longest, len(tokens))  # type: ignore[arg-type]
        return decode(tokens)  # type: ignore[arg-type]

    stream = TextStream(decode_and_look)
    text = "".join(stream.add(token) for token in b"long " * 400)
    assert text == "long " * 400
    assert longest < 100


@pytest.mark.parametrize("words", [[" a", " b"], [" a"] * 200])
def test_a_tokenizer_that_drops_the_first_space_loses_no_other(words: list[str]) -> None:
    stream = TextStream(lambda tokens: "".join(words[token] for token in tokens).removeprefix(" "))
    assert "".join(stream.add(i) for i in range(len(words))) == "".join(words).removeprefix(" ")
