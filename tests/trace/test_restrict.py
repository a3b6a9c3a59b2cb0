"""Some ranks of a trace: their rows, and what the facts say of them."""

import pytest
from tests.traces import rows, trace_of

from inferometer.errors import UnknownName
from inferometer.trace.facts import Device, NamedId, RankFile
from inferometer.trace.restrict import restrict_ranks
from inferometer.trace.trace import Trace


def make_trace() -> Trace:
    return trace_of(
        [{"rank": 0}, {"rank": 1, "kernel": "one"}, {}],
        ops=[{"op": "o", "start_ns": 0, "dur_ns": 1, "rank": 1}],
        facts={
            "ranks": (0, 1),
            "processes": (NamedId(7, rank=0), NamedId(7, rank=1), NamedId(9)),
            "devices": (Device("gpu:0", rank=0), Device("gpu:1")),
            "rank_files": (RankFile(0, "a", "f", "file"), RankFile(1, "b", "f", "file")),
        },
    )


def test_rows_of_other_ranks_and_of_none_are_left_out() -> None:
    one = restrict_ranks(make_trace(), [1])
    assert rows(one, "launches", "rank", "kernel") == [(1, "one")]
    assert rows(one, "ops", "op") == ["o"]
    assert one.scope == make_trace().scope


def test_facts_are_those_of_the_ranks_and_of_the_whole() -> None:
    about = restrict_ranks(make_trace(), [1]).facts
    assert about.ranks == (1,)
    assert about.processes == (NamedId(7, rank=1), NamedId(9))
    assert about.devices == (Device("gpu:1"),)
    assert [file.file for file in about.rank_files] == ["b"]


def test_an_unknown_rank_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match='unknown rank "5"\n  Known, nearest first: 0, 1'):
        restrict_ranks(make_trace(), [1, 5])


def test_the_whole_lives_as_long_as_its_part() -> None:
    class Kept:
        closed = False

        def cleanup(self) -> None:
            self.closed = True

    kept = Kept()
    whole = make_trace()
    part = restrict_ranks(Trace(whole.facts, dict(whole.tables), whole.losses, scratch=kept), [0])
    assert not kept.closed
    part.close()
    assert kept.closed
