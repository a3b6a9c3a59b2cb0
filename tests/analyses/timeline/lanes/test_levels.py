"""At every level count and time are those of the events, to the nanosecond; a window has what there is to see of it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.conftest import SHARED_DATA
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Level, Levels, least_level
from inferometer.analyses.timeline.lanes.window import cut_window, level_of

KINETO = SHARED_DATA / "traces" / "kineto"
Sums = dict[tuple[int, int], tuple[int, int]]


def line_of(*launches: tuple[int, int]) -> Lanes:
    line = find_lanes(trace_of([{"start_ns": start, "dur_ns": dur} for start, dur in launches]))
    assert line is not None
    return line


def sums(line: Lanes, level: Level) -> Sums:
    """Count and time of each row and category, of events and slices together."""
    found: Sums = {}
    rows, categories = line.event_row, line.name_category[line.name]
    parts: list[tuple[NDArray[Any], ...]] = [
        (rows[level.single], categories[level.single], np.ones_like(level.single), line.dur_ns[level.single])
    ]
    parts.append((level.slices.row, level.slices.category, level.slices.count, level.slices.ns))
    for part in parts:
        for row, category, count, ns in zip(*(column.tolist() for column in part), strict=True):
            before = found.get((row, category), (0, 0))
            found[row, category] = (before[0] + count, before[1] + ns)
    return found


def test_an_event_that_reaches_into_the_next_slice_has_time_in_both_and_counts_once() -> None:
    slices = Levels(line_of((0, 1), (6, 5), (20, 9))).at(3).slices
    assert list(zip(slices.at.tolist(), slices.ns.tolist(), slices.count.tolist(), strict=True)) == [
        (0, 1 + 2, 2),
        (1, 3, 0),
    ]
    assert slices.longest_ns.tolist() == [5, 5]


def test_what_is_as_long_as_a_slice_stays_single() -> None:
    level = Levels(line_of((0, 7), (8, 8))).at(3)
    assert (level.single.tolist(), level.slices.at.tolist()) == ([1], [0])


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 70)), min_size=1, max_size=40), st.permutations(range(9)))
def test_every_level_conserves_time_and_count_in_whatever_order_they_are_made(
    drawn: list[tuple[int, int]], order: list[int]
) -> None:
    line = line_of(*drawn)
    levels = Levels(line)
    whole = sums(line, Levels(line).at(0))
    for level in order:
        assert sums(line, levels.at(level)) == whole
        assert (levels.at(level).slices.ns <= 1 << level).all()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 70)), min_size=1, max_size=40))
def test_no_level_has_less_than_its_least(drawn: list[tuple[int, int]]) -> None:
    line = line_of(*drawn)
    for finer in (0, 2):
        for level in range(finer + 1, 9):
            found = Levels(line)
            singles, slices = least_level(line, found.at(finer), level)
            assert singles == len(found.at(level).single)
            assert slices <= len(found.at(level).slices.row)


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
@pytest.mark.parametrize("name", ["a100_nccl", "h100_vit", "mi300_resnet_ddp", "v100_graph_branches"])
def test_levels_of_real_traces_conserve_time_and_count(name: str) -> None:
    line = find_lanes(inferometer.open(KINETO / f"{name}.json.gz"))
    assert line is not None
    levels = Levels(line)
    whole = sums(line, levels.at(0))
    assert sum(ns for _, ns in whole.values()) == int(line.dur_ns.sum())
    for level in range(1, 36):
        found = levels.at(level)
        assert sums(line, found) == whole
        assert (line.dur_ns[found.single] >= 1 << level).all()


@pytest.mark.parametrize(
    ("width", "pixels", "level"),
    [(1_000, 1_000, 0), (1_001, 1_000, 1), (4_000, 1_000, 2), (4_001, 1_000, 3), (5, 9, 0)],
)
def test_slices_are_the_finest_that_are_a_pixel_wide(width: int, pixels: int, level: int) -> None:
    assert level_of(width, pixels) == level


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40)), min_size=1, max_size=30),
    st.integers(0, 240),
    st.integers(1, 240),
    st.integers(1, 64),
)
def test_a_window_has_all_that_reaches_into_it_and_nothing_else(
    drawn: list[tuple[int, int]], start: int, width: int, pixels: int
) -> None:
    line = line_of(*drawn)
    found = cut_window(Levels(line), start, start + width, pixels)
    level = Levels(line).at(level_of(width, pixels))
    size = 1 << level.level
    wanted = [
        event
        for event in level.single.tolist()
        if line.start_ns[event] < start + width
        and (line.start_ns[event] + line.dur_ns[event] > start or line.start_ns[event] >= start)
    ]
    assert found.single.tolist() == wanted
    at = level.slices.at[(level.slices.at * size < start + width) & ((level.slices.at + 1) * size > start)]
    assert found.slices.at.tolist() == at.tolist()


def test_a_window_of_some_lanes_has_those_alone() -> None:
    line = find_lanes(trace_of([{"stream": stream, "start_ns": 0, "dur_ns": 9} for stream in range(5)]))
    assert line is not None
    assert cut_window(Levels(line), 0, 9, 9, {1, 3}).single.tolist() == [1, 3]


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
def test_a_window_is_bounded_by_its_pixels() -> None:
    line = find_lanes(inferometer.open(KINETO / "v100_graph_branches.json.gz"))
    assert line is not None
    levels, rows = Levels(line), len(line.row_at) - 1
    for pixels in (100, 700):
        found = cut_window(levels, 0, line.length_ns, pixels)
        assert len(found.single) <= (pixels + 2) * rows
        assert len(np.unique(found.slices.row * 2**40 + found.slices.at)) <= (pixels + 2) * rows
