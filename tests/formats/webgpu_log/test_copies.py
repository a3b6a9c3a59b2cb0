"""A log as it comes through other hands: copied from a console, quoted, fetched from a CI, without its head."""

import re
from collections.abc import Callable

import pytest
from tests.traces import counted, rows
from tests.webgpu_log_files import Dims, write_log

from inferometer import Trace

Read = Callable[..., Trace]
LINES = write_log(dims=Dims(layers=2), batches=4, digits=3).splitlines()
OF_ENGINE = [line for line in LINES if not line.startswith(("[ok]", "[metrics]", "[progress]"))]
PLACED = re.compile(r"^\[browser:(?P<level>\w+)\] (?P<text>.*)$")


def joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def times(trace: Trace) -> list[object]:
    return rows(trace, "totals", "step", "kernel", "layer", "total_ns")


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param(r"runner.js:123 \g<text>", id="Chrome"),
        pytest.param(r"10:20:30.123 runner.js:123 \g<text>", id="Chrome with times"),
        pytest.param(r"\g<text> runner.js:12:9", id="Firefox"),
        pytest.param(r"[Log] \g<text> (runner.js, line 12)", id="Safari"),
    ],
)
def test_a_copy_from_a_console_is_read_as_the_log_itself(copied: str, read: Read) -> None:
    itself = read(joined(OF_ENGINE), name="a.log")
    copy = read(joined([PLACED.sub(copied, line) for line in OF_ENGINE]), name="b.log")
    assert times(copy) == times(itself)
    assert counted(copy) == counted(itself)
    assert rows(copy, "steps", "phase", "start_ns", "dur_ns") == rows(itself, "steps", "phase", "start_ns", "dur_ns")
    assert (copy.facts.model, copy.facts.devices) == (itself.facts.model, itself.facts.devices)
    assert copy.facts.engine_metrics == itself.facts.engine_metrics


def test_the_place_stays_in_the_line_that_is_kept(read: Read) -> None:
    trace = read(joined([PLACED.sub(r"[Warning] \g<text> (runner.js, line 12)", line) for line in OF_ENGINE]))
    (text, level), *_ = rows(trace, "log", "text", "level")
    assert text.endswith("(runner.js, line 12)")
    assert level == "warning"


@pytest.mark.parametrize("front", ["> ", ">> ", "bench\tRun the engine\t2025-01-15T10:20:30.1234567Z ", "web-1  | "])
def test_what_stands_in_front_of_every_line_is_no_part_of_rows(front: str, read: Read) -> None:
    itself, copy = read(joined(LINES), name="a.log"), read(joined([front + line for line in LINES]), name="b.log")
    assert times(copy) == times(itself)
    assert counted(copy) == counted(itself) == {}


def test_without_its_head_a_log_tells_neither_contexts_nor_the_first_steps_time(read: Read) -> None:
    first = next(i for i, line in enumerate(LINES) if "Batch decode" in line)
    second = next(i for i, line in enumerate(LINES) if "Batch decode" in line and i > first)
    trace = read(joined(LINES[second:]))
    assert rows(trace, "steps", "context_len") == [None] * 3
    first_ns, *others = rows(trace, "steps", "dur_ns")
    assert first_ns is None
    assert None not in others


def test_a_run_that_breaks_off_in_a_report_makes_no_doubt_of_the_run_behind_it(read: Read) -> None:
    at = next(i for i, line in enumerate(LINES) if "Batch decode" in line)
    trace = read(joined([*LINES[: at + 8], *LINES]))
    assert rows(trace, "steps", "process") == [0, 0, 1, 1, 1, 1, 1]
    assert 0 < counted(trace)["ambiguous_run"] < len(LINES) / 4
    whole = read(joined(LINES), name="whole.log")
    assert [row[1:] for row in rows(trace, "totals", "section", "kernel", "total_ns") if row[0] == 1] == rows(
        whole, "totals", "kernel", "total_ns"
    )
