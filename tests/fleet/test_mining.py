import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from shutil import rmtree

import polars as pl
import pytest
from tests.fleet.digests import fleet_of, kernel
from tests.fleet.mined import LIMITS, bytes_of, mined, write_trace

from inferometer.errors import FormatError, InputError, Unavailable
from inferometer.fleet.mining import mine
from inferometer.fleet.on_ray.cluster import check_address, room
from inferometer.fleet.on_ray.workers import RayWorkers
from inferometer.fleet.opening import open_fleet
from inferometer.fleet.store import FleetWriter
from inferometer.fleet.tables import DIGEST
from inferometer.fleet.workers import WorkerLimits, Workers
from inferometer.guarded import GuardedError


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Five contents under six names, a broken file, and a file that is none."""
    folder = tmp_path / "traces"
    for n in range(5):
        write_trace(folder / f"m{n % 2}" / f"t{n}.json", ("gemm", 10.0 + n), ("softmax", 1.5), seed=n)
    (folder / "again.json").write_bytes((folder / "m0" / "t0.json").read_bytes())
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    (folder / "README.md").write_text("# no trace\n")
    return folder


def test_the_same_content_counts_once_and_what_cant_be_read_is_set_aside(traces: Path, tmp_path: Path) -> None:
    found = mined(tmp_path / "f.ifm", traces)
    assert (found.traces, found.paths, found.made) == (5, 8, 5)
    aside = dict(found.aside)
    assert set(aside) == {str(traces / "cut.json.gz"), str(traces / "README.md")}
    assert "ends in the middle" in aside[str(traces / "cut.json.gz")]
    assert "expected one of the known formats" in aside[str(traces / "README.md")]
    fleet = open_fleet(tmp_path / "f.ifm")
    assert fleet.traces.filter(pl.col("paths") == 2)["path"].to_list() == [str(traces / "again.json")]
    assert fleet.table("kernels").select(pl.col("total_ns").sum()).collect().item() == 1000 * (50 + 10) + 5 * 1500


def test_a_fleet_is_the_same_bytes_whoever_made_it_and_how_often(traces: Path, tmp_path: Path) -> None:
    mined(tmp_path / "one.ifm", traces, workers=1)
    mined(tmp_path / "three.ifm", traces, workers=3)
    assert bytes_of(tmp_path / "one.ifm") == bytes_of(tmp_path / "three.ifm")
    mined(tmp_path / "parts.ifm", traces / "m1")
    mined(tmp_path / "parts.ifm", traces)
    assert mined(tmp_path / "parts.ifm", traces).made == 0
    assert bytes_of(tmp_path / "one.ifm") == bytes_of(tmp_path / "parts.ifm")


def test_a_later_run_reads_only_what_is_new_and_drops_what_changed(traces: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "f.ifm"
    mined(fleet, traces)
    before = {file: file.stat().st_mtime_ns for file in fleet.rglob("digests/*/*.parquet")}
    write_trace(traces / "new.json", ("gemm", 99.0))
    seen: list[int] = []
    found = mine([str(traces)], fleet, readers=Workers(1, LIMITS), on_progress=lambda at: seen.append(at.places))
    assert (found.made, found.traces, seen) == (1, 6, [1])
    assert before.items() <= {file: file.stat().st_mtime_ns for file in fleet.rglob("digests/*/*.parquet")}.items()
    write_trace(traces / "new.json", ("gemm", 77.0), seed=50)
    assert mined(fleet, traces).traces == 6
    mined(tmp_path / "anew.ifm", traces)
    assert bytes_of(fleet) == bytes_of(tmp_path / "anew.ifm")


def test_what_was_set_aside_is_tried_again_only_when_asked(traces: Path, tmp_path: Path) -> None:
    mined(tmp_path / "f.ifm", traces)
    aside = next((tmp_path / "f.ifm" / "aside").iterdir())
    aside.write_text('"planted"')
    assert "planted" in (tmp_path / "f.ifm" / "aside" / aside.name).read_text()
    mined(tmp_path / "f.ifm", traces)
    assert aside.read_text() == '"planted"'
    mined(tmp_path / "f.ifm", traces, retry=True)
    assert aside.read_text() != '"planted"'


def test_labels_come_from_the_path_and_go_before_the_file(traces: Path, tmp_path: Path) -> None:
    mined(tmp_path / "f.ifm", traces, labels=r"(?P<model>m\d)/(?P<version>t\d)")
    fleet = open_fleet(tmp_path / "f.ifm", {"model": "m1"})
    assert fleet.traces["version"].sort().to_list() == ["t1", "t3"]
    assert fleet.table("kernels").collect()["trace"].n_unique() == 2


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "regular expression"), ("(?P<speed>.)", "'speed'"), ("x", "no named group")]
)
def test_labels_that_mean_nothing_are_refused(pattern: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        mined(tmp_path / "f.ifm", tmp_path, labels=pattern)


def test_a_process_that_eats_its_memory_or_dies_takes_no_other_with_it(tmp_path: Path) -> None:
    with Workers(1, WorkerLimits(400 << 20, 2.0), module="tests.fleet.hostile_worker") as workers:
        assert workers.digest("fine") == b"fine"
        for name, said in (("hungry", "MemoryError|limit of memory"), ("dies", "SIGKILL"), ("loops", "2 s")):
            with pytest.raises(GuardedError, match=said):
                workers.digest(name)
            assert workers.digest("fine") == b"fine"


def test_a_used_process_that_fails_is_no_verdict(tmp_path: Path) -> None:
    with Workers(1, WorkerLimits(400 << 20, 2.0), module="tests.fleet.hostile_worker") as workers:
        assert workers.digest("fine") == b"fine"
        assert workers.digest("only as the first") == b"first"


def test_killed_at_any_time_nothing_is_lost(tmp_path: Path) -> None:
    folder, fleet = tmp_path / "traces", tmp_path / "f.ifm"
    for n in range(12):
        write_trace(folder / f"t{n}.json", *[("gemm", 1.0 + n)] * 50, seed=n)
    command = [sys.executable, "-m", "inferometer", "mine", str(folder), "-o", str(fleet), "--workers", "1"]
    for kept in (1, 4, 9):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while len([*fleet.glob("digests/*/*.parquet")]) < kept and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (fleet / "tables").exists()
        with pytest.raises(InputError, match="has not ended"):
            open_fleet(fleet)
    there = len([*fleet.glob("digests/*/*.parquet")])
    assert there >= 9
    assert mined(fleet, folder).made == 12 - there
    mined(tmp_path / "whole.ifm", folder)
    assert bytes_of(fleet) == bytes_of(tmp_path / "whole.ifm")


def test_one_process_at_a_time_writes(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.json", ("gemm", 1.0))
    with FleetWriter(tmp_path / "f.ifm"), pytest.raises(InputError, match="another process adds to it"):
        mined(tmp_path / "f.ifm", tmp_path / "t.json")


def test_what_is_no_fleet_is_left_alone(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.json", ("gemm", 1.0))
    with pytest.raises(InputError, match="is no fleet"):
        mined(tmp_path, trace)
    with pytest.raises(InputError, match="expected a fleet, found another folder"):
        open_fleet(tmp_path)
    (old := tmp_path / "old.ifm").mkdir()
    (old / "fleet.json").write_text(json.dumps({"mark": "inferometer-fleet", "digests": 0}))
    with pytest.raises(FormatError, match="expected digests of version 2, found 0"):
        mined(old, trace)


def test_a_damaged_table_is_refused_and_joined_anew(traces: Path, tmp_path: Path) -> None:
    mined(tmp_path / "f.ifm", traces)
    file = tmp_path / "f.ifm" / "tables" / "kernels.parquet"
    file.write_bytes(file.read_bytes()[:-9] + b"\0" * 9)
    with pytest.raises(FormatError, match="kernels"):
        open_fleet(tmp_path / "f.ifm").table("kernels")
    mined(tmp_path / "f.ifm", traces)
    assert open_fleet(tmp_path / "f.ifm").table("kernels").collect().height == 10


def test_a_damaged_digest_is_named_and_made_again(tmp_path: Path) -> None:
    trace, fleet = write_trace(tmp_path / "t.json", ("gemm", 1.0)), tmp_path / "f.ifm"
    mined(fleet, trace)
    whole = bytes_of(fleet)
    (digest,) = fleet.glob("digests/*/*.parquet")
    for damage in (digest.read_bytes()[:50], digest.read_bytes()[:-20] + b"\1" * 20):
        digest.write_bytes(damage)
        rmtree(fleet / "tables", ignore_errors=True)
        with pytest.raises(FormatError, match=digest.name):
            mined(fleet, trace)
    digest.unlink()
    assert mined(fleet, trace).made == 1
    assert bytes_of(fleet) == whole


def test_digests_that_are_joined_are_not_read_again(tmp_path: Path) -> None:
    traces = {f"t{n}": {"kernels": [kernel(f"k{n}", n)]} for n in range(4)}
    fleet_of(tmp_path / "anew.ifm", traces)
    fleet = tmp_path / "f.ifm"
    del traces["t3"]
    fleet_of(fleet, traces)
    for digest in fleet.glob("digests/*/*.parquet"):
        digest.write_bytes(b"damaged")
    packed = {file.name.partition(".")[0]: file.read_bytes() for file in tmp_path.glob("anew.ifm/digests/*/*.parquet")}
    with FleetWriter(fleet) as writer:
        for trace, digest_bytes in packed.items():
            if not writer.has_digest(trace):
                writer.keep(trace, digest_bytes)
        writer.finish(pl.read_parquet(tmp_path / "anew.ifm" / "tables" / "sources.parquet"))
    assert tables_of(fleet) == tables_of(tmp_path / "anew.ifm")


def test_tables_are_the_same_bytes_whatever_was_joined_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.fleet.joining._ROWS_AT_ONCE", 5)
    traces = {f"t{n}": {"kernels": [kernel(f"k{n}-{each}", each) for each in range(n % 4)]} for n in range(12)}
    random = Random(0)
    for turn in range(8):
        some = {name: traces[name] for name in random.sample(sorted(traces), random.randrange(len(traces) + 1))}
        fleet_of(tmp_path / "again.ifm", some)
        fleet_of(tmp_path / f"{turn}.ifm", some)
        assert bytes_of(tmp_path / "again.ifm") == bytes_of(tmp_path / f"{turn}.ifm")


def test_a_fleet_without_a_readable_trace_has_all_tables(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert mined(tmp_path / "f.ifm", tmp_path / "notes.txt").traces == 0
    fleet = open_fleet(tmp_path / "f.ifm")
    for name in DIGEST:
        assert fleet.table(name).collect().is_empty()


def tables_of(fleet: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (fleet / "tables").iterdir()}


def test_without_ray_or_an_address_of_it_what_to_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="expected HOST:PORT, found 'profiles/'") as raised:
        check_address("profiles/")
    assert "after the paths" in str(raised.value.hint)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    trace = write_trace(tmp_path / "t.json", ("gemm", 1.0))
    with pytest.raises(Unavailable, match="ray is not installed") as refused:
        mine([str(trace)], tmp_path / "f.ifm", readers=RayWorkers(limits=LIMITS))
    assert refused.value.hint == "pip install 'inferometer[fleet]', on every node"


def test_a_cluster_has_room_for_tasks_by_its_processors_and_its_memory() -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 4.0, "memory": float(5 << 30)}},
        {"Alive": True, "Resources": {"CPU": 1.0, "memory": float(9 << 30)}},
        {"Alive": True, "Resources": {"memory": float(9 << 30)}},
        {"Alive": False, "Resources": {"CPU": 8.0, "memory": float(64 << 30)}},
    ]
    assert room(nodes, 2 << 30) == 2 + 1
    with pytest.raises(Unavailable, match="10,240 MiB for a task, found 3 nodes, the largest with 9,216 MiB"):
        room(nodes, 10 << 30)


def test_tables_are_the_same_bytes_however_many_digests_are_joined_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = {f"t{n}": {"kernels": [kernel(f"k{n % 3}-{each}", n + each) for each in range(n)]} for n in range(9)}
    monkeypatch.setattr("inferometer.fleet.joining._ROWS_AT_ONCE", 5)
    fleet_of(tmp_path / "at once.ifm", traces)
    for number in (1, 4):
        monkeypatch.setattr("inferometer.fleet.joining._DIGESTS_AT_ONCE", number)
        fleet_of(tmp_path / f"{number}.ifm", traces)
        assert bytes_of(tmp_path / f"{number}.ifm") == bytes_of(tmp_path / "at once.ifm")
    rows = pl.read_parquet(tmp_path / "1.ifm" / "tables" / "kernels.parquet")
    assert (rows.height, rows["trace"].is_sorted()) == (36, True)
