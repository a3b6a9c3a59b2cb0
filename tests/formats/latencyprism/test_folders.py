"""Which files are one run: the two of a folder, and what is no run."""

import gzip
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.latencyprism_files import perf_row, sample_row, write_counters, write_perf, write_run
from tests.traces import counted, rows

import inferometer
from inferometer.errors import FormatError

PERF, COUNTERS = [perf_row()], [sample_row("gpu_usage")]


def test_a_folder_is_one_run_of_both_files(tmp_path: Path) -> None:
    trace = inferometer.open(write_run(tmp_path / "run", PERF, COUNTERS))
    assert trace.facts.format == "latencyprism"
    assert trace.facts.source == str(tmp_path / "run")
    assert trace.facts.notes == ()
    assert len(rows(trace, "function_times")) == len(rows(trace, "counters")) == 1


def test_times_bring_the_counters_and_counters_stand_alone(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PERF, COUNTERS)
    trace = inferometer.open(folder / "perf_data.csv")
    assert len(rows(trace, "function_times")) == len(rows(trace, "counters")) == 1
    assert trace.facts.notes == ("counters_data.csv in the same folder was read too.",)
    alone = inferometer.open(folder / "counters_data.csv")
    assert (len(rows(alone, "function_times")), len(rows(alone, "counters")), alone.facts.notes) == (0, 1, ())


def test_files_with_a_prefix_belong_together(tmp_path: Path) -> None:
    (tmp_path / "a_perf_data.csv").write_bytes(write_perf(PERF))
    (tmp_path / "a_counters_data.csv.gz").write_bytes(gzip.compress(write_counters(COUNTERS)))
    (tmp_path / "b_counters_data.csv").write_bytes(write_counters([*COUNTERS, *COUNTERS]))
    assert len(rows(inferometer.open(tmp_path / "a_perf_data.csv"), "counters")) == 1


def test_a_folder_of_files_with_one_further_name_is_a_run_and_of_several_is_not(tmp_path: Path) -> None:
    (tmp_path / "perf_data_prefill.csv").write_bytes(write_perf(PERF))
    (tmp_path / "counters_data_prefill.csv").write_bytes(write_counters(COUNTERS))
    trace = inferometer.open(tmp_path)
    assert len(rows(trace, "function_times")) == len(rows(trace, "counters")) == 1
    (tmp_path / "perf_data_decode.csv").write_bytes(write_perf(PERF))
    with pytest.raises(FormatError, match=r"found several: .*perf_data_prefill\.csv, .*perf_data_decode\.csv"):
        inferometer.open(tmp_path)


def test_packed_files_are_read_and_a_plain_one_is_preferred(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", counters=COUNTERS)
    (folder / "perf_data.csv.gz").write_bytes(gzip.compress(write_perf([*PERF, perf_row(cycle=2)])))
    assert len(rows(inferometer.open(folder), "steps")) == 2
    write_run(folder, PERF)
    trace = inferometer.open(folder)
    assert len(rows(trace, "steps")) == 1
    assert trace.facts.notes == ("perf_data.csv.gz was not read: the same file lies next to it unpacked.",)
    assert counted(trace) == {"same_recording": 1}


def test_a_file_alone_is_read_and_the_other_is_missed(tmp_path: Path) -> None:
    perf = inferometer.open(write_run(tmp_path / "perf", PERF))
    assert [(loss.name, loss.example) for loss in perf.losses] == [("missing_file", "counters_data.csv")]
    counters = inferometer.open(write_run(tmp_path / "counters", counters=COUNTERS))
    assert [(loss.name, loss.example) for loss in counters.losses] == [("missing_file", "perf_data.csv")]
    assert rows(counters, "function_times") == []
    assert counted(inferometer.open(tmp_path / "counters", {"counters"})) == {}


def test_a_broken_companion_is_a_loss_and_a_broken_named_file_an_error(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PERF)
    (folder / "counters_data.csv").write_text("counter_name,value\na,1\n")
    for source in (folder, folder / "perf_data.csv"):
        trace = inferometer.open(source)
        assert len(rows(trace, "function_times")) == 1
        assert [(loss.name, loss.severity) for loss in trace.losses] == [("unreadable_file", "warning")]
    with pytest.raises(FormatError, match="found no timestamp"):
        inferometer.open(folder / "counters_data.csv")


def test_files_without_a_row_are_an_error_and_one_of_them_a_loss(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "perf_data.csv").write_bytes(write_perf([]))
    with pytest.raises(FormatError, match="expected rows, found none"):
        inferometer.open(folder)
    (folder / "counters_data.csv").write_bytes(write_counters(COUNTERS))
    assert counted(inferometer.open(folder)) == {"empty_table": 1}
    (folder / "perf_data.csv").write_bytes(b"")
    assert counted(inferometer.open(folder)) == {"unreadable_file": 1}


def test_two_runs_in_a_folder_are_not_one(tmp_path: Path) -> None:
    for name in ("normal", "abnormal"):
        write_run(tmp_path / "pair" / name, PERF, COUNTERS)
    with pytest.raises(FormatError, match="expected one run, found several: abnormal, normal") as caught:
        inferometer.open(tmp_path / "pair")
    assert "inferometer compare" in (caught.value.hint or "")


def test_runs_numbered_like_ranks_are_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_run(tmp_path / "job" / f"rank{rank}", [perf_row(duration=rank + 1)])
    trace = inferometer.open(tmp_path / "job")
    assert trace.facts.ranks == (0, 1)
    assert rows(trace, "function_times", "rank", "dur_ns") == [(0, 1_000), (1, 2_000)]


def test_a_folder_of_ranks_is_no_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_bytes(write_file([kernel("k", "1", "2")]))
    assert inferometer.open(tmp_path).facts.format != "latencyprism"


def test_another_tools_file_of_that_name_does_not_make_a_folder_a_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_bytes(write_file([kernel("k", "1", "2")]))
    (tmp_path / "my_perf_data.csv").write_text("name,value\na,1\n")
    assert inferometer.open(tmp_path).facts.ranks == (0, 1)


def test_another_table_is_not_taken_for_a_run(tmp_path: Path) -> None:
    for text in ("function_name,self\na,1\n", "name,value\na,1\n", "counter_name\na\n"):
        (tmp_path / "other.csv").write_text(text)
        with pytest.raises(FormatError, match="expected one of the known formats"):
            inferometer.open(tmp_path / "other.csv")
    with pytest.raises(FormatError, match="expected the titles of perf_data"):
        inferometer.open(tmp_path / "other.csv", format="latencyprism")
