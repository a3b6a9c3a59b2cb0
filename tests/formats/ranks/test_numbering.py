"""Names to ranks: what engines and profilers call their files, and what is no rank."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import InputError
from inferometer.formats.ranks.numbering import Candidate, natural, number_ranks, ranks_by_name


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["rank0", "rank1"], [0, 1]),
        (["rank_3", "rank-04", "RANK.5", "rank=6"], [3, 4, 5, 6]),
        (["run_r3", "run_r4"], [3, 4]),
        (["worker_0_tp0.pt.trace", "worker_1_tp1.pt.trace"], [0, 1]),
        (["1718-TP-3.trace", "1718-TP-2.trace"], [3, 2]),
        (["1718-TP-0-DP-0-EP-0", "1718-TP-1-DP-0-EP-1", "1718-TP-2-DP-1-EP-2"], [0, 1, 2]),
        (["1-TP-0-DP-0", "1-TP-0-DP-1", "1-TP-1-DP-0", "1-TP-1-DP-1"], [0, 2, 1, 3]),
        (["1-TP-0-PP-0", "1-TP-0-PP-1"], [0, 1]),
        (["dp0_pp0_tp0_dcp0_ep0_rank0.17.pt.trace", "dp0_pp0_tp1_dcp0_ep1_rank1.18.pt.trace"], [0, 1]),
        (["node0_rank0", "node0_rank1", "node1_rank0", "node1_rank1"], [0, 1, 2, 3]),
        (["pp_rank_0_tp_rank_0", "pp_rank_0_tp_rank_1"], [0, 1]),
        (["node0_local_rank0_global_rank0", "node1_local_rank0_global_rank8"], [0, 8]),
        (["rank0", "1718-TP-1"], [0, 1]),
        (["report.0", "report.1"], [0, 1]),
        (["trace_1", "trace_2"], [1, 2]),
        (["vllm-worker-0_7.17.pt.trace", "vllm-worker-1_7.18.pt.trace"], [0, 1]),
        (["DeepSeek-R1-TP-0", "DeepSeek-R1-TP-1"], [0, 1]),
        (["llama-tp8-rank3", "llama-tp8-rank4"], [3, 4]),
        (["h_1.async_llm.2.pt.trace", "h-rank-0.3.pt.trace", "h-rank-1.3.pt.trace"], [None, 0, 1]),
        (["ранг-rank٣", "ранг-rank4"], [3, 4]),
    ],
)
def test_a_name_tells_the_rank(names: list[str], ranks: list[int | None]) -> None:
    assert ranks_by_name(names) == ranks


@pytest.mark.parametrize(
    "names",
    [
        ["host_4037.1690000000.pt.trace", "host_4038.1690000001.pt.trace"],
        ["worker_process_1234", "worker_process_1235"],
        ["worker_process_12", "worker_process_13"],
        ["step_10", "step_20"],
        ["trace_iter3", "trace_iter4"],
        ["gpu-node-3_77.1.pt.trace", "gpu-node-3_78.2.pt.trace"],
        ["http3_step3", "http3_step4"],
        ["report.7"],
        ["trace_1700000000", "trace_1700000055"],
        ["prank3", "franktp3x"],
        ["a", "b"],
        [""],
        [],
    ],
)
def test_process_ids_times_steps_and_machines_are_no_ranks(names: list[str]) -> None:
    assert ranks_by_name(names) == [None] * len(names)


def test_names_of_several_recordings_claim_one_rank() -> None:
    assert ranks_by_name(["1718-TP-0", "1719-TP-0", "1718-TP-1", "1719-TP-1"]) == [0, 0, 1, 1]


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_name_is_too_odd(names: list[str]) -> None:
    assert len(ranks_by_name(names)) == len(names)
    backwards = names[::-1]
    assert sorted(backwards, key=natural) == sorted(names, key=natural)


def test_names_stand_in_the_order_of_their_numbers() -> None:
    assert sorted(["r10", "r9", "R1", "r", "9"], key=natural) == ["9", "r", "R1", "r9", "r10"]


def numbers(*files: Candidate) -> list[tuple[tuple[int, ...], str]]:
    return [(each.ranks, each.by) for each in number_ranks(files, "here")]


def test_the_file_goes_before_its_name_and_the_name_before_its_position() -> None:
    assert numbers(Candidate("rank0", (5,)), Candidate("rank1"), Candidate("other")) == [
        ((5,), "file"),
        ((1,), "name"),
        ((6,), "position"),
    ]


def test_files_that_name_nothing_are_numbered_in_order() -> None:
    assert numbers(Candidate("a_4037.1"), Candidate("a_4038.2"), Candidate("b_77.3")) == [
        ((0,), "position"),
        ((1,), "position"),
        ((2,), "position"),
    ]


def test_files_that_all_call_themselves_rank_0_go_by_their_names() -> None:
    assert numbers(Candidate("x-DP-0", (0,)), Candidate("x-DP-1", (0,))) == [((0,), "name"), ((1,), "name")]


def test_replicas_that_are_alone_in_their_world_go_by_position() -> None:
    alone = [Candidate("a_99.1", (0,), is_alone=True), Candidate("b_98.2", (0,), is_alone=True)]
    assert numbers(*alone) == [((0,), "position"), ((1,), "position")]


def test_a_file_of_several_ranks_keeps_them() -> None:
    assert numbers(Candidate("first", (0, 1)), Candidate("second", (2, 3)), Candidate("third")) == [
        ((0, 1), "file"),
        ((2, 3), "file"),
        ((4,), "position"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        [Candidate("1718-TP-0"), Candidate("1719-TP-0")],
        [Candidate("a.1", (3,)), Candidate("a.1.copy", (3,))],
        [Candidate("rank3"), Candidate("other", (3,))],
        [Candidate("trace_1", (0,)), Candidate("trace_2", (0,))],
        [Candidate("all", (0, 1)), Candidate("rank1", (1,))],
    ],
)
def test_two_files_of_one_rank_are_refused(files: list[Candidate]) -> None:
    with pytest.raises(
        InputError, match=r"here: expected one file per rank, found 2 of rank \d: .*\n  Name one file, or put"
    ):
        number_ranks(files, "here")
