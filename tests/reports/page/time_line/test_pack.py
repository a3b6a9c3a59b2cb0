"""Packed columns unpack to the same events and slices; what has no room is merged, and the page says so."""

import gzip
import json

import numpy as np
import pytest
from tests.conftest import SHARED_DATA
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.events import NO_TIE, Category, Lanes
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Levels
from inferometer.analyses.timeline.lanes.window import Excerpt, cut_window
from inferometer.findings.finding import Finding
from inferometer.reports.page.blocks import TimeLine
from inferometer.reports.page.look import RunData
from inferometer.reports.page.time_line.fit import MOST_SAMPLES, fit_excerpt, thin_samples
from inferometer.reports.page.time_line.marks import find_address, find_marks
from inferometer.reports.page.time_line.markup import write_time_lines
from inferometer.reports.page.time_line.pack import pack, unpack
from inferometer.reports.page.time_line.palette import category_colors

KINETO = SHARED_DATA / "traces" / "kineto"
real = pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")


def lanes_of(name: str) -> Lanes:
    line = find_lanes(inferometer.open(KINETO / f"{name}.json.gz"))
    assert line is not None
    return line


def check(excerpt: Excerpt, *, whole: bool) -> None:
    """Undo the differences in plain Python."""
    line = excerpt.lanes
    header, columns = unpack(pack(excerpt, whole=whole))
    event, tie_sum, place_sum, slice_at = 0, 0, 0, 0
    for row, (events, slices) in enumerate(zip(columns["row_events"], columns["row_slices"], strict=True)):
        end = at = 0
        for _ in range(events):
            place = int(excerpt.single[event])
            assert line.row_at[row] <= place < line.row_at[row + 1]
            start = end + int(columns["gap"][event])
            end = start + int(columns["dur"][event])
            assert (start, end - start) == (line.start_ns[place], line.dur_ns[place])
            assert header["names"][columns["name"][event]] == line.names[line.name[place]]
            zigzag = int(columns["tie"][event])
            tie_sum += zigzag // 2 if zigzag % 2 == 0 else -(zigzag + 1) // 2
            tied = int(line.tie[place])
            if whole:
                there = tied != NO_TIE and tied in excerpt.single
                assert tie_sum - 1 == (int(np.searchsorted(excerpt.single, tied)) if there else NO_TIE)
            else:
                place_sum += int(columns["place"][event])
                assert (tie_sum - 1, place_sum) == (tied, place)
            event += 1
        for _ in range(slices):
            at += int(columns["at"][slice_at])
            assert (row, at) == (excerpt.slices.row[slice_at], excerpt.slices.at[slice_at])
            slice_at += 1
    assert (event, slice_at) == (len(excerpt.single), len(excerpt.slices.row))
    for name in ("category", "ns", "count", "longest_ns"):
        assert list(columns[name]) == getattr(excerpt.slices, name).tolist()
    assert [header["names"][i] for i in columns["longest"]] == [line.names[i] for i in excerpt.slices.name.tolist()]


