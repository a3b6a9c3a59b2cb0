"""A folder of ranks opens as one trace: what is read, what is passed over and said, what is refused."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.kineto_files import call, kernel, write_file
from tests.nsys_files import export, write_sqlite
from tests.nsys_files import kernel as kernel_row
from tests.traces import counted, rows, stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError, UnknownName
from inferometer.formats.source import HEAD_BYTES, Source

BASE = 1_700_000_000_000_000_000
RENUMBERED = {"path_id", "parent_id", "frame_id", "parent"}


def profile(
    rank: int | None = None, *, name: str = "k", world: int = 8, base_ns: int | None = BASE, **more: Any
) -> bytes:
    """A Kineto file with one kernel and its call."""
    job = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    clock = {} if base_ns is None else {"baseTimeNanoseconds": base_ns}
    events = [kernel(name, correlation=1), call(pid=77, correlation=1)]
    return write_file(events, before={"schemaVersion": 1, **job, **clock}, **more)


def late_profile(rank: int) -> bytes:
    """A Kineto file that names its rank only at its end, beyond what sniffing looks at."""
    late = write_file([kernel()] * 1_000, after={"distributedInfo": {"rank": rank}})
    assert late.find(b"distributedInfo") > HEAD_BYTES
    return late


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "profiles"
    path.mkdir()
    return path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read beyond their first bytes."""
    names: list[str] = []
    open_source = Source.open

    def spy(self: Source) -> Any:
        names.append(Path(self.name).name)
        return open_source(self)

    monkeypatch.setattr(Source, "open", spy)
    return names


def fill(folder: Path, **files: bytes) -> Path:
    """Write `files`; `__` in a name is a dot."""
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


def kernels(trace: Trace) -> list[Any]:
    return rows(trace, "launches", "rank", "kernel")


# What is read


def test_files_of_ranks_are_one_trace(folder: Path) -> None:
    fill(folder, a__json=profile(1, name="one"), b__json=profile(0, name="zero"))
    trace = inferometer.open(folder)
    assert kernels(trace) == [(0, "zero"), (1, "one")]
    assert rows(trace, "calls", "rank", "process") == [(0, 77), (1, 77)]
    assert (trace.facts.ranks, trace.facts.world_size) == ((0, 1), 8)
    assert trace.facts.source == str(folder)
    assert [(file.file, file.rank, file.numbered_by) for file in trace.facts.rank_files] == [
        ("b.json", 0, "file"),
        ("a.json", 1, "file"),
    ]
    assert trace.facts.notes == ()


def test_names_tell_ranks_where_files_do_not(folder: Path) -> None:
    fill(folder, **{"17-TP-1__json__gz": gzip.compress(profile(name="one")), "17-TP-0__json": profile(name="zero")})
    trace = inferometer.open(folder)
    assert kernels(trace) == [(0, "zero"), (1, "one")]
    assert trace.facts.notes == ("Ranks by the files' names: 17-TP-0.json is 0, 17-TP-1.json.gz is 1.",)


def test_files_that_tell_nothing_are_numbered_and_that_is_said(folder: Path) -> None:
    trace = inferometer.open(fill(folder, h_4037__17__json=profile(), h_4038__18__json=profile()))
    assert kernels(trace) == [(0, "k"), (1, "k")]
    assert counted(trace) == {"rank_by_position": 2}
    assert trace.facts.notes[0].startswith(
        "Ranks by the order of names, since the files name none: h_4037.17.json is 0"
    )


def test_files_that_all_call_themselves_rank_0_go_by_their_names(folder: Path) -> None:
    trace = inferometer.open(fill(folder, DP0__json=profile(0), DP1__json=profile(0)))
    assert kernels(trace) == [(0, "k"), (1, "k")]
    assert "DP1.json calls itself rank 0, as another file does: taken for rank 1." in trace.facts.notes


