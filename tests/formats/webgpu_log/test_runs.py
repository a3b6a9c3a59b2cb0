"""Several runs in one file: one after the other, side by side, with tags or without; and lines out of order."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest

from tests.traces import counted, rows
from tests.webgpu_log_files import Dims, Log

from inferometer import Trace

Read = Callable[..., Trace]
ONE = Log(model="one", dims=Dims(layers=2), batches=4, prompt="first", prompt_tokens=7)
TWO = Log(model="two", dims=Dims(layers=3), batches=6, prompt="second", prompt_tokens=11, seed=5)


def blocks(text: str) -> Iterator[str]:
    """Messages as a relay writes them: a report's table goes with the line that opens it."""
    block = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("[") and block:
            yield block
            block = ""
        block += line
    yield block


def stamp(block: str) -> float:
    return float(block.split("ms]", maxsplit=1)[0].rsplit("[", 1)[-1]) if "ms]" in block else 0.0


def side_by_side(first: str, second: str, late_ms: float) -> str:
    """Both logs in the order of their clocks, the second begun so much later; lines without a clock follow theirs."""
    timed: list[tuple[float, int, str]] = []
    for order, (text, shift) in enumerate(((first, 0.0), (second, late_ms))):
        now = shift
        for block in blocks(text):
            now = max(now, stamp(block) + shift)
            timed.append((now, order, block))
    return "".join(block for *_, block in sorted(timed, key=lambda each: each[:2]))


def of_run(trace: Trace, number: int) -> list[tuple[object, ...]]:
    found = rows(trace, "totals", "section", "step", "kernel", "layer", "role", "total_ns")
    return [row[1:] for row in found if row[0] == number]


def steps_of(trace: Trace, number: int | None) -> list[tuple[object, ...]]:
    found = rows(trace, "steps", "process", "step", "phase", "start_ns", "dur_ns", "gpu_busy_ns", "context_len")
    return [row[1:] for row in found if row[0] == number]


def check_both(trace: Trace, read: Read, first: Log = ONE, second: Log = TWO) -> None:
    """Each run is in the trace as it is in a log of its own."""
    assert len(trace.facts.engine_metrics["runs"]) == 2
    for number, log in enumerate((first, second)):
        alone = read(log.text, name="alone.log")
        assert of_run(trace, number) == of_run(alone, 0)
        assert steps_of(trace, number) == steps_of(alone, None)
        assert trace.facts.engine_metrics["runs"][number] == {"model": log.model, **alone.facts.engine_metrics}


def test_one_run_has_no_number(read: Read) -> None:
    trace = read(ONE.text)
    assert "runs" not in trace.facts.engine_metrics
    assert set(rows(trace, "totals", "section")) == {0}
    assert set(rows(trace, "steps", "process")) == {None}


def test_one_after_the_other(read: Read) -> None:
    trace = read(ONE.text + TWO.text)
    check_both(trace, read)
    assert counted(trace) == {}
    assert trace.facts.model == "one"
    assert trace.facts.engine_metrics["prompt"] == "first"
    assert trace.facts.notes == ("The log holds 2 runs: sections of totals, processes of steps.",)


def test_the_same_run_twice(read: Read) -> None:
    trace = read(ONE.text + ONE.text)
    check_both(trace, read, ONE, ONE)
    assert counted(trace) == {}


def test_one_after_the_other_without_lines_of_the_harness(read: Read) -> None:
    def engine_only(log: Log) -> str:
        return "".join(block for block in blocks(log.text) if block.startswith("[browser:"))

    trace = read(engine_only(ONE) + engine_only(TWO))
    assert of_run(trace, 0) == of_run(read(ONE.text), 0)
    assert of_run(trace, 1) == of_run(read(TWO.text), 0)
    assert counted(trace) == {"unfinished_run": 2}


