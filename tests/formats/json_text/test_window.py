"""The window over JSON text: every step is the same however few bytes the stream hands out at a time."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.formats.json_text import window
from inferometer.formats.json_text.window import Truncated, Window, object_end

JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(), st.sampled_from(['\\"', "}{", "[", '"', "\\", "é😀"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=20,
)


class Drip:
    """A stream that hands out its bytes in steps of these sizes, over and over."""

    def __init__(self, data: bytes, steps: list[int]) -> None:
        self._data = data
        self._steps = self._cycle(steps)

    def readinto(self, target: memoryview, /) -> int:
        n = min(next(self._steps), len(target), len(self._data))
        target[:n], self._data = self._data[:n], self._data[n:]
        return n

    def _cycle(self, steps: list[int]) -> Iterator[int]:
        while True:
            yield from steps


@pytest.fixture(params=[1, 7, 64, 1 << 18])
def open_text(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Window]:
    """Texts read in blocks of 1 byte to 256 KiB."""
    monkeypatch.setattr(window, "READ_BYTES", request.param)
    return lambda data: Window(Drip(data, [request.param]))


def test_white_space_is_skipped_and_the_offset_counts_every_byte(open_text: Callable[[bytes], Window]) -> None:
    text = open_text(b' \t\r\n {"a":1}')
    assert (text.peek(), text.offset) == (ord("{"), 5)
    assert text.take(ord("{"))
    assert not text.take(ord("}"))
    assert (text.peek(), text.offset) == (ord('"'), 6)


def test_at_the_end_there_is_nothing_to_see(open_text: Callable[[bytes], Window]) -> None:
    text = open_text(b"  ")
    assert text.peek() == -1
    assert not text.take(ord("]"))
    with pytest.raises(Truncated):
        text.take_value()


@pytest.mark.parametrize(
    "value", ['"a"', '"\\""', '"\\\\"', '"}]"', '""', "12.5e3", "null", "{}", "[[],{}]", '{"a":["}",{"b":"\\"]"}]}']
)
def test_a_value_ends_where_json_says(value: str, open_text: Callable[[bytes], Window]) -> None:
    text = open_text(f" {value}, 7".encode())
    assert text.take_value(keep=100) == value.encode()
    assert text.take(ord(","))
    assert text.take_value(keep=1) == b"7"


def test_a_value_larger_than_asked_for_is_passed_over(open_text: Callable[[bytes], Window]) -> None:
    text = open_text(b'"0123456789",1')
    assert text.take_value(keep=11) is None
    assert text.take(ord(","))


@pytest.mark.parametrize("value", ['"a', '"a\\', '"a\\"', "[", '{"a":[1,2', '{"a":"]}'])
def test_a_value_that_never_ends_is_told(value: str, open_text: Callable[[bytes], Window]) -> None:
    with pytest.raises(Truncated):
        open_text(value.encode()).take_value()


@given(
    values=st.lists(JSON, min_size=1, max_size=6),
    steps=st.lists(st.integers(1, 9), min_size=1),
    block=st.integers(1, 40),
)
def test_values_come_whole_out_of_any_blocks(values: list[object], steps: list[int], block: int) -> None:
    texts = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "READ_BYTES", block)
        text = Window(Drip(b" , ".join(texts), steps))
        for each in texts:
            assert text.take_value(keep=1 << 20) == each
            text.take(ord(","))
        assert text.peek() == -1


def test_a_window_grows_to_hold_what_is_asked_for(open_text: Callable[[bytes], Window]) -> None:
    text = open_text(b"x" * 3 + b"0123456789" * 50)
    text.fill(3)
    text.pos += 3
    text.fill(400)
    assert bytes(text.buf[text.pos : text.pos + 400]) == b"0123456789" * 40
    assert text.offset == 3


def test_nesting_costs_no_stack() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    text = Window(Drip(b'{"a":' + deep + b"},1", [1 << 16]))
    assert text.take_value() is None
    assert text.take(ord(","))
    assert object_end(bytearray(deep), 0, len(deep)) == len(deep)


@pytest.mark.parametrize(
    ("text", "end"),
    [('{"a":1}x', 7), ('{"a":"}"}', 9), ('{"a":"\\"}"}', 11), ('{"a"', -1), ('{"a":"}', -1), ("[{}]", 4)],
)
def test_an_object_ends_where_json_says(text: str, end: int) -> None:
    assert object_end(bytearray(text.encode()), 0, len(text)) == end


def test_a_text_that_starts_over_has_the_window_of_one_that_begins_there(open_text: Callable[[bytes], Window]) -> None:
    data = bytes(range(1, 200))
    for begin in (0, 3, 120):
        text, fresh = open_text(data), open_text(data[begin:])
        text.fill(begin + 20)
        text.pos += begin
        text.start_over()
        for size in (1, 30, 500):
            text.fill(size)
            fresh.fill(size)
            assert text.offset == begin
            assert text.buf[text.pos : text.end] == fresh.buf[fresh.pos : fresh.end]
            assert text.eof == fresh.eof


def test_a_text_skips_to_a_place_and_no_further_than_its_end(open_text: Callable[[bytes], Window]) -> None:
    text = open_text(b"0123456789")
    for place, byte in ((0, ord("0")), (3, ord("3")), (2, ord("3")), (9, ord("9")), (10, -1), (99, -1)):
        text.skip_to(place)
        assert text.peek() == byte
    assert text.offset == 10


def test_a_text_goes_on_where_another_stands(open_text: Callable[[bytes], Window]) -> None:
    text, other = open_text(b"abc"), open_text(b"defghi")
    text.fill(3)
    other.skip_to(4)
    text.go_on_as(other)
    assert (text.offset, text.peek()) == (4, ord("h"))
    assert text.take(ord("h"))
    assert text.take(ord("i"))
    assert text.peek() == -1
