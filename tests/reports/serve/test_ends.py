"""Servers that end or are killed, and jobs that take all memory."""

import os
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
from tests.reports.serve.served import TOKEN, Served, serving

SAMPLES = Path(__file__).resolve().parents[3] / "samples"

pytest.importorskip("uvicorn")


def test_a_killed_server_loses_nothing_and_starts_warm(folder: Path, tmp_path: Path) -> None:
    first = Served(folder / "base.json", cache=tmp_path / "cache")
    try:
        run = first.id_of("base.json")
        page = first.job("page", run=run)
        assert page["state"] == "done"
        query = (
            "select count(*) from launches a, launches b, launches c, launches d, launches e, launches f, launches g"
        )
        _, begun = first.send("api/jobs", {"kind": "query", "run": run, "query": query})
        first.until(lambda _: first.get(f"api/jobs/{begun['id']}")["state"] == "running")
        workers = _children(first.process.pid)
        assert workers
    finally:
        first.stop(signal.SIGKILL)

    end = time.monotonic() + 60
    while any(_is_there(pid) for pid in workers):
        assert time.monotonic() < end, "a job outlives its server"
        time.sleep(0.1)
    with serving(folder / "base.json", cache=tmp_path / "cache") as second:
        status, again = second.send("api/jobs", {"kind": "page", "run": second.id_of("base.json")})
        assert (status, again["state"], again["page"]) == (202, "done", page["page"])
        about = second.until(lambda runs: runs["base.json"]["about"])
        assert about["launches"] == 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(folder: Path, tmp_path: Path, number: int) -> None:
    server = Served(folder / "base.json", cache=tmp_path)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as stream:
        stream.sendall(f"GET /{TOKEN}/api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert stream.recv(4096)
        workers = _children(server.process.pid)
        assert server.stop(number) == 0
    assert not any(_is_there(pid) for pid in workers)


def test_memory_of_a_job_has_a_limit(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "recorded" / "none" / "normal.ifm", tmp_path / "run.ifm")
    with serving(tmp_path / "run.ifm", "--memory", "2", cache=tmp_path / "cache") as server:
        query = "select array_agg(a.start_ns) as x from frames a, frames b, frames c"
        job = server.job("query", run=server.id_of("run.ifm"), query=query)
        again = server.job("query", run=server.id_of("run.ifm"), query="select 1 as a")

    assert job["state"] == "failed"
    assert "memory" in job["error"], job
    assert again["state"] == "done", again["error"]


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
