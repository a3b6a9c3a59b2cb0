import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fleet.digests import fleet_of
from tests.fleet.digests import kernel as of_kernel
from tests.kineto_files import kernel, write_file
from tests.traces import trace_of

from inferometer.errors import InputError
from inferometer.record.journal.journal import Journal
from inferometer.reports.serve.kept import Kept, key_of
from inferometer.reports.serve.runs import Library, Run

BYTES = write_file([kernel("gemm", "1", "2", correlation=1)])


def library(*paths: Path, without: Path = Path("/nowhere"), folders: tuple[str, ...] = ()) -> Library:
    return Library(paths, is_one=lambda folder: Path(folder).name in folders, without=without)


def by_name(found: Library) -> dict[str, Run]:
    return {f"{run.place}/{run.name}".strip("/"): run for run in found.runs.values()}


def test_files_stores_and_packed_files_are_found_and_nothing_that_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in ("a.json", "deep/er/b.json.gz", "deep/engine.log.gz", ".hidden/c.json", "deep/photo.png"):
        (tmp_path / name).write_bytes(BYTES)
    trace_of([{}]).save(tmp_path / "deep" / "run.ifm")

    found = by_name(library(tmp_path))

    kinds = {name: run.kind for name, run in found.items()}
    assert kinds == {
        "a.json": "file",
        "deep/er/b.json.gz": "file",
        "deep/engine.log.gz": "file",
        "deep/run.ifm": "store",
    }
    assert found["a.json"].bytes == len(BYTES)


def test_links_that_lead_out_or_to_folders_are_not_followed_but_counted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.json").write_bytes(BYTES)
    (tmp_path / "in" / "mine.json").write_bytes(BYTES)
    (tmp_path / "in" / "link.json").symlink_to(tmp_path / "out" / "secret.json")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")

    found = library(tmp_path / "in")
    assert set(by_name(found)) == {"mine.json"}
    assert found.unfollowed == 2
    (tmp_path / "in" / "folder").unlink()
    found.scan()
    assert found.unfollowed == 1


def test_what_a_run_is_called_stays_and_its_content_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(BYTES)
    found = library(tmp_path)
    before = by_name(found)["a.json"]

    assert found.scan() is False
    path.write_bytes(BYTES + b" ")
    assert found.scan() is True

    after = by_name(found)["a.json"]
    assert (before.id, before.name) == (after.id, after.name)
    assert before.key != after.key


def test_a_store_of_the_same_content_has_the_same_key_wherever_it_lies(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        trace_of([{}]).save(tmp_path / folder / "run.ifm")
    found = by_name(library(tmp_path))

    assert found["one/run.ifm"].key == found["other/run.ifm"].key
    assert found["one/run.ifm"].id != found["other/run.ifm"].id


def test_a_recording_is_one_while_it_is_written(tmp_path: Path) -> None:
    parts = tmp_path / "run.ifm.parts"
    parts.mkdir()
    with Journal(tmp_path / "alone.ifm"), Journal(parts / "12.ifm"), Journal(parts / "13.ifm"):
        found = library(tmp_path)
        runs = by_name(found)
        assert {name: (run.kind, run.is_recording) for name, run in runs.items()} == {
            "alone.ifm": ("store", True),
            "run.ifm": ("parts", True),
        }
    found.scan()
    assert by_name(found)["alone.ifm"].is_recording is False


def test_a_recording_that_was_killed_long_ago_goes_on_no_more(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.ifm"):
        os.utime(tmp_path / "run.ifm" / "facts.json", (1, 1))
        assert by_name(library(tmp_path))["run.ifm"].is_recording is False


def test_a_folder_that_is_one_profile_is_one_run(tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    (tmp_path / "plain").mkdir()
    for folder in ("pair", "plain"):
        for name in ("a.csv", "b.csv"):
            (tmp_path / folder / name).write_text("x")

    found = by_name(library(tmp_path, folders=("pair",)))

    assert {name: run.kind for name, run in found.items()} == {
        "pair": "folder",
        "plain/a.csv": "file",
        "plain/b.csv": "file",
    }


def test_files_of_ranks_are_a_run_together_too(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for rank in range(2):
        (tmp_path / "job" / f"rank{rank}.json").write_bytes(BYTES)

    found = by_name(library(tmp_path))

    assert {name: run.kind for name, run in found.items()} == {
        "job": "folder",
        "job/rank0.json": "file",
        "job/rank1.json": "file",
    }


def test_what_we_keep_ourselves_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "cache" / "x").mkdir(parents=True)
    (tmp_path / "cache" / "x" / "about.json").write_text("{}")

    assert by_name(library(tmp_path, without=tmp_path / "cache")) == {}


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        library(tmp_path / "absent")


def test_what_goes_away_meanwhile_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere.json")

    assert by_name(library(tmp_path)) == {}


def test_the_longest_unused_goes_first_and_what_is_in_use_stays(tmp_path: Path) -> None:
    kept = Kept(tmp_path, most_bytes=250)
    keys = [key_of(i) for i in range(4)]
    for age, key in enumerate(keys):
        place = kept.place(key)
        (place / "page.html").write_bytes(b"x" * 100)
        os.utime(place, (age, age))

    kept.make_room({keys[0]})

    assert {key for key in keys if (kept.folder / key).exists()} == {keys[0], keys[3]}


def test_keys_tell_contents_apart() -> None:
    assert key_of("a", "b") != key_of("ab")
    assert key_of("\udcff") != key_of("\udcfe")
    assert len(key_of(1)) == 32


def test_a_fleet_is_one_run_until_it_is_mined_anew(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    place = tmp_path / "deep" / "all.ifm"
    fleet_of(place, {"a": {"kernels": [of_kernel("k", 5)]}, "b": {"reason": "no trace"}})
    found = library(tmp_path)
    before = by_name(found)
    assert {name: run.kind for name, run in before.items()} == {"deep/all.ifm": "fleet"}
    assert by_name(library(place)) == {"all.ifm": replace(before["deep/all.ifm"], place="")}

    assert found.scan() is False
    fleet_of(place, {"a": {"kernels": [of_kernel("k", 5)]}, "c": {"kernels": [of_kernel("k", 7)]}})
    assert found.scan() is True
    after = by_name(found)["deep/all.ifm"]
    assert after.id == before["deep/all.ifm"].id
    assert after.key != before["deep/all.ifm"].key


def test_a_fleet_whose_mining_has_not_ended_is_there(tmp_path: Path) -> None:
    place = tmp_path / "all.ifm"
    fleet_of(place, {"a": {"kernels": [of_kernel("k", 5)]}})
    for file in (place / "tables").iterdir():
        file.unlink()
    found = by_name(library(tmp_path))
    assert {name: (run.kind, run.bytes) for name, run in found.items()} == {"all.ifm": ("fleet", 0)}
