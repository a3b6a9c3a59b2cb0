"""Begin and end events: matched as a stack on each thread, in time order."""

from msgspec import Raw

from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.pairs import Pairs
from inferometer.trace.losses import Losses

Written = tuple[str, str, str]  # phase, name, time in µs


def pair(*written: Written, tid: int = 1) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    """Name, start and duration of the complete events, and what was counted."""
    losses = Losses()
    pairs = Pairs(losses)
    pairs.add([Event(ph, "", name, 1, tid, Raw(ts.encode())) for ph, name, ts in written])
    done = [(event.name or "", bytes(event.ts).decode(), bytes(event.dur).decode()) for event in pairs.complete()]
    return done, {loss.name: loss.count for loss in losses}


def test_nested_pairs_close_from_the_inside() -> None:
    done, losses = pair(("B", "outer", "1"), ("B", "inner", "2.5"), ("E", "", "3"), ("E", "", "10.001"))
    assert done == [("outer", "1", "9.001"), ("inner", "2.5", "0.500")]
    assert losses == {"end_event": 2}


def test_pairs_are_matched_by_time_and_not_by_place_in_the_file() -> None:
    done, _ = pair(("E", "", "10"), ("B", "inner", "2"), ("E", "", "3"), ("B", "outer", "1"))
    assert done == [("inner", "2", "1.000"), ("outer", "1", "9.000")]


def test_at_one_time_stamp_the_file_decides() -> None:
    done, _ = pair(("B", "a", "1"), ("E", "", "2"), ("B", "b", "2"), ("E", "", "2"))
    assert done == [("a", "1", "1.000"), ("b", "2", "0.000")]


def test_an_end_that_nothing_began_and_a_beginning_without_end_are_counted() -> None:
    assert pair(("E", "x", "1"), ("B", "y", "2")) == ([], {"end_without_begin": 1, "begin_without_end": 1})


def test_an_untimed_event_is_counted_and_takes_no_partner() -> None:
    done, losses = pair(("B", "a", "1"), ("B", "b", "null"), ("E", "", "1e400"), ("E", "", "2"))
    assert done == [("a", "1", "1.000")]
    assert losses == {"end_event": 1, "without_timestamp": 1, "time_out_of_range": 1}


def test_threads_do_not_mix() -> None:
    losses = Losses()
    pairs = Pairs(losses)
    times = [("B", 1, b"1"), ("B", 2, b"2"), ("E", 1, b"3"), ("E", 2, b"9")]
    pairs.add([Event(ph, "", "x", 1, tid, Raw(ts)) for ph, tid, ts in times])
    assert [(event.tid, bytes(event.dur)) for event in pairs.complete()] == [(1, b"2.000"), (2, b"7.000")]


def test_the_beginning_gives_the_row_its_name_and_arguments() -> None:
    pairs = Pairs(Losses())
    pairs.add([Event("B", "c", "x", 1, 1, Raw(b"1"), args=Raw(b'{"a":1}')), Event("E", "", None, 1, 1, Raw(b"2"))])
    (event,) = pairs.complete()
    assert (event.ph, event.cat, event.name, bytes(event.args)) == ("X", "c", "x", b'{"a":1}')
    assert pairs.complete() == []
