"""Events out of an array's text: whole in any layout, and as many as can be saved from a damaged one."""

import io
import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.formats.json_text import records as reading
from inferometer.formats.json_text import window
from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto.events import EventReader
from inferometer.trace.losses import Losses


def read_events(text: str | bytes, **options: int | bool) -> tuple[list[str | None], dict[str, int]]:
    """Names of the events behind a `[`, and what was counted."""
    losses = Losses()
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    reader = EventReader(Window(stream), losses, **options)  # type: ignore[arg-type]
    names = [event.name for batch in reader.batches() for event in batch]
    return names, {loss.name: losses.total(loss.name) for loss in losses}


def named(*names: str) -> str:
    return ",".join(f'{{"ph":"X","name":"{name}"}}' for name in names)


@pytest.mark.parametrize("between", [",", " , ", ",\n  ", "\n,\t"])
def test_events_may_stand_apart_in_any_way(between: str) -> None:
    text = between.join(f'{{"ph":"X","name":"{name}"}}' for name in "abc")
    assert read_events(f"\n {text} ]") == (["a", "b", "c"], {})


def test_no_events_are_no_loss() -> None:
    assert read_events(" ]") == ([], {})


def test_the_array_ends_at_its_bracket_and_what_follows_is_left() -> None:
    text = Window(io.BytesIO(f'{named("a")}], "next": 1}}'.encode()))
    assert [len(batch) for batch in EventReader(text, Losses()).batches()] == [1]
    assert text.peek() == ord(",")


@pytest.mark.parametrize(
    "bad",
    [
        '{"ph":"X","name":}',
        '{"ph" "X"}',
        '{"ph":"X","name":"bad" "dur":1}',
        '{"ph":"X","name":"bad"]}',
        "{{}}",
        '{"ph":"X","ts":1.2.3}',
        '{"ph":"X","name":"bad}',
        '{"ph":"X","name":"bad"',
        '{"ph":"X","name":bad"}',
    ],
)
def test_an_unreadable_event_is_counted_and_its_neighbours_are_read(bad: str) -> None:
    names, losses = read_events(f"{named('a', 'b')},{bad},{named('c', 'd', 'e')}]")
    assert names[:2] == ["a", "b"]
    assert names[-2:] == ["d", "e"]
    assert losses["unreadable_event"] == 1
    assert len(names) >= 4  # a missing quote or bracket may cost the neighbour


@pytest.mark.parametrize("stray", ["1", '"text"', "null", "[1,[2]]", "[{}]"])
def test_what_is_no_object_is_counted_and_passed_over(stray: str) -> None:
    assert read_events(f"{named('a')},{stray},{named('b')}]") == (["a", "b"], {"not_an_object": 1})


@pytest.mark.parametrize("text", ["{}", '{"name":"a"}', "{},{}"])
def test_an_event_may_lack_everything(text: str) -> None:
    names, losses = read_events(f"{text}]")
    assert (len(names), losses) == (text.count("{"), {})


@pytest.mark.parametrize(("tail", "kept"), [("", 2), (",", 2), (',{"ph":"X","na', 2), (',{"ph":"X","name":"c"', 2)])
def test_a_list_that_breaks_off_is_read_up_to_there_and_counted(tail: str, kept: int) -> None:
    names, losses = read_events(named("a", "b") + tail)
    assert names == ["a", "b"][:kept]
    assert losses == {"truncated": 1}


def test_a_bare_array_need_not_be_closed() -> None:
    assert read_events(named("a", "b"), bare=True) == (["a", "b"], {"array_not_closed": 1})


@pytest.mark.parametrize(
    ("field", "read"),
    [
        ('"pid":1.0', (1, None)),
        ('"pid":true', (None, "pid")),
        ('"pid":[1]', (None, "pid")),
        ('"pid":null', (None, None)),
        (f'"pid":{2**70}', (None, "pid")),
        (f'"pid":{-(2**63) - 1}', (None, "pid")),
        (f'"pid":{-(2**63)}', (-(2**63), None)),
        ('"pid":1e400', (None, "pid")),
    ],
)
def test_a_field_of_the_wrong_type_is_left_out_and_counted(field: str, read: tuple[int | None, str | None]) -> None:
    losses = Losses()
    text = Window(io.BytesIO(f'{{"ph":"X","name":"a",{field}}}]'.encode()))
    ((event,),) = EventReader(text, losses).batches()
    assert (event.name, event.pid) == ("a", read[0])
    assert [loss.category for loss in losses] == ([read[1]] if read[1] else [])


