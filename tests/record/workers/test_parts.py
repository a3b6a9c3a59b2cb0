"""Parts of several processes become one store on one clock; a damaged part doesn't take the others with it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from inferometer.errors import InputError
from inferometer.record.clock import Clock
from inferometer.record.journal.journal import Journal
from inferometer.record.workers.parts import drop_parts, find_parts, join_into, join_parts, read_remarks
from inferometer.trace.facts import NamedId
from inferometer.trace.store import read_store

CLOCK = Clock(1_000, 1_700_000_000_000_000_000)


def write(path: Path, process: int, *, rank: int | None = None, ops: bool = True, rows: int = 2) -> None:
    with Journal(path, clock=CLOCK) as journal:
        journal.change_facts(
            lambda facts: replace(
                facts,
                recorded={**facts.recorded, "ops": ops},
                ranks=() if rank is None else (rank,),
                processes=(NamedId(process, name="python"),),
                notes=("The same everywhere.",),
            )
        )
        journal.add("frames", rows, {"frame": [f"f{i}" for i in range(rows)], "process": process, "thread": 1,
                                     "start_ns": [10 * process + i for i in range(rows)], "dur_ns": 1,
                                     "frame_id": list(range(rows))})  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parts = tmp_path / "run.ifm.parts"
    parts.mkdir()
    return parts


def test_rows_keep_time_and_process_ids_stay_apart_and_ranks_are_the_processes(folder: Path, tmp_path: Path) -> None:
    write(folder / "1.ifm", 1, rank=0)
    write(folder / "2.ifm", 2, rank=1)
    write(folder / "3.ifm", 3, ops=False)
    (folder / "2.python.txt").write_text("\nsaid\nsaid\n")
    with join_parts(folder, tmp_path / "run.ifm", notes=["first"]) as joined:
        frames = joined.frames.sort("start_ns").collect()
        assert frames["start_ns"].to_list() == [10, 11, 20, 21, 30, 31]
        assert frames["process"].to_list() == [1, 1, 2, 2, 3, 3]
        assert frames["rank"].to_list() == [0, 0, 1, 1, None, None]
        assert frames["frame_id"].is_unique().all()
        facts = joined.facts
    assert facts.ranks == (0, 1)
    assert {named.process: named.rank for named in facts.processes} == {1: 0, 2: 1, 3: None}
    assert facts.recorded == {"ops": True, "finished": True}
    assert facts.clock_base_ns == CLOCK.base_ns
    assert facts.notes == ("first", "said", "The same everywhere.")
    assert len(find_parts(folder)) == 3


def test_a_damaged_part_is_counted_and_the_others_are_there(folder: Path, tmp_path: Path) -> None:
    write(folder / "1.ifm", 1)
    write(folder / "2.ifm", 2)
    (file,) = (folder / "2.ifm").glob("frames-*")
    file.write_bytes(b"x")
    with join_parts(folder, tmp_path / "run.ifm") as joined:
        assert joined.frames.collect()["process"].unique().to_list() == [1]
        assert joined.losses.total("unreadable_file") == 1
        assert "2.ifm can't be read" in " ".join(joined.facts.notes)
    (file,) = (folder / "1.ifm").glob("frames-*")
    file.unlink()
    with pytest.raises(InputError, match="expected parts that can be read"):
        join_parts(folder, tmp_path / "other.ifm")


def test_parts_are_added_to_a_store_and_their_folder_goes(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "run.ifm"
    write(store, 1)
    write(folder / "2.ifm", 2)
    (folder / "2.python.txt").write_text("lacks polars\n")
    assert join_into(store, folder) == ["lacks polars"]
    with read_store(store) as joined:
        assert joined.frames.collect().height == 4
        assert "lacks polars" in joined.facts.notes
    assert not folder.exists()
    assert join_into(store, folder) == []


def test_what_isnt_ours_stays(folder: Path) -> None:
    write(folder / "1.ifm", 1)
    (folder / "letters").mkdir()
    drop_parts(folder)
    assert [path.name for path in folder.iterdir()] == ["letters"]
    assert (find_parts(folder), read_remarks(folder)) == ([], [])
    link = folder.with_name("link.ifm.parts")
    link.symlink_to(folder)
    drop_parts(link)
    assert folder.exists()