@real
@pytest.mark.parametrize("name", ["a100_nccl", "h100_vit", "rank0_sampled"])
def test_real_traces_unpack_to_the_same(name: str) -> None:
    levels = Levels(lanes_of(name))
    check(fit_excerpt(levels.lanes, 10_000_000), whole=True)
    check(fit_excerpt(levels.lanes, 10_000), whole=True)
    length = levels.lanes.length_ns
    check(cut_window(levels, length // 3, length // 2, 300), whole=False)


@real
def test_counters_unpack_bit_by_bit() -> None:
    line = lanes_of("h100_vit")
    header, columns = unpack(pack(fit_excerpt(line, 10_000_000)))
    sizes = [size for *_, size in header["counters"]]
    assert sizes == [len(each.value) for each in line.samples]
    assert np.array_equal(columns["value"], np.concatenate([each.value for each in line.samples]))
    first = np.cumsum(columns["time"][: sizes[0]])
    assert first.tolist() == line.samples[0].time_ns.tolist()


def test_the_bytes_are_as_documented() -> None:
    line = find_lanes(trace_of([{"kernel": "ä", "start_ns": 5, "dur_ns": 300}, {"kernel": "b", "start_ns": 306}]))
    assert line is not None
    raw = gzip.decompress(pack(Excerpt(line, np.zeros(1, np.int64), np.arange(2), Levels(line).at(0).slices)))
    size = int.from_bytes(raw[8:12], "little")
    header = json.loads(raw[12 : 12 + size])
    assert (raw[:8], header["origin"], header["length"]) == (b"IFTL\x01\0\0\0", "5", 302)
    assert header["names"] == ["b", "ä"]
    assert header["columns"][:5] == [["row_events", 1, 1], ["gap", 2, 1], ["dur", 2, 2], ["name", 2, 1], ["tie", 2, 0]]
    assert raw[12 + size :] == bytes([2, 0, 1, 300 % 256, 1, 1, 0, 1, 0])


@real
def test_less_room_means_fewer_single_events_and_the_same_time_and_count() -> None:
    line = lanes_of("v100_graph_branches")
    singles = []
    for room in (10_000_000, 60_000, 20_000):
        found = fit_excerpt(line, room)
        singles.append(len(found.single))
        assert int(line.dur_ns[found.single].sum() + found.slices.ns.sum()) == int(line.dur_ns.sum())
        assert len(found.single) + int(found.slices.count.sum()) == len(line.dur_ns)
    assert singles[0] == len(line.dur_ns) > singles[1] > singles[2]


@real
def test_a_page_takes_no_more_than_its_room_and_says_what_it_merged() -> None:
    line = lanes_of("v100_graph_branches")
    (whole,) = write_time_lines([("timeline", TimeLine("t", "alt.", line))], 5_000_000)
    assert "alt. Every single event is in the page." in whole
    (small,) = write_time_lines([("timeline", TimeLine("t", "alt.", line))], 120_000)
    assert len(small.encode()) <= 120_000
    assert "what is short is merged, with its number and time: host calls shorter than" in small
    (none,) = write_time_lines([("timeline", TimeLine("t", "alt.", line))], 1_000)
    assert "The time line is left out: with it, the page would be too large." in none
    assert write_time_lines([("timeline", TimeLine("t", "alt.", line))], 120_000) == [small]


def test_colours_tell_families_apart_and_what_stands_around_is_pale() -> None:
    sorts = [
        Category("gemm kernels", "kernel", 9),
        Category("norm kernels", "kernel", 10),
        Category("ranges", "range", 99),
    ]
    more = [Category(f"family {i} kernels", "kernel", 1) for i in range(9)]
    colors = category_colors([*sorts, Category("communication", "kernel", 5), *more])
    assert colors[:4] == [("--series-4", 0), ("--series-1", 0), ("--series-4", 0.5), ("--series-2", 0)]
    assert colors[-1] == ("--series-8", 0)


def test_a_gap_leads_to_the_finding_about_its_cause_and_back() -> None:
    late = [
        {
            "api": "cudaLaunchKernel",
            "process": 1,
            "thread": 1,
            "correlation_id": i,
            "start_ns": i * 10**6,
            "dur_ns": 5_000,
        }
        for i in range(9)
    ]
    work = [{"start_ns": i * 10**6 + 6_000, "dur_ns": 100_000, "process": 1, "correlation_id": i} for i in range(9)]
    trace = trace_of(work, calls=late)
    run = RunData(trace)
    finding = Finding(rule="r", severity="high", title="t", evidence=(), next="n", parts=("idle.host_late",))
    assert run.lanes is not None
    assert run.timeline is not None
    marks = find_marks(run.lanes, run.timeline.gaps, None, [finding])
    assert {mark.section for mark in marks if "the host was late" in mark.text} == {"findings"}
    first = marks[0]
    assert find_address(finding, run.timeline) == f"#timeline?at={first.start_ns}-{first.end_ns}"
    assert find_address(Finding(rule="r", severity="low", title="t", evidence=(), next="n"), run.timeline) == ""
    assert {mark.section for mark in find_marks(run.lanes, run.timeline.gaps, None)} == {"timeline"}


def test_many_samples_are_thinned_to_their_extremes_and_that_is_said() -> None:
    samples = [{"metric": "power", "time_ns": t, "value": float(t % 7 == 3), "unit": "W"} for t in range(100_001)]
    line = find_lanes(trace_of([{"start_ns": 5}], counters=samples))
    assert line is not None
    (html,) = write_time_lines([("timeline", TimeLine("t", "alt.", line))], 5_000_000)
    found = len(thin_samples(line).samples[0].value)
    assert found <= MOST_SAMPLES
    assert f"Of 100,001 samples of counters, {found:,} are in it, the lowest and highest of equal parts." in html
    assert (MOST_SAMPLES, set(thin_samples(line).samples[0].value.tolist())) == (100_000, {0.0, 1.0})
