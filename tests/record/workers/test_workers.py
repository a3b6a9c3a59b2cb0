"""Processes that a recorded program starts are recorded, however they start and end: with torch, as users have it."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

import inferometer

pytest.importorskip("torch", reason="torch isn't installed")

LIMIT_S = 120
WORK = """
    import os, sys, time
    import torch
    import inferometer

    def work(n):  # n ops with a name that tells whose they are
        with inferometer.step(phase="decode", batch=n):
            for _ in range(n):
                torch.relu(torch.ones(4))
"""


def run(folder: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`code` under `inferometer record`, or by itself with the option `alone`."""
    script = folder / "script.py"
    script.write_text(dedent(WORK) + dedent(code))
    before = [] if options == ("alone",) else ["-m", "inferometer", "record", *options, "--", sys.executable]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *before, "script.py"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment,
    )


def relus(store: Path) -> dict[int, int]:
    """Calls of relu by process."""
    with inferometer.open(str(store), {"ops"}) as trace:
        mine = trace.ops.filter(pl.col("op") == "aten::relu").group_by("process").len().collect()
    return dict(mine.iter_rows())


FORKS = """
    pids = []
    work(3)
    for n, leave in ((5, sys.exit), (7, os._exit)):
        if (pid := os.fork()) == 0:
            work(n)
            leave(n)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == n
        pids.append(pid)
    if (pid := os.fork()) == 0:
        os._exit(0)  # records nothing: leaves nothing
    os.waitpid(pid, 0)
    work(2)
    print(os.getpid(), *pids)
"""


def test_forked_processes_have_parts_of_their_own(tmp_path: Path) -> None:
    ran = run(tmp_path, FORKS)
    assert ran.returncode == 0, ran.stderr
    parent, first, second = map(int, ran.stdout.split())
    assert relus(tmp_path / "run.ifm") == {parent: 5, first: 5, second: 7}
    assert not (tmp_path / "run.ifm.parts").exists()
    with inferometer.open(str(tmp_path / "run.ifm")) as trace:
        steps = trace.steps.sort("start_ns").select("process", "batch").collect().rows()
        assert steps == [(parent, 3), (first, 5), (second, 7), (parent, 2)]
        assert {first, second, parent} <= {named.process for named in trace.facts.processes}
        assert trace.facts.recorded["finished"]


def test_the_same_within_a_program_that_records_itself(tmp_path: Path) -> None:
    inside = "\n".join("    " + line for line in dedent(FORKS).splitlines())
    ran = run(tmp_path, f"with inferometer.record('run.ifm', counters=False):\n{inside}\n", "alone")
    assert ran.returncode == 0, ran.stderr
    parent, first, second = map(int, ran.stdout.split())
    assert relus(tmp_path / "run.ifm") == {parent: 5, first: 5, second: 7}
    assert not (tmp_path / "run.ifm.parts").exists()


def test_workers_of_multiprocessing_and_other_pythons_are_recorded(tmp_path: Path) -> None:
    code = """
        import multiprocessing, subprocess

        def own(n, results):
            work(n)
            results.put(os.getpid())

        if __name__ == "__main__":
            pids = [os.getpid()]
            for n, how in ((3, "fork"), (4, "spawn")):
                context = multiprocessing.get_context(how)
                results = context.Queue()
                worker = context.Process(target=own, args=(n, results))
                worker.start()
                pids.append(results.get())
                worker.join()
            other = "import os, torch; torch.relu(torch.ones(1)); print(os.getpid())"
            pids.append(subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stdout.strip())
            work(1)
            print(*pids)
    """
    ran = run(tmp_path, code)
    assert ran.returncode == 0, ran.stderr
    parent, forked, spawned, other = map(int, ran.stdout.split())
    assert relus(tmp_path / "run.ifm") == {parent: 1, forked: 3, spawned: 4, other: 1}


def test_a_worker_that_is_killed_leaves_what_it_had(tmp_path: Path) -> None:
    code = """
        if (pid := os.fork()) == 0:
            work(6)
            facts = f"run.ifm.parts/{os.getpid()}.ifm/facts.json"
            until = time.monotonic() + 60  # it is written every second, on a machine that isn't busy
            while time.monotonic() < until and '"ops-' not in open(facts).read():
                time.sleep(0.05)
            os.kill(os.getpid(), 9)
        os.waitpid(pid, 0)
        print(pid, flush=True)
        os.kill(os.getpid(), 11)
    """
    ran = run(tmp_path, code)
    assert ran.returncode == 128 + 11
    assert relus(tmp_path / "run.ifm") == {int(ran.stdout): 6}
    with inferometer.open(str(tmp_path / "run.ifm")) as trace:
        assert not trace.facts.recorded["finished"]


def test_a_second_recording_has_the_ops_of_its_time(tmp_path: Path) -> None:
    code = """
        with inferometer.record("run.ifm", workers=False):
            work(3)
            with inferometer.record("inner.ifm", workers=False):
                work(4)
            work(2)
    """
    ran = run(tmp_path, code, "alone")
    assert ran.returncode == 0, ran.stderr
    assert list(relus(tmp_path / "run.ifm").values()) == [9]
    assert list(relus(tmp_path / "inner.ifm").values()) == [4]


def test_ranks_are_those_of_the_launcher(tmp_path: Path) -> None:
    code = """
        import subprocess
        if "RANK" not in os.environ:
            for rank in "01":
                subprocess.run([sys.executable, __file__], env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"})
        else:
            work(2 + int(os.environ["RANK"]))
    """
    ran = run(tmp_path, code, "--no-counters")
    assert ran.returncode == 0, ran.stderr
    with inferometer.open(str(tmp_path / "run.ifm")) as trace:
        found = trace.ops.filter(pl.col("op") == "aten::relu").group_by("rank").len().collect()
        assert dict(found.iter_rows()) == {0: 2, 1: 3}
        assert (trace.facts.ranks, trace.facts.world_size) == ((0, 1), 2)
