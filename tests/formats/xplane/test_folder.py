"""The folder that `jax.profiler` writes, as the user names it: its top, the date's, or one file."""

from pathlib import Path

import pytest
from tests.traces import counted
from tools.make_xplane import Options, write_xplane

import inferometer
from inferometer.errors import InputError
from inferometer.fleet.sources import find_places
from inferometer.formats.walk import Walk

JSON = b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X", "name": "k", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}'


def make(top: Path, *hosts: str, date: str = "2026_11_26_10_00_00") -> Path:
    folder = top / "plugins" / "profile" / date
    folder.mkdir(parents=True)
    for host in hosts:
        (folder / f"{host}.xplane.pb").write_bytes(write_xplane(Options(steps=1))[0])
        (folder / f"{host}.trace.json").write_bytes(JSON)
    return folder


def test_a_folder_of_one_host_is_its_file(tmp_path: Path) -> None:
    folder = make(tmp_path, "machine")
    for path in (tmp_path, tmp_path / "plugins", folder, folder / "machine.xplane.pb"):
        trace = inferometer.open(path)
        assert (trace.facts.format, trace.launches.collect().height) == ("xplane", 4)
        assert trace.facts.notes == (
            "machine.trace.json was not read: it is made from this file, and cut at a million events.",
        )
    imported = inferometer.import_trace(tmp_path, tmp_path / "run.ifm")
    assert imported.launches.collect().height == 4


def test_several_hosts_are_ranks_and_the_json_next_to_them_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "worker-0", "worker-1")
    trace = inferometer.open(tmp_path)
    assert (trace.facts.ranks, trace.launches.collect().height) == ((0, 1), 8)
    assert counted(trace)["same_recording"] == 2
    left_out = "worker-0.trace.json (for worker-0.xplane.pb), worker-1.trace.json (for worker-1.xplane.pb)"
    assert f"Left out as second files of one recording: {left_out}." in trace.facts.notes
    files = [(file.rank, file.clock_base_ns) for file in trace.facts.rank_files]
    assert files == [(0, 1_795_670_071_216_860_235), (1, 1_795_670_071_216_860_235)]


def test_of_several_recordings_one_must_be_named(tmp_path: Path) -> None:
    make(tmp_path, "machine", date="2026_11_26_10_00_00")
    last = make(tmp_path, "machine", date="2026_11_26_11_00_00")
    with pytest.raises(InputError, match="expected one recording, found 2: 2026_11_26_10_00_00, 2026") as caught:
        inferometer.open(tmp_path)
    assert caught.value.hint == f"Name one, such as {last}."


def test_the_json_next_to_a_profile_is_no_run_of_its_own(tmp_path: Path) -> None:
    folder = make(tmp_path, "machine")
    profile = folder / "machine.xplane.pb"
    assert [place.name for place in find_places([str(tmp_path)])] == [str(profile)]
    assert list(Walk(lambda _: True).profiles(tmp_path)) == [profile]
