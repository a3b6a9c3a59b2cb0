"""What jobs and readers do, asked in this process."""

import json
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.conformance.samples import BESIDE, NAMES
from tests.conformance.samples import SAMPLES as SAMPLES_OF
from tests.conftest import SHARED_DATA
from tests.fleet.digests import fleet_of, kernel
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Levels
from inferometer.errors import InputError
from inferometer.formats.base import known_formats
from inferometer.record.journal.journal import Journal
from inferometer.reports.page.blocks import Numbers
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import overview
from inferometer.reports.page.time_line.pack import unpack
from inferometer.reports.serve.work import kinds, live, windows
from inferometer.reports.serve.work.line_files import KeptLevels
from inferometer.reports.serve.work.line_marks import find_places
from inferometer.reports.serve.work.opened import JobRun, open_run, text_of
from inferometer.units import format_duration

KINETO = SHARED_DATA / "traces" / "kineto"
SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def silent(doing: str, share: float | None) -> None:
    """Nobody looks on."""


def given(path: Path, kept: Path, kind: str = "file") -> JobRun:
    kept.mkdir(exist_ok=True)
    return JobRun(path=text_of(path), kind=kind, kept=str(kept), title=path.name, is_limited=True)


def test_of_two_jobs_that_ask_for_a_run_that_is_new_one_reads_it(tmp_path: Path) -> None:
    run = given(SAMPLES / "decode.json.gz", tmp_path / "kept")
    second = Thread(target=lambda: told.append(open_run(run, silent)))
    told: list[Any] = []

    def tell(doing: str, share: float | None) -> None:
        if doing.startswith("reading") and second.ident is None:
            second.start()
            second.join(0.2)  # it gets as far as it can

    first = open_run(run, tell)
    second.join(60)

    assert [trace.launches.collect().height for trace in told] == [first.launches.collect().height]


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The time line of a sample, laid out."""
    kept = tmp_path_factory.mktemp("kept")
    kinds.line(silent, given(SAMPLES / "decode.json.gz", kept), str(kept / "line"))
    return kept / "line"


def test_a_kept_time_line_is_the_one_that_was_laid_out(line: Path) -> None:
    trace = inferometer.open(SAMPLES / "decode.json.gz")
    whole, kept = find_lanes(trace, find_places(trace)[0]), KeptLevels(line).lanes
    assert whole is not None

    for column in ("row_at", "start_ns", "dur_ns", "name", "tie", "name_category"):
        assert (getattr(whole, column) == getattr(kept, column)).all(), column
    for field in ("origin_ns", "length_ns", "lanes", "names", "categories"):
        assert getattr(whole, field) == getattr(kept, field), field
    streams = [row for row, lane in enumerate(kept.row_lane) if kept.lanes[lane].kind == "stream"]
    starts = np.concatenate([kept.start_ns[slice(*kept.row_at[row : row + 2])] for row in streams]) + kept.origin_ns
    assert sorted(starts.tolist()) == sorted(trace.launches.select("start_ns").collect()["start_ns"].to_list())


def test_the_longest_gaps_are_marked_on_it(line: Path) -> None:
    """Times in which no stream of the device ran anything, found launch by launch."""
    launches = inferometer.open(SAMPLES / "decode.json.gz").launches.select("start_ns", "dur_ns").collect()
    idle: list[tuple[int, int]] = []
    until = None
    for start, dur in sorted(launches.iter_rows()):
        if until is not None and start > until:
            idle.append((until, start))
        until = max(until or start + dur, start + dur)
    kept = KeptLevels(line)
    marks = [mark for mark in kept.marks if "idle for" in mark["text"]]
    places = [(mark["start"] + kept.lanes.origin_ns, mark["end"] + kept.lanes.origin_ns) for mark in marks]

    assert len(marks) == 10
    lengths = [end - start for start, end in places]
    assert lengths == sorted(lengths, reverse=True)
    for start, end in places:  # each is one of these, or a part: a gap may have several causes
        assert any(first <= start and end <= last for first, last in idle)
    longest = sorted((last - first for first, last in idle), reverse=True)
    assert longest[1] < lengths[0] <= longest[0]


def test_a_level_that_is_kept_is_the_one_that_is_made(line: Path) -> None:
    kept = KeptLevels(line)
    made = Levels(kept.lanes)

    found = {kept.at(level).level for level in range(40)}
    assert len(found) > 3
    for level in found:
        assert (kept.at(level).single == made.at(level).single).all()
        for own, other in zip(kept.at(level).slices.columns(), made.at(level).slices.columns(), strict=True):
            assert (own == other).all()


@pytest.mark.parametrize("part", [(0.0, 1.0, 1000), (0.2, 0.3, 1000), (0.2, 0.2001, 800), (0.0, 1.0, 1), (0.9, 0.9, 5)])
def test_a_window_has_what_begins_in_it_single_or_merged(line: Path, part: tuple[float, float, int]) -> None:
    kept = KeptLevels(line).lanes
    start, end, pixels = int(part[0] * kept.length_ns), int(part[1] * kept.length_ns), part[2]

    header, columns = unpack(windows.rows(str(line), range(len(kept.lanes)), start, end, pixels))

    size = 1 << header["lanes"][0]["level"]
    low, high = -(-start // size) * size, end // size * size  # whole slices in the window
    row_ends = np.cumsum(columns["row_slices"])
    at = np.concatenate(
        [np.cumsum(columns["at"][e - n : e]) for e, n in zip(row_ends, columns["row_slices"], strict=True)]
    )
    merged = int(np.sum(columns["count"][(at * size >= low) & (at * size < high)])) if len(at) else 0
    single = sum(low <= int(kept.start_ns[place]) < high for place in header["places"])
    assert single + merged == int(((kept.start_ns >= low) & (kept.start_ns < high)).sum())


def test_events_of_a_window_say_where_they_stand_in_the_whole(line: Path) -> None:
    kept = KeptLevels(line).lanes

    header, columns = unpack(windows.rows(str(line), range(len(kept.lanes)), 0, kept.length_ns // 50, 4000))

    places = np.array(header["places"])
    assert len(places) > 100
    assert (columns["dur"] == kept.dur_ns[places]).all()
    assert header["calls"] == kept.tie[places].tolist()
    assert [header["names"][name] for name in columns["name"][:50]] == [
        kept.names[kept.name[place]] for place in places[:50]
    ]


@pytest.mark.parametrize("part", [(0.0, 1.0), (0.2, 0.3), (0.2, 0.2001), (0.5, 0.5), (1.0, 2.0)])
def test_sums_of_a_range_are_those_of_its_events(line: Path, part: tuple[float, float]) -> None:
    kept = KeptLevels(line).lanes
    low, high = (int(each * kept.length_ns) for each in part)
    expected: dict[tuple[int, int], list[int]] = {}
    for row, lane in enumerate(kept.row_lane.tolist()):
        for event in range(kept.row_at[row], kept.row_at[row + 1]):
            start, end = int(kept.start_ns[event]), int(kept.start_ns[event] + kept.dur_ns[event])
            begins, within = low <= start < high, min(end, high) - max(start, low)
            if begins or within > 0:
                sums = expected.setdefault((lane, int(kept.name_category[kept.name[event]])), [0, 0])
                sums[0] += begins
                sums[1] += max(0, within)

    found = {(lane, category): [count, ns] for lane, category, count, ns in windows.sums(str(line), low, high)}
    assert found == expected


def test_a_search_goes_through_all_events_in_their_order(line: Path) -> None:
    kept = KeptLevels(line).lanes
    row = np.searchsorted(kept.row_at, np.arange(len(kept.start_ns)), side="right") - 1
    own = [place for place in range(len(kept.start_ns)) if "splitk_" in kept.names[kept.name[place]].lower()]
    own.sort(key=lambda place: (kept.start_ns[place], row[place]))
    assert len(own) > 20

    for by, expected in ((1, [*own, own[0]]), (-1, [*own[::-1], own[-1]])):
        at = (0, 0) if by > 0 else (kept.length_ns, 0)
        for place in expected:
            header, _ = unpack(windows.found(str(line), "TST splitk_", *at, by))
            assert (header["places"], header["total"]) == ([place], len(own))
            at = int(kept.start_ns[place]), int(row[place])


def test_a_search_for_nothing_finds_nothing(line: Path) -> None:
    header, _ = unpack(windows.found(str(line), "no such name", 0, 0, 1))

    assert (header["places"], header["total"]) == ([], 0)


@pytest.mark.parametrize("asked", [([], 0, 10, 10), ([10**6], 0, 10, 10), ([0], 10**15, 10**15 + 5, 3), ([0], 5, 1, 0)])
def test_a_window_of_nothing_is_empty(line: Path, asked: tuple[Any, ...]) -> None:
    header, columns = unpack(windows.rows(str(line), *asked))

    assert (header["places"], len(columns["count"])) == ([], 0)


@pytest.mark.parametrize("name", SAMPLES_OF)
def test_a_file_of_each_format_is_a_run_with_a_page(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / NAMES.get(name, f"sample{known_formats()[name].suffixes[0]}")
    path.write_bytes(SAMPLES_OF[name]())
    for other, make in BESIDE.get(name, {}).items():
        (folder / other).write_bytes(make())
    run = given(path, tmp_path / "kept")

    said = kinds.about(silent, run)
    kinds.page(silent, run, str(tmp_path / "page.html"))

    trace = inferometer.open(path)
    assert (said["is_profile"], said["format"]) == (True, name)
    assert said["rows"] == {table: count for table, count in trace.count_rows().items() if count}
    assert said["launches"] == said["rows"].get("launches", 0)
    assert "What to look at first" in (tmp_path / "page.html").read_text("utf-8")


def test_the_verdict_of_two_results_is_that_of_their_tests(tmp_path: Path) -> None:
    text = (SAMPLES / "engines" / "llama_bench.json").read_text()
    runs = []
    for name, factor in (("a", 1), ("b", 3)):
        tests = json.loads(text)
        for test in tests:
            test["samples_ns"] = [factor * (10**8 + n) for n in range(5)]
        (tmp_path / f"{name}.json").write_text(json.dumps(tests))
        runs.append(given(tmp_path / f"{name}.json", tmp_path / f"kept-{name}"))

    said = kinds.verdict(silent, runs[0], runs[1], str(tmp_path / "verdict.json"))

    assert (said["outcome"], said["ratio"]) == ("slower", None)
    assert said["headline"].startswith("4 slower of 4 tests: pp32 takes 3.000 times as long")


def test_a_run_without_times_has_no_time_line(tmp_path: Path) -> None:
    trace_of(totals=[{"section": 0, "kernel": "gemm", "total_ns": 5}]).save(tmp_path / "run.ifm")

    found = kinds.line(silent, given(tmp_path / "run.ifm", tmp_path / "kept", "store"), str(tmp_path / "line"))

    assert found == {"events": 0}


def test_a_file_is_read_once_and_a_damaged_store_of_ours_again(tmp_path: Path) -> None:
    run = given(SAMPLES / "decode.json.gz", tmp_path / "kept")
    first = kinds.about(silent, run)
    store = tmp_path / "kept" / "run.ifm"
    part = next(store.glob("launches-*.parquet"))
    part.write_bytes(part.read_bytes()[:100])

    assert kinds.about(silent, run) == first
    assert first["launches"] == 786
    assert first["devices"] == ["NVIDIA H100 80GB HBM3"]


def test_what_the_list_says_is_what_summary_and_report_say(tmp_path: Path) -> None:
    path = SAMPLES / "h200" / "normal.ifm"
    about = kinds.about(silent, given(path, tmp_path / "kept", "store"))
    trace = inferometer.open(path)
    steps = trace.steps.select("dur_ns").drop_nulls().collect()["dur_ns"]
    launches = trace.launches.select("start_ns", "dur_ns").collect().sort("start_ns")

    busy, reached = 0, 0
    for start, dur in launches.rows():
        busy += max(0, start + dur - max(start, reached))
        reached = max(reached, start + dur)
    window = reached - launches["start_ns"][0]
    assert about["busy_share"] == pytest.approx(busy / window)
    numbers = next(part.numbers for part in overview.build(PageData(trace)).parts if isinstance(part, Numbers))
    assert format_duration(about["step_ns"]) == next(one.value for one in numbers if one.label == "Step")
    assert (about["steps"], about["launches"]) == (len(steps), launches.height)
    assert about["date"].startswith("2026-11-26T05:44")


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
def test_the_list_has_the_step_that_the_profiler_marked(tmp_path: Path) -> None:
    """PyTorch records no rows of `steps`: its ranges mark them."""
    path = KINETO / "h100_vit.json.gz"
    about = kinds.about(silent, given(path, tmp_path / "kept"))
    trace = inferometer.open(path)
    marked = trace.spans.filter(pl.col("span").str.starts_with("ProfilerStep#")).collect()
    (begun,) = marked.filter(pl.col("stream").is_null())["start_ns"].to_list()
    ends = trace.launches.select(pl.col("start_ns") + pl.col("dur_ns")).collect().to_series()

    assert about["steps"] == 1
    assert about["step_ns"] >= ends.max() - begun
    numbers = next(part.numbers for part in overview.build(PageData(trace)).parts if isinstance(part, Numbers))
    assert format_duration(about["step_ns"]) == next(one.value for one in numbers if one.label == "Step")


def test_a_recording_gives_what_is_new(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.ifm", flush_s=1e6) as journal:

        def add(step: int) -> None:
            at = {"start_ns": [step * 10**9], "dur_ns": [10**8 + step]}
            journal.add("steps", 1, {"step": [step], "phase": "decode", "source": "recorded", **at})
            sample = {
                "metric": ["power"],
                "device": "gpu:0",
                "unit": "W",
                "time_ns": [step * 10**9],
                "value": [300.0 + step],
            }
            journal.add("counters", 1, sample)
            journal.flush()

        for step in range(5):
            add(step)
        first = live.look([str(tmp_path / "run.ifm")], -1)
        add(5)
        second = live.look([str(tmp_path / "run.ifm")], first["now"])

    assert first["steps"] == 5
    assert [(ns, phase) for _, ns, phase in first["new_steps"]] == [(10**8 + step, "decode") for step in range(5)]
    assert [at for at, *_ in first["new_steps"]] == pytest.approx([step + 0.1 for step in range(5)])
    assert (first["is_finished"], first["step_ns"], first["seconds"]) == (False, 10**8 + 2.0, pytest.approx(4.1))
    assert first["metrics"][0]["points"] == [(float(step), 300.0 + step) for step in range(5)]
    assert [row[1] for row in second["new_steps"]] == [10**8 + 5]
    assert second["metrics"][0]["points"] == [(5.0, 305.0)]
    assert live.look([str(tmp_path / "run.ifm")], 9.0)["is_finished"] is True


def test_a_recording_of_several_processes_is_one(tmp_path: Path) -> None:
    stores = [tmp_path / f"{i}.ifm" for i in range(2)]
    for i, store in enumerate(stores):
        with Journal(store) as journal:
            at = {"start_ns": [i], "dur_ns": [7 + i]}
            journal.add("steps", 1, {"step": [i], "source": "recorded", **at})

    found = live.look([*map(str, stores), str(tmp_path / "unborn.ifm")], -1)

    assert (found["steps"], found["processes"]) == (2, 3)


def test_a_recording_that_can_t_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a store"):
        live.look([str(tmp_path / "absent.ifm")], -1)
    with pytest.raises(InputError, match="has no parts yet"):
        live.look([], -1)


def test_every_launch_of_real_traces_is_in_the_first_view(shared_data: Path, tmp_path: Path) -> None:
    traces = sorted((SHARED_DATA / "traces" / "kineto").glob("*.json.gz"), key=lambda path: path.stat().st_size)[:4]
    assert traces
    for number, path in enumerate(traces):
        kept = tmp_path / str(number)
        found = kinds.line(silent, given(path, kept), str(kept / "line"))
        if not found["events"]:
            continue
        lanes = KeptLevels(kept / "line").lanes
        launches = inferometer.open(path, {"launches"}).launches.select("dur_ns").collect()["dur_ns"]
        header, columns = unpack(windows.first(str(kept / "line")))
        ends = np.cumsum(columns["row_slices"])
        row_lane = lanes.row_lane
        count = ns = 0
        for row, lane in enumerate(row_lane):
            if lanes.lanes[lane].kind == "stream":
                own = slice(ends[row] - columns["row_slices"][row], ends[row])
                count += int(np.sum(columns["count"][own]))
                ns += int(np.sum(columns["ns"][own]))
        single = [place for place in header["places"] if lanes.lanes[row_lane[_row(lanes, place)]].kind == "stream"]
        deeper = [(lane.deeper, lane.deeper_ns) for lane in lanes.lanes if lane.kind == "stream"]
        assert count + len(single) + sum(each for each, _ in deeper) == len(launches)
        assert ns + int(lanes.dur_ns[single].sum()) + sum(each for _, each in deeper) == int(launches.sum())


def _row(lanes: Any, place: int) -> int:
    return int(np.searchsorted(lanes.row_at, place, side="right")) - 1


def test_a_fleet_has_its_page_its_facts_and_its_tables(tmp_path: Path) -> None:
    traces = {
        name: {"about": {"gpu": "H100", "held_ns": 100, "busy_ns": busy}, "kernels": [kernel("k", busy)]}
        for name, busy in (("a", 20), ("b", 60))
    }
    fleet_of(tmp_path / "all.ifm", traces)
    run = given(tmp_path / "all.ifm", tmp_path / "kept", "fleet")

    about = kinds.about(silent, run)
    assert (about["is_profile"], about["traces"], about["devices"], about["busy_share"]) == (True, 2, ["H100"], 0.4)
    made = kinds.page(silent, run, str(tmp_path / "kept" / "page.html"))
    html = (tmp_path / "kept" / "page.html").read_text("utf-8")
    assert made == {"bytes": len(html.encode()), "left_out": []}
    assert 'class="filters"' in html
    assert str(tmp_path) not in html
    found = kinds.query(silent, run, "select sum(total_ns) as ns from kernels", 10)
    assert found["rows"] == [["80"]]
    for query in ("select * from launches", "select * from read_parquet('x')"):
        with pytest.raises(InputError):
            kinds.query(silent, run, query, 10)


def test_a_fleet_that_is_damaged_says_so(tmp_path: Path) -> None:
    fleet_of(tmp_path / "all.ifm", {"a": {"kernels": [kernel("k", 1)]}})
    (tmp_path / "all.ifm" / "tables" / "traces.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="expected the table as it was written"):
        kinds.about(silent, given(tmp_path / "all.ifm", tmp_path / "kept", "fleet"))