def test_a_run_that_broke_off_before_the_next(read: Read) -> None:
    cut = "".join(list(blocks(ONE.text))[:-14])
    trace = read(cut + TWO.text)
    assert of_run(trace, 1) == of_run(read(TWO.text), 0)
    assert steps_of(trace, 1) == steps_of(read(TWO.text), None)
    assert [run["model"] for run in trace.facts.engine_metrics["runs"]] == ["one", "two"]
    assert counted(trace) == {"unfinished_run": 1}


def test_side_by_side_with_tags_of_their_own(read: Read) -> None:
    first, second = ONE.text, TWO.text.replace("[browser:", "[browser#2:")
    mixed = "".join(a + b for a, b in zip_longest(blocks(first), blocks(second), fillvalue=""))
    trace = read(mixed)
    assert of_run(trace, 0) == of_run(read(first), 0)
    assert of_run(trace, 1) == of_run(read(second), 0)


def test_side_by_side_with_one_tag_and_clocks_apart(read: Read) -> None:
    for late_ms in (700.0, 1_100.0, 1_350.0):
        trace = read(side_by_side(ONE.text, TWO.text, late_ms))
        check_both(trace, read)


def test_side_by_side_with_names_before_all_lines(read: Read) -> None:
    def named(log: Log, name: str) -> str:
        return "".join(f"{name}  | {line}\n" for line in log.text.splitlines() if line)

    lines = zip_longest(
        named(ONE, "one-1").splitlines(keepends=True), named(TWO, "two-1").splitlines(keepends=True), fillvalue=""
    )
    trace = read("".join(a + b for a, b in lines))
    check_both(trace, read)
    assert "ambiguous_run" not in counted(trace)


def test_what_may_be_of_either_is_counted_and_said(read: Read) -> None:
    other = replace(ONE, seed=7)
    trace = read(side_by_side(ONE.text, other.text, 0.3))
    assert counted(trace)["ambiguous_run"] > 5
    assert "may be of several runs" in trace.facts.notes[-1]
    assert len(rows(trace, "totals")) == 2 * len(rows(read(ONE.text), "totals"))


def test_facts_may_stand_behind_the_reports(read: Read) -> None:
    pieces = list(blocks(ONE.text))
    moved = "".join([*pieces[24:], *pieces[:24]])
    plain, other = read(ONE.text), read(moved)
    assert rows(other, "totals") == rows(plain, "totals")
    assert rows(other, "steps") == rows(plain, "steps")
    assert other.facts.engine_metrics == plain.facts.engine_metrics
    assert other.facts.model == "one"


def test_results_may_stand_first(read: Read) -> None:
    pieces = list(blocks(ONE.text))
    plain, other = read(ONE.text), read("".join([*pieces[-5:], *pieces[:-5]]))
    assert rows(other, "totals") == rows(plain, "totals")
    assert rows(other, "steps") == rows(plain, "steps")
    assert other.facts.engine_metrics == plain.facts.engine_metrics


def test_two_answers_of_one_run_each_have_their_times(read: Read) -> None:
    """Each `[Perf]` line ends an answer; what the last metrics say is then not said of the first."""
    pieces = list(blocks(ONE.text))
    at = next(i for i, block in enumerate(pieces) if "[Profile]" in block)
    end = next(i for i, block in enumerate(pieces) if "[Perf]" in block)
    first = pieces[at : end + 1]
    last = stamp(pieces[end])

    def later(block: str) -> str:
        head, rest = block.split("ms]", 1)
        before, time = head.rsplit("[", 1)
        return f"{before}[{float(time) + last:.1f}ms]{rest}"

    trace = read("".join([*pieces[: end + 1], *map(later, first), *pieces[end + 2 :]]))
    assert rows(trace, "steps", "step") == list(range(10))
    spans = rows(trace, "steps", "start_ns", "dur_ns")
    assert [b[0] - a[0] for a, b in zip(spans[:5], spans[5:], strict=True)] == [round(last * 1e6)] * 5
    assert [a[1] for a in spans[:5]] == [b[1] for b in spans[5:]]
    assert set(rows(trace, "steps", "process")) == {None}
