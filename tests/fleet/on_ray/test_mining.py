"""Fleets made on a Ray cluster of two nodes, whose workers, nodes and drivers are killed at random.

`TURN`, that of a commit, draws who is killed when.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.effort import turn_of
from tests.fleet.mined import LIMITS, bytes_of, mined, write_trace
from tests.fleet.on_ray import hostile_node
from tests.fleet.on_ray.clusters import Cluster, running

from inferometer.errors import InputError, Unavailable
from inferometer.fleet.mining import Mined, Progress, mine
from inferometer.fleet.on_ray.workers import MOST_DEATHS, RayWorkers
from inferometer.fleet.workers import WorkerLimits

pytest.importorskip("ray", reason="ray isn't installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds Ray's processes in /proc")

WAIT_S = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with TemporaryDirectory(prefix="ray-", dir="/tmp") as folder, running(Path(folder)) as started:  # short: sockets
        yield started


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve contents, one of them under two names, and two files that are no traces."""
    folder = tmp_path_factory.mktemp("traces")
    for number in range(12):
        write_trace(folder / f"t{number:02}.json", *[("gemm", 1.0 + number)] * 50, seed=number)
    (folder / "again.json").write_bytes((folder / "t03.json").read_bytes())
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    (folder / "README.md").write_text("# no trace\n")
    return folder


@pytest.fixture(scope="module")
def whole(traces: Path) -> dict[str, bytes]:
    """The fleet of these, made on this machine alone."""
    mined(place := traces.parent / "whole.ifm", traces)
    return bytes_of(place)


def mined_on(
    cluster: Cluster, place: Path, *words: object, on_progress: Callable[[Progress], None] | None = None
) -> Mined:
    readers = RayWorkers(cluster.address, limits=LIMITS)
    return mine(map(str, words), place, readers=readers, on_progress=on_progress)


def draw() -> random.Random:
    return random.Random(turn_of(os.environ))


def test_the_fleet_is_the_same_bytes_though_workers_are_killed(
    cluster: Cluster, traces: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    drawn, killed = draw(), []
    at = drawn.sample(range(1, 10), MOST_DEATHS - 1)

    def kill(progress: Progress) -> None:
        if progress.done in at:
            until = time.monotonic() + WAIT_S
            while not (working := cluster.working()) and time.monotonic() < until:
                time.sleep(0.001)
            killed.append(drawn.choice(working))
            os.kill(killed[-1], signal.SIGKILL)

    found = mined_on(cluster, tmp_path / "f.ifm", traces, on_progress=kill)
    assert (found.traces, found.paths, found.made, len(found.aside)) == (12, 15, 12, 2)
    assert bytes_of(tmp_path / "f.ifm") == whole
    assert len(killed) == MOST_DEATHS - 1


def test_a_driver_that_is_killed_goes_on_from_what_is_on_disk(
    cluster: Cluster, traces: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    kill_drivers(cluster, traces, tmp_path / "f.ifm", [draw().randrange(1, 11)])
    assert bytes_of(tmp_path / "f.ifm") == whole


def test_a_driver_killed_again_and_again_loses_nothing(
    cluster: Cluster, traces: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    kill_drivers(cluster, traces, tmp_path / "f.ifm", sorted(draw().sample(range(12), 4)))
    assert bytes_of(tmp_path / "f.ifm") == whole


def kill_drivers(cluster: Cluster, traces: Path, place: Path, kept: list[int]) -> None:
    """Kill `mine` when it has so many digests, each time, then let it end: it makes only those that lack."""
    command = [sys.executable, "-m", "inferometer", "mine", traces, "-o", place, "--ray", cluster.address]
    for least in kept:
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_S
        while len([*place.glob("digests/*/*.parquet")]) < least and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        process.kill()
        process.wait()
    there = len([*place.glob("digests/*/*.parquet")])
    assert there >= kept[-1]
    assert mined_on(cluster, place, traces).made == 12 - there


def test_a_node_that_dies_takes_nothing_with_it(
    cluster: Cluster, traces: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    at = draw().randrange(1, 9)

    def end(progress: Progress) -> None:
        if progress.done == at:
            cluster.end(cluster.nodes[1])

    try:
        mined_on(cluster, tmp_path / "f.ifm", traces, on_progress=end)
    finally:
        cluster.add_node()
    assert bytes_of(tmp_path / "f.ifm") == whole


def test_what_ends_workers_is_set_aside_and_what_was_near_them_is_not(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferometer.fleet.on_ray.workers.read", hostile_node.read)
    for number, name in enumerate(("deadly", "unlucky", "fine")):
        write_trace(tmp_path / "t" / f"{name}.json", ("gemm", 1.0), seed=number)
    found = mined_on(cluster, tmp_path / "f.ifm", tmp_path / "t")
    assert (found.traces, found.aside) == (
        2,
        ((str(tmp_path / "t" / "deadly.json"), f"it ended {MOST_DEATHS} workers of Ray that read it"),),
    )
    assert (tmp_path / "t" / "unlucky.met").exists()
    monkeypatch.undo()
    assert mined_on(cluster, tmp_path / "f.ifm", tmp_path / "t" / "deadly.json").traces == 3


def test_what_a_node_does_not_see_is_no_fault_of_the_file(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write_trace(tmp_path / "another.json", ("gemm", 1.0))
    with trace.open("rb") as opened:
        number = fcntl(opened, F_DUPFD, 900)  # a number that no process of Ray has opened
    try:
        with pytest.raises(InputError, match=r"this machine reads it, the node .* doesn't: No such"):
            mined_on(cluster, tmp_path / "f.ifm", f"/proc/{os.getpid()}/fd/../../self/fd/{number}")
    finally:
        os.close(number)
    monkeypatch.setattr("inferometer.fleet.on_ray.workers.read", hostile_node.read)
    with pytest.raises(InputError, match="the node n doesn't: another content is there"):
        mined_on(cluster, tmp_path / "f.ifm", trace)
    monkeypatch.undo()
    assert mined_on(cluster, tmp_path / "f.ifm", trace).traces == 1


def test_another_version_on_a_node_and_a_task_that_fits_none_are_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write_trace(tmp_path / "t.json", ("gemm", 1.0))
    with pytest.raises(Unavailable, match="expected a node with a CPU and 9,216 MiB for a task, found 2 nodes"):
        mine([str(trace)], tmp_path / "f.ifm", readers=RayWorkers(cluster.address, limits=WorkerLimits(9 << 30, 60.0)))
    monkeypatch.setattr("inferometer.fleet.on_ray.workers.__version__", "0.0.0")
    with pytest.raises(InputError, match=r"is installed there, expected 0\.0\.0"):
        mined_on(cluster, tmp_path / "f.ifm", trace)
