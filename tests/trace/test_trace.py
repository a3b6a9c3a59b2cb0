"""The trace itself: its tables, its scope, its window."""

import pytest
from tests.traces import trace_of

from inferometer.errors import InputError
from inferometer.trace.tables import ALL_TABLES


def test_every_table_is_there_and_empty_unless_filled() -> None:
    trace = trace_of([{"start_ns": 5}])
    assert set(trace.tables) == trace.scope == ALL_TABLES
    assert {
        name: frame.collect().height for name, frame in trace.tables.items() if name != "launches"
    } == dict.fromkeys(ALL_TABLES - {"launches"}, 0)
    assert trace.launches.collect().equals(trace.tables["launches"].collect())


def test_a_table_that_was_not_read_says_what_to_do() -> None:
    trace = trace_of([{}], tables={"launches", "calls"})
    with pytest.raises(InputError, match="only calls, launches\n  Open it with tables="):
        _ = trace.tables["ops"]
    with pytest.raises(InputError):
        trace.require({"launches", "ops"})
    trace.require({"launches"})
    assert "ops" not in list(trace.tables)
    assert len(trace.tables) == 2


def test_a_table_that_does_not_exist_is_no_table() -> None:
    trace = trace_of()
    with pytest.raises(KeyError):
        _ = trace.tables["lunches"]
    with pytest.raises(AttributeError, match="no table or attribute 'lunches'; tables: call_paths"):
        _ = trace.lunches


def test_the_window_spans_every_table_with_a_time() -> None:
    counter = {"metric": "m", "time_ns": 900, "value": 1.0}
    trace = trace_of(
        [{"start_ns": 100, "dur_ns": 20}], counters=[counter], ops=[{"op": "o", "start_ns": 50, "dur_ns": 1}]
    )
    assert trace.window() == (50, 900)


@pytest.mark.parametrize(("dur_ns", "end_ns"), [(7, 37), (None, 30)])
def test_what_lasts_for_an_unknown_time_reaches_as_far_as_its_start(dur_ns: int | None, end_ns: int) -> None:
    steps = [{"step": k, "start_ns": 10 * k, "dur_ns": None, "source": "recorded"} for k in range(3)]
    steps.append({"step": 3, "start_ns": 30, "dur_ns": dur_ns, "source": "recorded"})
    assert trace_of(steps=steps).window() == (0, end_ns)


@pytest.mark.parametrize("tables", [None, {"call_paths"}, {"launches"}])
def test_without_times_there_is_no_window(tables: set[str] | None) -> None:
    assert trace_of(tables=tables).window() is None


def test_a_trace_says_what_it_is() -> None:
    assert repr(trace_of(tables={"ops"})) == "<Trace by hand (by-hand), tables read: ops>"
