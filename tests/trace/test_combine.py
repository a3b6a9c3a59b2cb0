"""Traces of ranks as one: rows of all, exact clocks, ids that stay apart, facts and losses of all."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import rows, trace_of

from inferometer.trace.combine import (
    Clock,
    OpenTraces,
    TracePart,
    align_clocks,
    combine_losses,
    combine_tables,
    scope_of,
)
from inferometer.trace.combined_facts import Skew, combine_facts, rank_files
from inferometer.trace.facts import Device, Facts, NamedId, RankFile
from inferometer.trace.trace import Trace

NOW = 1_700_000_000_000_000_000


def parts_of(*traces: Trace) -> list[TracePart]:
    return [TracePart(trace, f"rank{i}.json", (i,)) for i, trace in enumerate(traces)]


def combined(*traces: Trace) -> Trace:
    parts = parts_of(*traces)
    clocks = align_clocks(parts)
    facts = combine_facts(parts, clocks, rank_files(parts, clocks, {}), "folder", ())
    losses = combine_losses(parts)
    return Trace(facts, combine_tables(parts, clocks), losses, scope=scope_of(parts), scratch=OpenTraces(*traces))


def facts_of(*about: dict[str, Any]) -> Facts:
    return combined(*(trace_of(facts=each) for each in about)).facts


def at(start_ns: int, base_ns: int | None = None, **more: Any) -> Trace:
    return trace_of([{"start_ns": start_ns, **more}], facts={"clock_base_ns": base_ns})


# Clocks


def test_times_are_moved_to_the_earliest_base_to_the_nanosecond() -> None:
    trace = combined(at(5, NOW + 1_001), at(7, NOW), at(0, NOW + 3))
    assert rows(trace, "launches", "rank", "start_ns") == [(0, 1_006), (1, 7), (2, 3)]
    assert trace.facts.clock_base_ns == NOW
    assert [file.shift_ns for file in trace.facts.rank_files] == [1_001, 0, 3]
    assert [file.clock_base_ns for file in trace.facts.rank_files] == [NOW + 1_001, NOW, NOW + 3]


def test_every_time_on_the_trace_s_clock_moves_and_no_other() -> None:
    trace = combined(
        at(0, NOW),
        trace_of(
            [{"start_ns": 1, "dur_ns": 9, "queued_ns": 4}],
            counters=[{"metric": "m", "time_ns": 2, "value": 1.0}],
            log=[{"line": 1, "text": "t", "time_ns": 3}, {"line": 2, "text": "u"}],
            facts={"clock_base_ns": NOW + 10},
        ),
    )
    assert rows(trace, "launches", "start_ns", "dur_ns", "queued_ns")[1] == (11, 9, 4)
    assert rows(trace, "counters", "time_ns", "rank") == [(12, 1)]
    assert rows(trace, "log", "time_ns", "rank") == [(13, 1), (None, 1)]


def test_absolute_times_are_compared_as_they_are() -> None:
    trace = combined(at(NOW), at(NOW + 5))
    assert rows(trace, "launches", "start_ns") == [NOW, NOW + 5]
    assert trace.facts.clock_base_ns is None
    assert [file.clock_base_ns for file in trace.facts.rank_files] == [0, 0]


def test_a_base_and_absolute_times_meet_on_absolute_times() -> None:
    trace = combined(at(NOW), at(5, NOW))
    assert rows(trace, "launches", "start_ns") == [NOW, NOW + 5]
    assert trace.facts.clock_base_ns is None


def test_times_without_a_base_stay_as_they_are() -> None:
    trace = combined(at(5, NOW + 100), at(7), at(9, NOW))
    assert rows(trace, "launches", "start_ns") == [105, 7, 9]
    assert [file.clock_base_ns for file in trace.facts.rank_files] == [NOW + 100, None, NOW]
    assert trace.facts.clock_base_ns == NOW


def test_a_trace_without_times_needs_no_clock() -> None:
    assert align_clocks(parts_of(at(5, NOW), trace_of())) == [Clock(NOW, 0), Clock(None, 0, has_times=False)]


def test_bases_too_far_apart_for_64_bits_are_not_compared() -> None:
    clocks = align_clocks(parts_of(at(5, 2**63 - 1), at(5, -(2**62))))
    assert [(clock.base_ns, clock.shift_ns) for clock in clocks] == [(None, 0), (None, 0)]


@pytest.mark.parametrize(
    ("times", "base_ns"),
    [
        ([10**18], None),  # 2001-09-09, the bound itself
        ([10**18 + 1_000], 0),
        ([4 * 10**18 - 1_000], 0),
        ([4 * 10**18], None),  # 2096-10-02
        ([1_000], None),
        ([0, 0, 4 * 10**18 - 1], None),  # the usual time counts, not the mean
        ([0, NOW, NOW], 0),
    ],
)
def test_times_from_2001_to_2096_are_absolute(times: list[int], base_ns: int | None) -> None:
    assert align_clocks(parts_of(trace_of([{"start_ns": time} for time in times]))) == [Clock(base_ns, 0, True)]


@pytest.mark.parametrize(("apart", "shifts"), [(2**62, [2**62, 0]), (2**62 + 1, [0, 0])])
def test_bases_may_be_2_to_the_62_apart(apart: int, shifts: list[int]) -> None:
    clocks = align_clocks(parts_of(at(5, apart), at(5, 0)))
    assert [clock.shift_ns for clock in clocks] == shifts
    assert [clock.base_ns is None for clock in clocks] == [shifts == [0, 0]] * 2


def test_clocks_that_cant_be_compared_have_times_still() -> None:
    clocks = align_clocks(parts_of(at(5, 2**63 - 1), at(5, -(2**62)), trace_of()))
    assert clocks == [Clock(None, 0, True), Clock(None, 0, True), Clock(None, 0, False)]


# Rows


def test_numbers_of_paths_frames_and_sections_go_on_where_the_file_before_ended() -> None:
    def one() -> Trace:
        return trace_of(
            calls=[{"api": "a", "start_ns": 0, "dur_ns": 0, "path_id": 1}],
            call_paths=[{"path_id": i, "parent_id": i - 1 if i else None, "name": "n", "depth": 0} for i in (0, 1, 2)],
            frames=[
                {"frame": "f", "start_ns": 0, "dur_ns": 0, "frame_id": i, "parent": p} for i, p in [(7, None), (9, 7)]
            ],
            path_totals=[{"path_id": 2, "order": 0}],
            totals=[{"section": 0, "kernel": "k"}, {"section": 1, "kernel": "k"}],
            launches=(),
        )

    trace = combined(one(), one())
    assert rows(trace, "call_paths", "path_id", "parent_id", "rank") == [
        *((0, None, 0), (1, 0, 0), (2, 1, 0)),
        *((3, None, 1), (4, 3, 1), (5, 4, 1)),
    ]
    assert rows(trace, "calls", "path_id") == [1, 4]
    assert rows(trace, "path_totals", "path_id", "rank") == [(2, 0), (5, 1)]
    assert rows(trace, "frames", "frame_id", "parent") == [(7, None), (9, 7), (17, None), (19, 17)]
    assert rows(trace, "totals", "section", "rank") == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_numbers_too_large_to_go_on_stay_as_they_are() -> None:
    def one() -> Trace:
        return trace_of(frames=[{"frame": "f", "start_ns": 0, "dur_ns": 0, "frame_id": 2**63 - 1}])

    assert rows(combined(one(), one()), "frames", "frame_id") == [2**63 - 1] * 2


@pytest.mark.parametrize(("least", "ids"), [(2**61 - 1, [2**61 - 1, 2**62 - 1]), (2**61, [2**61] * 2)])
def test_numbers_go_on_up_to_2_to_the_62(least: int, ids: list[int]) -> None:
    def one() -> Trace:
        return trace_of(frames=[{"frame": "f", "start_ns": 0, "dur_ns": 0, "frame_id": least}])

    assert rows(combined(one(), one()), "frames", "frame_id") == ids


def test_rows_of_a_file_with_several_ranks_keep_theirs() -> None:
    several = trace_of([{"rank": 3}, {"rank": 4}, {}], facts={"ranks": (3, 4)})
    parts = [TracePart(trace_of([{}]), "a", (0,)), TracePart(several, "b.ifm", (3, 4))]
    frames = combine_tables(parts, align_clocks(parts))
    assert frames["launches"].select("rank").collect().to_series().to_list() == [0, 3, 4, None]


def test_tables_and_columns_that_one_part_lacks_are_not_read() -> None:
    parts = parts_of(trace_of([{}], tables={"launches", "ops"}), trace_of([{}], tables={"launches", "calls"}))
    assert scope_of(parts) == set(combine_tables(parts, align_clocks(parts))) == {"launches"}
    narrow = trace_of([{}])
    narrow = Trace(narrow.facts, {"launches": narrow.launches.select("dur_ns", "rank")}, narrow.losses)
    both = parts_of(trace_of([{}, {}]), narrow)
    launches = combine_tables(both, align_clocks(both))["launches"]
    assert launches.collect().rows() == [(0, 1), (0, 1), (1, 1)]


def test_a_table_of_nothing_but_ranks_keeps_its_rows() -> None:
    trace = trace_of([{}, {}])
    narrow = Trace(trace.facts, {"launches": trace.launches.select("rank")}, trace.losses)
    parts = parts_of(narrow)
    assert combine_tables(parts, align_clocks(parts))["launches"].collect().height == 2


LAUNCH = st.fixed_dictionaries(
    {
        "rank": st.integers(0, 3),
        "kernel": st.sampled_from(["a", "b"]),
        "start_ns": st.integers(0, 1_000),
        "dur_ns": st.integers(0, 50),
        "correlation_id": st.none() | st.integers(0, 5),
        "process": st.none() | st.just(7),
    }
)


@given(st.lists(LAUNCH, max_size=30), st.lists(st.integers(0, 10**15), min_size=4, max_size=4))
@examples(60)
def test_a_trace_split_into_ranks_and_combined_is_the_same(launches: list[dict[str, Any]], offs: list[int]) -> None:
    whole = trace_of(launches)
    first = min(offs)
    parts = [
        trace_of(
            [
                each | {"rank": None, "start_ns": each["start_ns"] - (off - first)}
                for each in launches
                if each["rank"] == rank
            ],
            facts={"clock_base_ns": NOW + off},
        )
        for rank, off in enumerate(offs)
    ]
    again = combined(*parts)
    assert again.launches.collect().equals(whole.launches.sort("rank", maintain_order=True).collect())
    assert again.facts.clock_base_ns == NOW + first


def test_closing_the_whole_closes_the_parts() -> None:
    class Kept:
        closed = 0

        def cleanup(self) -> None:
            self.closed += 1

    kept = [Kept(), Kept()]
    traces = [Trace(Facts("f", "s"), {}, trace_of().losses, scratch=each) for each in kept]
    with combined(*traces):
        assert [each.closed for each in kept] == [0, 0]
    assert [each.closed for each in kept] == [1, 1]


def test_parts_live_as_long_as_the_whole() -> None:
    class Kept:
        closed = 0

        def cleanup(self) -> None:
            self.closed += 1

    kept = Kept()
    trace = combined(Trace(Facts("f", "s"), {}, trace_of().losses, scratch=kept))
    assert kept.closed == 0
    del trace
    assert kept.closed == 1


# Losses


def test_losses_are_added_up_and_say_which_file_the_example_is_from() -> None:
    traces = [trace_of([{}]), trace_of([{}])]
    for i, trace in enumerate(traces):
        trace.losses.see("kernel", 3)
        trace.losses.count("without_duration", 1 + i, category="kernel", example=f"place {i}")
    losses = combined(*traces).losses
    assert losses.seen == {"kernel": 6}
    assert [(loss.name, loss.count, loss.category, loss.example) for loss in losses] == [
        ("without_duration", 3, "kernel", "rank0.json: place 0")
    ]


# Facts


def test_what_all_files_say_is_said_of_the_whole() -> None:
    about = facts_of(*[{"tool": "T", "world_size": 8, "hosts": (host,), "versions": {"cuda": "12"}} for host in "ba"])
    assert (about.tool, about.world_size, about.hosts, about.versions) == ("T", 8, ("a", "b"), {"cuda": "12"})
    assert (about.ranks, about.source, about.notes) == ((0, 1), "folder", ())


def test_what_files_differ_in_is_noted_and_not_chosen() -> None:
    about = facts_of(
        {"framework": "A", "versions": {"cuda": "12", "x": "1"}, "recorded": {"shapes": True, "stacks": True}},
        {"framework": "B", "versions": {"cuda": "13"}, "recorded": {"shapes": False, "stacks": True, "flops": True}},
    )
    assert (about.framework, about.versions, about.recorded) == (None, {"x": "1"}, {"stacks": True})
    assert about.notes == (
        "The files differ in framework: A (rank0.json), B (rank1.json).",
        "The files differ in recorded shapes: True (rank0.json), False (rank1.json).",
        "The files differ in version cuda: 12 (rank0.json), 13 (rank1.json).",
    )


def test_a_world_smaller_than_the_ranks_is_none() -> None:
    assert facts_of({"world_size": 1}, {"world_size": 1}).world_size is None


def test_different_tools_are_both_named() -> None:
    about = facts_of({"tool": "A"}, {"tool": "B"}, {"tool": "A"})
    assert about.tool == "A, B"


def test_names_of_processes_get_their_rank() -> None:
    about = facts_of(*[{"processes": (NamedId(1, name=name),), "threads": (NamedId(1, 2),)} for name in "ab"])
    assert about.processes == (NamedId(1, name="a", rank=0), NamedId(1, name="b", rank=1))
    assert about.threads == (NamedId(1, 2, rank=0), NamedId(1, 2, rank=1))


@pytest.mark.parametrize(
    ("devices", "known"),
    [
        (["A", "A"], [Device("gpu:0", "A")]),
        (["A", "B"], [Device("gpu:0", "A", rank=0), Device("gpu:0", "B", rank=1)]),
        (["A", None], [Device("gpu:0", "A")]),
    ],
)
def test_a_device_stands_once_a_rank_only_where_ranks_differ(
    devices: Sequence[str | None], known: list[Device]
) -> None:
    described = [() if name is None else (Device("gpu:0", name),) for name in devices]
    assert list(facts_of(*({"devices": each} for each in described)).devices) == known


def test_a_device_that_files_of_one_machine_tell_of_is_one_device() -> None:
    """NVML has all of its memory, PyTorch what programs may have, and more of the rest."""
    nvml = Device("gpu:0", "NVIDIA H200", memory_bytes=150_754_820_096)
    torch = Device("gpu:0", "NVIDIA H200", memory_bytes=150_109_880_320, multiprocessors=132)
    about = [{"devices": (each,), "ranks": ()} for each in (nvml, torch, Device("gpu:0", warp_size=32))]
    parts = [TracePart(trace_of(facts=facts), "a.ifm", ()) for facts in about]
    assert combine_facts(parts, align_clocks(parts), (), "run.ifm", []).devices == (
        Device("gpu:0", "NVIDIA H200", 150_109_880_320, 132, warp_size=32),
    )


def test_notes_say_whose_they_are_unless_all_say_the_same() -> None:
    about = facts_of({"notes": ("same", "mine")}, {"notes": ("same",)})
    assert about.notes == ("same", "rank0.json: mine")


def test_engine_metrics_stand_by_file_where_several_have_them() -> None:
    assert facts_of({"engine_metrics": {"a": 1}}, {}).engine_metrics == {"a": 1}
    both = facts_of({"engine_metrics": {"a": 1}}, {"engine_metrics": {"a": 2}}).engine_metrics
    assert both == {"rank0.json": {"a": 1}, "rank1.json": {"a": 2}}


def test_a_rank_file_holds_its_clock_and_its_skew() -> None:
    parts = parts_of(at(1, NOW), at(1, NOW + 5))
    files = list(rank_files(parts, align_clocks(parts), {1: Skew(40, 3, 9)}))
    assert files == [
        RankFile(0, "rank0.json", "by-hand", "file", NOW),
        RankFile(1, "rank1.json", "by-hand", "file", NOW + 5, 5, 40, 3, 9),
    ]


def test_ranks_of_a_store_keep_the_files_that_they_came_from() -> None:
    files = tuple(RankFile(rank, f"{rank}.json", "kineto", "name", NOW + rank, rank) for rank in (0, 1))
    store = trace_of([{"rank": 0}], facts={"ranks": (0, 1), "rank_files": files, "clock_base_ns": NOW})
    parts = [TracePart(store, "both.ifm", (0, 1)), TracePart(at(1, NOW - 10), "2.json", (2,))]
    found = list(rank_files(parts, align_clocks(parts), {}))
    assert [(file.file, file.shift_ns) for file in found] == [("0.json", 10), ("1.json", 11), ("2.json", 0)]


def test_a_combined_trace_has_the_declared_columns() -> None:
    trace = combined(trace_of([{"grid": [1, 2, 3]}]), trace_of([{}]))
    for name, frame in trace.tables.items():
        assert frame.collect_schema() == trace_of().tables[name].collect_schema()
    assert trace.launches.filter(pl.col("rank") == 0).select("grid").collect().item().to_list() == [1, 2, 3]