def test_every_table_of_a_rank_is_as_in_its_own_file(folder: Path, shared_data: Path) -> None:
    files = [shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz" for rank in (0, 1)]
    for file in files:
        shutil.copy(file, folder)
    together = inferometer.open(folder)
    for rank, file in enumerate(files):
        alone, chosen = inferometer.open(file), inferometer.open(folder, ranks=[rank])
        for name, frame in alone.tables.items():
            own = frame.with_columns(pl.lit(rank, pl.Int64).alias("rank")).collect()
            same = [column for column in own.columns if column not in RENUMBERED]
            assert together.tables[name].filter(pl.col("rank") == rank).select(same).collect().equals(own.select(same))
            assert chosen.tables[name].collect().equals(own)
    both = [inferometer.kernel_table(inferometer.open(file)).total_ns for file in files]
    assert inferometer.kernel_table(together).total_ns == sum(both)
    assert together.losses.seen.total() == sum(inferometer.open(file).losses.seen.total() for file in files)


def test_profiles_of_different_tools_mix(folder: Path) -> None:
    fill(folder, rank0__json=profile(name="kineto"))
    write_sqlite(folder / "rank1.sqlite", export(KERNEL=[kernel_row(1, 2)]))
    inferometer.open(folder / "rank0.json").save(folder / "rank2.ifm")
    trace = inferometer.open(folder)
    assert kernels(trace) == [(0, "kineto"), (1, "gemm"), (2, "kineto")]
    assert [file.format for file in trace.facts.rank_files] == ["kineto", "nsys", "kineto"]
    assert trace.facts.format == "kineto, nsys"


def test_a_store_of_several_ranks_is_a_part_too(folder: Path, tmp_path: Path) -> None:
    inferometer.import_trace(fill(folder, rank0__json=profile(0), rank1__json=profile(1)), tmp_path / "first.ifm")
    second = tmp_path / "all"
    second.mkdir()
    (tmp_path / "first.ifm").rename(second / "first.ifm")
    fill(second, rank2__json=profile(2))
    assert kernels(inferometer.open(second)) == [(0, "k"), (1, "k"), (2, "k")]
    assert kernels(inferometer.open(second, ranks={1, 2})) == [(1, "k"), (2, "k")]


def test_clocks_are_aligned_to_the_nanosecond(folder: Path) -> None:
    fill(folder, rank0__json=profile(0, base_ns=BASE + 1), rank1__json=profile(1, base_ns=BASE))
    trace = inferometer.open(folder)
    assert rows(trace, "launches", "start_ns") == [100_001, 100_000]
    assert rows(trace, "calls", "start_ns") == [90_001, 90_000]
    assert trace.facts.clock_base_ns == BASE
    assert trace.facts.notes == ("Times were moved to the earliest clock: rank 0 by 1 ns.",)


def test_a_file_without_a_clock_base_keeps_its_times_and_that_is_said(folder: Path) -> None:
    fill(folder, rank0__json=profile(0, base_ns=BASE + 1), rank1__json=profile(1, base_ns=None))
    trace = inferometer.open(folder)
    assert rows(trace, "launches", "start_ns") == [100_000, 100_000]
    assert counted(trace) == {"no_common_clock": 1}
    assert "No clock to compare: the times of rank1.json stand as they are in the file." in trace.facts.notes


def test_ranks_that_never_ran_together_are_pointed_out(folder: Path) -> None:
    trace = inferometer.open(fill(folder, rank0__json=profile(0), rank1__json=profile(1, base_ns=BASE + 10**12)))
    assert [(loss.name, loss.example) for loss in trace.losses] == [("ranks_apart", "rank 1: 1,000.000 s later")]


def test_a_recording_of_another_year_is_no_rank_of_a_job(folder: Path, shared_data: Path) -> None:
    for name in ("rank0_sampled", "h100_vit"):
        (folder / f"{name}.json.gz").symlink_to(shared_data / "traces" / "kineto" / f"{name}.json.gz")
    with pytest.raises(InputError, match=r"expected the ranks of one recording, found h100_vit\.json\.gz without"):
        inferometer.open(folder)


def test_one_file_is_a_folder_of_ranks_too(folder: Path) -> None:
    assert kernels(inferometer.open(fill(folder, run__json=profile(5)))) == [(5, "k")]


def test_a_host_only_file_beside_ranks_gets_the_next_number(folder: Path) -> None:
    front = write_file([call(pid=5)], before={"schemaVersion": 1, "baseTimeNanoseconds": BASE})
    trace = inferometer.open(fill(folder, **{"h.async_llm.9__json": front, "h-rank-0__json": profile(0)}))
    assert rows(trace, "calls", "rank", "process") == [(0, 77), (1, 5)]
    assert inferometer.kernel_table(inferometer.open(folder, ranks=[1])).kernels == 0


def test_names_in_any_script_and_of_any_bytes_open(folder: Path) -> None:
    fill(folder, **{"профиль-rank0 é__json": profile()})
    odd = os.fsdecode(bytes(folder) + b"/rank1-\xff.json")
    try:
        Path(odd).write_bytes(profile())
    except OSError:
        pytest.skip("this file system takes only text for names")
    trace = inferometer.open(folder)
    assert [file.file for file in trace.facts.rank_files] == ["профиль-rank0 é.json", "rank1-\\udcff.json"]
    json.dumps(trace.facts.notes).encode()


# What is passed over


def test_what_is_no_profile_is_passed_over_and_named(folder: Path) -> None:
    fill(folder, README__md=b"# Run", run__log=b"x", __DS_Store=b"\0", config__json=b"{}", rank0__json=profile(0))
    fill(folder, report__html=b"<html>")
    (folder / "more").mkdir()
    fill(folder / "more", rank1__json=profile(1))
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe.json")
    trace = inferometer.open(folder)
    assert kernels(trace) == [(0, "k")]
    assert counted(trace) == {}
    (note,) = trace.facts.notes
    passed_over = ".DS_Store, config.json, loop, more, pipe.json, README.md, report.html, run.log"
    assert note == f"Passed over, since they are no profiles: {passed_over}."


def test_links_to_files_elsewhere_are_followed(folder: Path, tmp_path: Path) -> None:
    fill(tmp_path, far__json=profile(0))
    (folder / "rank0.json").symlink_to(tmp_path / "far.json")
    assert kernels(inferometer.open(folder)) == [(0, "k")]


@pytest.mark.parametrize("other", ["rank0.json.gz", "rank0.ifm"])
def test_a_second_file_of_one_recording_is_left_out_and_that_is_said(other: str, folder: Path) -> None:
    fill(folder, rank0__json=profile(0), rank1__json=profile(1))
    if other.endswith(".ifm"):
        inferometer.import_trace(folder / "rank0.json", folder / other)
    else:
        (folder / other).write_bytes(gzip.compress(profile(0)))
    trace = inferometer.open(folder)
    assert kernels(trace) == [(0, "k"), (1, "k")]
    assert counted(trace) == {"same_recording": 1}
    left_out, best = ("rank0.json", other) if other.endswith(".ifm") else (other, "rank0.json")
    assert trace.facts.notes == (f"Left out as second files of one recording: {left_out} (for {best}).",)


def test_a_table_of_sums_beside_recordings_is_a_report_on_them(folder: Path) -> None:
    fill(folder, rank0__json=profile(0))
    table = inferometer.kernel_table(inferometer.open(folder))
    from inferometer.reports.delimited import render_csv

    (folder / "kernels.csv").write_text(render_csv(table))
    trace = inferometer.open(folder)
    assert trace.facts.ranks == (0,)
    assert trace.facts.notes == ("Passed over, since they are no profiles: kernels.csv.",)
    (folder / "rank0.json").unlink()
    with pytest.raises(FormatError, match=r"found only kernels\.csv"):
        inferometer.open(folder)


# What is broken or refused


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b\x08\0half", b"garbage", b'{"schemaVersion": 1}'])
def test_a_broken_file_is_counted_and_the_others_are_read(content: bytes, folder: Path) -> None:
    trace = inferometer.open(fill(folder, rank0__json=profile(0), rank1__json=content, rank2__json=profile(2)))
    assert kernels(trace) == [(0, "k"), (2, "k")]
    (loss,) = list(trace.losses)
    assert (loss.name, loss.severity, loss.count, loss.category) == ("unreadable_rank_file", "warning", 1, "rank1.json")
    assert loss.example
    assert not loss.example.startswith(str(folder))
    with pytest.raises(InputError, match=r"rank1\.json: "):
        inferometer.open(folder, ranks=[1])


def test_a_link_to_nowhere_among_ranks_is_an_error(folder: Path) -> None:
    fill(folder, rank0__json=profile(0))
    (folder / "rank1.json").symlink_to("nowhere")
    assert counted(inferometer.open(folder)) == {"unreadable_rank_file": 1}


def test_a_broken_file_does_not_move_the_numbers_of_others(folder: Path) -> None:
    fill(folder, a_4001__1__json=profile(name="a"), a_4002__2__json=b"", a_4003__3__json=profile(name="c"))
    assert kernels(inferometer.open(folder)) == [(0, "a"), (2, "c")]


def test_when_no_file_can_be_read_the_first_error_is_raised(folder: Path) -> None:
    fill(folder, rank0__json=b'{"schemaVersion": 1}', rank1__json=b'{"schemaVersion": 1}')
    with pytest.raises(FormatError, match=r"rank0\.json: expected a traceEvents array"):
        inferometer.open(folder)


@pytest.mark.parametrize("files", [{}, {"README__md": b"x"}, {"rank0__json": b""}])
def test_a_folder_without_profiles_is_refused(files: dict[str, bytes], folder: Path) -> None:
    (fill(folder, **files) / "sub").mkdir(exist_ok=True)
    with pytest.raises(FormatError, match=r"expected a store .* one profile per rank, found only .*sub\n"):
        inferometer.open(folder)


def test_an_empty_folder_is_refused(folder: Path) -> None:
    with pytest.raises(FormatError, match="one profile per rank, found nothing"):
        inferometer.open(folder)


def test_why_the_only_file_is_no_profile_is_told(folder: Path) -> None:
    with pytest.raises(FormatError, match=r"rank0\.json: the file is empty"):
        inferometer.open(fill(folder, rank0__json=b""))


def test_two_recordings_of_one_rank_are_refused(folder: Path) -> None:
    fill(folder, **{f"{time}-TP-{rank}__json": profile(rank) for time in (17, 18) for rank in (0, 1)})
    with pytest.raises(
        InputError, match=r"expected one file per rank, found 2 of rank 0: 17-TP-0.json, 18-TP-0.json\n  Name one file"
    ):
        inferometer.open(folder)


def test_a_format_named_reads_the_files_with_its_endings(folder: Path) -> None:
    fill(folder, rank0__json=profile(0), notes__txt=b"hello")
    assert kernels(inferometer.open(folder, format="kineto")) == [(0, "k")]
    with pytest.raises(UnknownName, match='unknown format "nonsense"'):
        inferometer.open(folder, format="nonsense")


# One rank


def test_of_a_rank_asked_for_only_its_file_is_read(folder: Path, opened: list[str]) -> None:
    fill(folder, **{f"rank{rank}__json": profile(rank if rank % 2 else None, name=f"k{rank}") for rank in range(6)})
    assert kernels(inferometer.open(folder, {"launches"}, ranks=[3])) == [(3, "k3")]
    assert kernels(inferometer.open(folder, ranks=(4, 0))) == [(0, "k0"), (4, "k4")]
    assert set(opened) == {"rank3.json", "rank4.json", "rank0.json"}


def test_an_unknown_rank_lists_the_known_ones(folder: Path, opened: list[str]) -> None:
    fill(folder, rank2__json=profile(2), rank4__json=profile(4))
    with pytest.raises(UnknownName, match='unknown rank "3"\n  Known, nearest first: 2, 4'):
        inferometer.open(folder, ranks=[3])
    assert opened == []


def test_a_file_that_says_behind_its_events_that_it_is_another_rank_is_refused(folder: Path) -> None:
    fill(folder, rank0__json=profile(0), rank1__json=late_profile(5))
    assert inferometer.open(folder).facts.ranks == (0, 5)
    with pytest.raises(
        InputError, match=r"rank1\.json: by its name it is rank 1, but it says that it is rank 5\n  Open"
    ):
        inferometer.open(folder, ranks=[1])


def test_ranks_of_files_and_stores_are_chosen_too(folder: Path, tmp_path: Path) -> None:
    fill(folder, rank2__json=profile(2), rank4__json=profile(4))
    store = inferometer.import_trace(folder, tmp_path / "all.ifm")
    assert kernels(store) == [(2, "k"), (4, "k")]
    four = inferometer.open(tmp_path / "all.ifm", ranks=[4])
    assert kernels(four) == [(4, "k")]
    assert [file.rank for file in four.facts.rank_files] == [4]
    assert kernels(inferometer.open(folder / "rank2.json", ranks=[2])) == [(2, "k")]
    for source in (tmp_path / "all.ifm", folder / "rank2.json"):
        with pytest.raises(UnknownName, match='unknown rank "3"'):
            inferometer.open(source, ranks=[3])


def test_columns_named_are_read_with_the_rank(folder: Path) -> None:
    trace = inferometer.open(fill(folder, rank0__json=profile(0), rank1__json=profile(1)), {"launches": ["dur_ns"]})
    assert rows(trace, "launches", "dur_ns", "rank") == [(2_000, 0), (2_000, 1)]


# Memory, files, progress


def test_a_store_of_a_folder_holds_the_same_trace(folder: Path, tmp_path: Path) -> None:
    fill(folder, rank0__json=profile(0), rank1__json=profile(1))
    trace, store = inferometer.open(folder), inferometer.import_trace(folder, tmp_path / "all.ifm")
    assert (store.facts, store.losses) == (stored_facts(trace), trace.losses)
    for name, frame in trace.tables.items():
        assert store.tables[name].collect().equals(frame.collect())
    assert sorted(path.name for path in (tmp_path / "all.ifm").iterdir()) == [
        "calls-00000.parquet",
        "facts.json",
        "launches-00000.parquet",
    ]
    with pytest.raises(InputError, match="already exists"):
        inferometer.import_trace(folder, tmp_path / "all.ifm")


def test_an_import_that_fails_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        inferometer.import_trace(folder, tmp_path / "all.ifm")
    assert [path.name for path in tmp_path.iterdir()] == ["profiles"]


def test_what_exceeds_memory_is_dropped_with_the_trace(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("inferometer.formats.ranks.files.MEMORY_BUDGET_BYTES", 2)
    fill(folder, rank0__json=profile(0), rank1__json=profile(1))
    with inferometer.open(folder) as trace:
        assert len(list(scratch.iterdir())) == 2
        assert kernels(trace) == [(0, "k"), (1, "k")]
    assert list(scratch.iterdir()) == []
    trace = inferometer.open(folder)
    assert len(list(scratch.iterdir())) == 2
    del trace
    assert list(scratch.iterdir()) == []
    fill(folder, other__json=late_profile(1))
    with pytest.raises(InputError, match="expected one file per rank"):
        inferometer.open(folder)
    assert list(scratch.iterdir()) == []


def test_progress_over_several_files_never_goes_back(folder: Path) -> None:
    fill(folder, **{f"rank{rank}__json": profile(rank) for rank in range(3)}, rank3__json=b"")
    told: list[tuple[int, int | None]] = []
    inferometer.open(folder, progress=lambda done, total: told.append((done, total)))
    sizes = sum(path.stat().st_size for path in folder.iterdir())
    assert {total for _, total in told} == {sizes}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (sizes, sizes)


# Commands


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*words: str | Path) -> tuple[int, str, str]:
        from inferometer.commands.main import main

        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out = capsys.readouterr()
        return int(str(ended.value.code)), out.out, out.err

    return run


def test_the_next_files_are_begun_before_their_turn_and_ended_when_there_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    ended: list[str] = []

    class Work:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            ended.append(self.name)

    def start(source: Source, tables: Any) -> None:
        began.append(Path(source.name).name)
        source.ahead = Work(began[-1])

    def fail(source: Source, *given: Any, **named: Any) -> Trace:
        source.stop_ahead()  # as reading it does
        if Path(source.name).name == "b.json":
            raise KeyboardInterrupt
        assert began == names[:4]
        raise InputError("a.json: broken")

    fill(folder, **{f"{letter}__json": profile(rank) for rank, letter in enumerate("abcdefg")})
    names = [f"{letter}.json" for letter in "abcdefg"]
    monkeypatch.setattr("inferometer.formats.kineto.ahead.start", start)
    monkeypatch.setattr("inferometer.formats.ranks.files.read_source", fail)
    with pytest.raises(KeyboardInterrupt):
        inferometer.open(folder, {"launches"})
    assert began == ended == names[:5]


def test_commands_take_a_folder_and_a_rank(folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    fill(folder, rank0__json=profile(0, name="zero"), rank1__json=profile(1, name="one"))
    _, text, _ = run("summary", folder, "--json")
    assert json.loads(text)["rows"]["launches"] == 2
    assert [file["rank"] for file in json.loads(text)["facts"]["rank_files"]] == [0, 1]
    for words in (("summary",), ("kernels",), ("kernels", "--between", "0", "1")):
        code, text, _ = run(words[0], folder, *words[1:], "--rank", "1", "--json")
        found = json.loads(text)
        assert code == 0
        assert [row["kernel"] for row in found.get("top_kernels", found.get("rows"))] == ["one"]
    assert run("summary", folder, "--rank", "7")[0] == 3
