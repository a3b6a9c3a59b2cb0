"""Every command that makes sense of a profile of JAX answers, on both real samples."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.commands.test_command_line import run
from tests.xplane_files import H200, LINES, MI300, blocks, kernel_ps, name_of, numbers, planes, real_files

import inferometer

COMMANDS = (
    *("summary", "tree", "groups", "timeline", "findings", "roofline", "steps", "calls", "spans"),
    *("launches --by op", "launches --by module", "launches --by span", "kernels --by family"),
)
Printed = pytest.CaptureFixture[str]


@real_files
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers(command: str, path: Path, capsys: Printed) -> None:
    name, *options = command.split()
    code, out, _ = run(name, path, *options, "--json", capsys=capsys)
    assert (code, bool(json.loads(out))) == (0, True)


@real_files
def test_kernels_and_modules_have_the_time_of_a_second_reader(path: Path, capsys: Printed) -> None:
    _, took_ps = kernel_ps(path)
    for name, *options in (["kernels"], ["launches", "--by", "module"]):
        _, out, _ = run(name, path, *options, "--json", capsys=capsys)
        assert json.loads(out)["total_ns"] * 1_000 == took_ps.total()


@real_files
def test_a_profile_becomes_a_store_a_page_a_fleet_and_is_compared(path: Path, tmp_path: Path, capsys: Printed) -> None:
    store, page, fleet = (tmp_path / name for name in ("run.ifm", "run.html", "fleet"))
    for words in (
        ("import", path, "-o", store),
        ("report", store, "-o", page),
        ("mine", store, "-o", fleet, "--workers", 1),
        ("compare", path, store, "--json"),
    ):
        assert run(*words, capsys=capsys)[0] == 0


def _cut(intervals: list[tuple[int, int]], within: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """The parts of intervals that lie within others, on the grid of all their ends: pieces of one are those of all."""
    return {(max(a, c), min(b, d)) for a, b in intervals for c, d in within if max(a, c) < min(b, d)}


def _length(pieces: set[tuple[int, int]]) -> int:
    """The union of intervals, ns."""
    total, end = 0, 0
    for a, b in sorted(pieces):
        total += max(0, b - max(a, end))
        end = max(end, b)
    return total


def test_what_the_host_did_has_a_name_where_xla_gave_it_one(capsys: Printed) -> None:
    _, out, _ = run("findings", H200, capsys=capsys)
    with inferometer.open(H200) as trace:
        launches, calls, spans = (
            table.sort("start_ns").collect() for table in (trace.launches, trace.calls, trace.spans)
        )
    thread = calls.filter(pl.col("api") == "[kernel launch]")["thread"].unique().item()
    gaps, end = [], launches["start_ns"][0]
    for start, dur in launches.select("start_ns", "dur_ns").rows():
        gaps += [(end, start)] if start > end else []
        end = max(end, start + dur)
    own = [
        [(a, a + n) for a, n in rows.filter(pl.col("thread") == thread).select("start_ns", "dur_ns").rows()]
        for rows in (calls, spans.filter(pl.col("domain") == "TraceMe"))
    ]
    in_calls = _length(_cut(own[0], gaps))
    in_ranges = _length(_cut(own[0], gaps) | _cut(own[1], gaps)) - in_calls
    idle = sum(b - a for a, b in gaps)
    share = f"{in_ranges / idle:.1%}".replace("%", " %")
    said = f"{in_ranges / 1_000:.3f} μs ({share}) in ranges of the framework's own, outside of driver and runtime calls"
    assert said in " ".join(out.split())
    assert "torch" not in out


@pytest.mark.skipif(not MI300.is_file(), reason="needs ../shared")
def test_threads_that_the_file_numbers_twice_are_not_said_to_have_done_nothing(capsys: Printed) -> None:
    [host] = [plane for plane in planes(MI300) if name_of(plane) == "/host:CPU"]
    by_tracer = {numbers(line)[1] for line in blocks(host, LINES) if name_of(line).startswith("Host Threads/")}
    by_xla = {numbers(line)[1] for line in blocks(host, LINES)} - by_tracer
    assert by_tracer
    assert not by_tracer & by_xla
    _, out, _ = run("findings", MI300, capsys=capsys)
    words = " ".join(out.split())
    assert "can't be tied to it: they have threads of other numbers" in words
    assert "outside of all that was recorded" not in words


ADVICE = {
    "memory": (3, "sampled in the table counters: inferometer sql FILE 'SELECT metric, device, max(value)"),
    "counters": (3, "On AMD: rocprofv3 --pmc"),
    "launches --by user-frame": (0, "python_tracer_level = 1 in jax.profiler.ProfileOptions"),
}


@real_files
@pytest.mark.parametrize("command", ADVICE)
def test_advice_is_for_jax(command: str, path: Path, capsys: Printed) -> None:
    name, *options = command.split()
    code, out, err = run(name, path, *options, capsys=capsys)
    expected, words = ADVICE[command]
    assert code == expected
    assert words in " ".join((out + err).split())
    assert "torch" not in out + err


def test_the_query_that_memory_names_has_the_allocators_peak(capsys: Printed) -> None:
    query = "SELECT metric, device, max(value) AS most FROM counters GROUP BY metric, device"
    code, out, _ = run("sql", H200, query, "--json", capsys=capsys)
    found = {row["metric"]: row["most"] for row in json.loads(out)["rows"]}
    assert code == 0
    assert found["peak_bytes_in_use"] >= found["bytes_allocated"] > 0