def test_a_name_that_is_a_number_is_that_number_in_words() -> None:
    assert read_events('{"ph":"X","name":7}]') == (["7"], {})


def test_an_event_larger_than_the_window_is_read() -> None:
    args = json.dumps({"text": "x" * 3_000_000, "list": [{"ph": {}}, {"ph": {}}] * 20_000})
    text = f'{named("a")},{{"ph":"X","name":"large","args":{args}}},{named("b")}]'
    assert read_events(text) == (["a", "large", "b"], {})


def test_an_event_above_the_limit_is_counted_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((reading, "_RESYNC_BYTES"), (reading, "CHUNK_BYTES"), (window, "READ_BYTES")):
        monkeypatch.setattr(module, name, 1 << 10)
    large = f'{{"ph":"X","name":"large","args":{{"text":"{"x" * 100_000}"}}}}'
    names, losses = read_events(f"{named('a')},{large},{named('b')}]", event_bytes=1 << 14)
    assert (names, losses) == (["a", "b"], {"event_too_large": 1})


@pytest.mark.parametrize("depth", [1_000, 1_000_000])
def test_deep_nesting_is_read_or_counted(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    names, losses = read_events(f'{named("a")},{{"ph":"X","name":"deep","args":{{"x":{deep}}}}},{named("b")}]')
    assert (names[0], names[-1]) == ("a", "b")
    assert len(names) + losses.get("unreadable_event", 0) == 3


@given(
    names=st.lists(st.text('ab\\}{,":[]\n é', max_size=6), max_size=12),
    chunk=st.integers(1, 60),
    block=st.integers(1, 60),
    space=st.sampled_from(["", " ", "\n"]),
)
def test_where_the_text_is_cut_changes_nothing(names: list[str], chunk: int, block: int, space: str) -> None:
    parts = [json.dumps({"ph": "X", "name": name, "args": {"l": [{}, {}]}}, ensure_ascii=False) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK_BYTES", chunk)
        patch.setattr(reading, "_TAIL_BYTES", chunk)
        patch.setattr(window, "READ_BYTES", block)
        assert read_events(f"{space},{space}".join(parts) + "]") == (names, {})


def test_damage_costs_time_in_proportion() -> None:
    """Window that tempts a reader to start over at every event."""
    begun = time.process_time()
    hostile = [
        "{!}x}," * 60_000,
        '{"a":"' * 60_000,
        "}{," * 100_000,
        '{"a":1}x' * 60_000,
        "},{" * 100_000,
        ":" * 300_000,
        "},{[" * 100_000,
    ]
    for text in hostile:
        _, losses = read_events(text + "]")
        assert losses
    assert time.process_time() - begun < 30  # seconds; some 2 where it is linear, hours where it is not


def test_the_place_of_a_loss_is_told() -> None:
    losses = Losses()
    list(EventReader(Window(io.BytesIO(b'{"ph":"X"},{bad},{"ph":"X"}]')), losses).batches())
    assert [loss.example for loss in losses] == ['byte 11: {bad},{"ph":"X"}]']


def test_cuts_between_events_are_never_taken_inside_one() -> None:
    """`},{` in a string and in nested lists looks like the place between two events."""
    tricky = '{"ph":"X","name":"a},{b","args":{"l":[{"ph":"X"},{"ph":"X"}]}}'
    names, losses = read_events(",".join([tricky] * 5_000) + "]")
    assert (set(names), len(names), losses) == ({"a},{b"}, 5_000, {})
    assert all(a == b for a, b in pairwise(names))


@pytest.mark.parametrize("between", [",", " , ", ",\n    "])
def test_reading_may_stop_before_the_first_event_that_begins_at_a_place(between: str) -> None:
    pieces = [
        '{"ph":"X","name":"a","args":{"of":[{"x":1},{"y":2}]}}',
        '{"ph":"X","name":"b \\"},{"}',
        '{"ph":"X","name":"c"}',
    ]
    whole = between.join(pieces) + "]"
    begins = [whole.index(piece) for piece in pieces]
    for until in range(len(whole) + 2):
        text, losses = Window(io.BytesIO(whole.encode())), Losses()
        reader = EventReader(text, losses, until=until)
        names = [event.name for batch in reader.batches() for event in batch]
        expected = [begin for begin in begins if begin < until]
        assert len(names) == len(expected), until
        assert reader.is_done == (len(expected) == len(pieces)), until
        assert reader.is_done or text.offset == begins[len(expected)], until
        assert not losses
