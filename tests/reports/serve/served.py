"""A server as a process, asked over HTTP on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from select import select
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 120
TOKEN = "t" * 24
EVIL = "<img src=x onerror=alert(1)>.json"


class Served:
    """One server, from its start until `stop`."""

    def __init__(self, *words: object, cache: Path, token: str | None = TOKEN) -> None:
        command = [sys.executable, "-m", "inferometer", "serve", *map(str, words)]
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        environment.pop("INFEROMETER_TOKEN", None)
        if token is not None:
            environment["INFEROMETER_TOKEN"] = token
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        ready, _, _ = select([self.process.stdout], [], [], PATIENCE_S)
        assert ready, "the server does not begin"
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError(self.process.communicate()[1])
        self.port = urlsplit(self.url).port or 0
        self.token = urlsplit(self.url).path.strip("/")
        self.host = f"127.0.0.1:{self.port}"

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Of an address as it is: status, body, headers."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), {key.lower(): value for key, value in answer.getheaders()}

    def get(self, path: str) -> Any:
        """The answer to an address behind the token."""
        status, body, _ = self.ask(f"/{self.token}/{path}")
        assert status == 200, body
        return json.loads(body)

    def send(self, path: str, data: Any, method: str = "POST") -> tuple[int, Any]:
        """Status and answer."""
        status, body, _ = self.ask(f"/{self.token}/{path}", method, json.dumps(data).encode())
        return status, json.loads(body) if body else None

    def job(self, kind: str, **given: Any) -> dict[str, Any]:
        """A job that is over, with the name of the page that it made."""
        status, begun = self.send("api/jobs", {"kind": kind, **given})
        assert status == 202, begun
        return {**self.ended(begun["id"]), "page": begun["page"]}

    def ended(self, id: str) -> dict[str, Any]:
        """A job, when it is over."""
        end = time.monotonic() + PATIENCE_S
        while (job := self.get(f"api/jobs/{id}"))["state"] in ("queued", "running"):
            assert time.monotonic() < end, job
            time.sleep(0.05)
        return dict(job)

    def runs(self) -> dict[str, dict[str, Any]]:
        """By place and name."""
        return {f"{run['place']}/{run['name']}".strip("/"): run for run in self.get("api/state")["runs"]}

    def id_of(self, name: str) -> str:
        """The number of a run."""
        return str(self.runs()[name]["id"])

    def until(self, is_true: Any) -> Any:
        """What `is_true` gives of the runs, when it is no longer false."""
        end = time.monotonic() + PATIENCE_S
        while not (found := is_true(self.runs())):
            assert time.monotonic() < end, self.runs()
            time.sleep(0.1)
        return found

    def stop(self, number: int = signal.SIGINT) -> int:
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.communicate(timeout=PATIENCE_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


@contextmanager
def serving(*words: object, cache: Path, token: str | None = TOKEN) -> Iterator[Served]:
    """A server that ends with the block."""
    served = Served(*words, cache=cache, token=token)
    try:
        yield served
    finally:
        served.stop()
