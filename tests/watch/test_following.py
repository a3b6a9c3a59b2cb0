"""Recordings that are being written: one, several, and those whose writer is gone."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.watch.serving import hook
from tests.watch.streams import made, one_after_another, run_watch

from inferometer.errors import InputError
from inferometer.record.clock import Clock
from inferometer.record.journal.journal import Journal
from inferometer.trace.facts import Facts, NamedId
from inferometer.watch.following import STALE_S, Following
from inferometer.watch.growing import is_growing
from inferometer.watch.steps import WatchedStep


def _write(journal: Journal, steps: list[WatchedStep], **columns: int) -> None:
    times = {name: [getattr(step, name) for step in steps] for name in ("start_ns", "dur_ns")}
    journal.add("steps", len(steps), {**times, "phase": "decode", **columns})
    journal.flush()


def _left(path: Path, process: int, *, host: str | None = None, steps: int = 40) -> None:
    """As a killed process leaves it."""
    journal = Journal(path, flush_s=99)

    def about(facts: Facts) -> Facts:
        return msgspec.structs.replace(facts, processes=(NamedId(process),), hosts=(host or socket.gethostname(),))

    journal.change_facts(about)
    _write(journal, made(steps), process=process)
    journal._abandon()


def _dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_one_whose_writer_is_dead_ends_by_itself(tmp_path: Path) -> None:
    _left(tmp_path / "run.ifm", _dead_process())
    began = time.monotonic()
    code, out, err = run_watch(tmp_path / "run.ifm", "--no-live")
    assert code == 0
    assert time.monotonic() - began < 20
    assert "its process has ended without closing it" in err
    assert "40 steps" in out


def test_one_whose_writer_lives_goes_on(tmp_path: Path) -> None:
    _left(tmp_path / "run.ifm", os.getpid())
    following = Following(tmp_path / "run.ifm", wall_s=lambda: time.time() + 10 * STALE_S)
    assert len(following.look()) == 40
    assert following.look() == []
    assert not following.is_over


def test_a_recording_is_read_again_only_when_its_manifest_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.ifm"
    _left(path, os.getpid())
    opened: list[Path] = []
    real = Path.open

    def counted(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    following = Following(path)
    assert len(following.look()) == 40
    manifests = [each for each in opened if each.name == "facts.json"]
    assert manifests
    for _ in range(5):
        assert following.look() == []
    assert [each for each in opened if each.name == "facts.json"] == manifests
    os.utime(path / "facts.json")
    assert following.look() == []
    assert len([each for each in opened if each.name == "facts.json"]) > len(manifests)


def test_a_recording_that_is_gone_is_an_error(tmp_path: Path) -> None:
    _left(tmp_path / "run.ifm", os.getpid())
    following = Following(tmp_path / "run.ifm")
    following.look()
    shutil.rmtree(tmp_path / "run.ifm")
    with pytest.raises(InputError, match="not a store"):
        following.look()


@pytest.mark.parametrize(("idle_s", "is_over"), [(STALE_S - 60, False), (STALE_S + 60, True)])
def test_one_of_another_machine_ends_when_it_is_stale(tmp_path: Path, idle_s: float, is_over: bool) -> None:
    _left(tmp_path / "run.ifm", 1, host="elsewhere")
    following = Following(tmp_path / "run.ifm", wall_s=lambda: time.time() + idle_s)
    following.look()
    assert following.is_over is is_over
    assert [line.endswith("nothing was written for 600 s") for line in following.left] == [True] * is_over


def test_ranks_in_a_folder_are_followed_on_one_clock(tmp_path: Path) -> None:
    base = Clock.start()
    later = Clock(base.origin_ns + 10**9, base.base_ns + 10**9)
    with Journal(tmp_path / "0.ifm", clock=base, flush_s=99) as first:
        _write(first, made(40), rank=0)
        following = Following(tmp_path)
        assert is_growing(tmp_path)
        assert {step.owner for step in following.look()} == {"rank 0"}
        with Journal(tmp_path / "1.ifm", clock=later, flush_s=99) as second:
            _write(second, made(40, seed=1), rank=1)
            joined = following.look()
            assert {step.owner for step in joined} == {"rank 1"}
            assert joined[0].start_ns == 10**9
            assert following.look() == []
    for _ in range(3):
        assert not following.is_over
        following.look()
    assert following.is_over
    assert following.clock_base_ns == base.base_ns


def test_two_processes_of_one_number_are_two(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Journal(tmp_path / f"{name}.ifm", flush_s=99) as journal:
            _write(journal, made(40), process=7)
    assert {step.owner for step in Following(tmp_path).look()} == {"process 7", "process 7 (b)"}


def test_the_slow_one_of_several_is_named(tmp_path: Path) -> None:
    parts = tmp_path / "run.ifm.parts"
    parts.mkdir()
    clock, dead = Clock.start(), _dead_process()
    for process, slow_ms in ((dead, 10), (dead + 1, 20)):
        steps = [*one_after_another(made(300, seed=process), made(60, ms=slow_ms, seed=1))]
        with Journal(parts / f"{process}.ifm", clock=clock, flush_s=99) as journal:
            _write(journal, steps, process=process)
    code, out, _ = run_watch(parts, "--json", "--no-why", "--no-live", "--fail-on", "alarm")
    assert code == 1
    assert f'"owner": "process {dead + 1}"' in out
    assert f'"owner": "process {dead}"' not in out


def test_parts_that_were_joined_and_removed_end_the_watch(tmp_path: Path) -> None:
    parts = tmp_path / "run.ifm.parts"
    parts.mkdir()
    _left(parts / "7.ifm", os.getpid())
    following = Following(parts)
    assert len(following.look()) == 40
    shutil.rmtree(parts)
    assert following.look() == []
    assert following.is_over


def test_a_folder_without_recordings_is_none(tmp_path: Path) -> None:
    assert not is_growing(tmp_path)
    assert not is_growing(tmp_path / "nowhere")
    (tmp_path / "x.ifm").symlink_to(tmp_path)
    assert not is_growing(tmp_path)
    code, _, _ = run_watch(tmp_path)
    assert code == 3


def test_a_recording_that_is_damaged_meanwhile_is_an_error(tmp_path: Path) -> None:
    _left(tmp_path / "run.ifm", os.getpid())
    following = Following(tmp_path / "run.ifm")
    following.look()
    (tmp_path / "run.ifm" / "facts.json").write_text("{")
    with pytest.raises(InputError):
        following.look()


@pytest.mark.parametrize(("ago_s", "posted"), [(3600, []), (5, ["alarm"])])
def test_what_was_noticed_long_ago_is_printed_and_not_posted(tmp_path: Path, ago_s: int, posted: list[str]) -> None:
    steps = [*one_after_another(made(400), made(60, ms=20, seed=1))]
    now = Clock.start()
    journal = Journal(tmp_path / "run.ifm", clock=Clock(now.origin_ns, now.base_ns - ago_s * 10**9), flush_s=99)

    def about(facts: Facts) -> Facts:
        return msgspec.structs.replace(facts, processes=(NamedId(_dead_process()),))

    journal.change_facts(about)
    _write(journal, steps)
    journal._abandon()
    with hook() as (url, got):
        code, _, err = run_watch(tmp_path / "run.ifm", "--webhook", url, "--no-why", "--no-live")
    assert code == 0
    assert "Slow since" in err
    assert [document["event"] for _, _, document in got] == posted
