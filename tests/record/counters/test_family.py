"""Who belongs to a recorded process, and what they took."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.record.counters.pretended import stat_of, write

from inferometer.record.counters.family import Family, process_cpu_ns
from inferometer.record.counters.files import Files

SECOND = 1_000_000_000


def names_of(root: Path) -> None:
    parents = {7: 1, 8: 7, 9: 8, 10: 1, 11: 7}
    write(root, {f"/proc/{process}/stat": stat_of(parent=parent) for process, parent in parents.items()})


def test_children_by_the_parents_that_all_processes_name(tmp_path: Path) -> None:
    names_of(tmp_path)
    family = Family((7,), Files(tmp_path), without=(11,))
    family.refresh(0)
    assert set(family.members) == {7, 8, 9}


def test_children_as_the_kernel_lists_them(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/7/task/7/children": "8 ", "/proc/7/task/70/children": "9", "/proc/8/task/8/children": ""})
    family = Family((7,), Files(tmp_path))
    family.refresh(0)
    assert set(family.members) == {7, 8, 9}


def test_they_are_looked_for_once_a_second_and_only_where_something_began(tmp_path: Path) -> None:
    names_of(tmp_path)
    write(tmp_path, {"/proc/loadavg": "0.1 0.1 0.1 1/90 100"})
    family = Family((10,), Files(tmp_path))
    family.refresh(0, lambda: 0)
    write(tmp_path, {"/proc/12/stat": stat_of(parent=10)})
    family.refresh(SECOND, lambda: 0)
    assert family.members == (10,)
    write(tmp_path, {"/proc/loadavg": "0.1 0.1 0.1 1/90 101"})
    family.refresh(SECOND + SECOND // 2, lambda: 0)
    assert family.members == (10,)
    family.refresh(2 * SECOND, lambda: 0)
    assert list(family.members) == [10, 12]


def test_who_ended_keeps_what_it_took(tmp_path: Path) -> None:
    taken = {7: 100, 8: 50}
    names_of(tmp_path)
    family = Family((7,), Files(tmp_path), cpu_ns=taken.get)
    family.refresh(0)
    assert family.cpu_ns() == 150
    del taken[8]
    taken[7] = 130
    assert family.cpu_ns() == 180


def test_a_real_child_is_ours_and_has_a_clock() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc, which this system lacks")
    command = [sys.executable, "-S", "-c", "print(sum(range(10**6)), flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        family = Family((os.getpid(),), Files())
        family.refresh(0)
        assert child.pid in family.members
        assert (process_cpu_ns(child.pid) or 0) > 0
        child.stdin.write(b"\n")
    assert process_cpu_ns(child.pid) is None
