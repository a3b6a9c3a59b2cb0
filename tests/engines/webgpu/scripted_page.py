"""What a browser's page says, by a script: it talks to the server as the page does, and has no device. Processes."""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LIMITS = {
    "maxBufferSize": 1 << 30,
    "maxStorageBufferBindingSize": 1 << 27,
    "maxStorageBuffersPerShaderStage": 10,
    "maxComputeInvocationsPerWorkgroup": 256,
}


class ScriptedPage:
    """A page at this address; `events` begins as it does."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname or "", parts.port)
        self._path = parts.path
        self._events = HTTPConnection(*self._place, timeout=10)
        self._events.request("GET", f"{self._path}events")
        self._stream = self._events.getresponse()

    def ask(self, method: str, name: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of an answer."""
        with closing(HTTPConnection(*self._place, timeout=30)) as connection:
            connection.request(method, f"{self._path}{name}", body)
            with connection.getresponse() as answer:
                return answer.status, answer.read()

    def post(self, kind: str, **body: Any) -> Any:
        """Say something; what Python answers to it."""
        status, data = self.ask("POST", kind, json.dumps(body).encode())
        assert status == 200
        return json.loads(data)

    def command(self) -> dict[str, Any]:
        """The next thing to do."""
        while True:
            status, data = self.ask("GET", "command")
            if status == 200:
                command: dict[str, Any] = json.loads(data)
                return command

    def introduce(self) -> None:
        """Say which device there is."""
        pings = []
        for _ in range(3):
            asked = time.perf_counter() * 1e3
            told = self.ask("GET", "clock")[1].decode()
            pings.append((asked, told, time.perf_counter() * 1e3))
        features = ["timestamp-query"]
        self.post("adapter", name="scripted", features=features, limits=LIMITS, pings=pings, resolution=0.005)

    def event(self) -> dict[str, Any]:
        """The next event for the view."""
        line = self._stream.readline()
        assert self._stream.readline() == b"\n"
        event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
        return event

    def leave(self) -> None:
        """Close the page."""
        self._stream.close()
        self._events.close()


def submission(number: int, token: int, position: int = 2) -> dict[str, Any]:
    """A submit of one decode step with two timed dispatches."""
    return {
        "id": number,
        "passes": [{"phases": ["decode", "head"], "tokens": 1, "position": position}],
        "timing": "timestamps",
        "start": 100.0,
        "record": 1.0,
        "submit": 0.5,
        "wait": 3.0,
        "read": 0.25,
        "tokens": [token],
        "base": "18000000000000000000",
        "times": [0, 700, None, None],
        "untimed": 1,
    }


class UserOfBrowser:
    """Gets the lines that a session says, and opens its address as soon as it is reported, in a thread."""

    def __init__(self, page: Callable[[ScriptedPage], None]) -> None:
        self.lines: list[str] = []
        self._page = page
        self._thread: threading.Thread | None = None

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if "open this page" in line:
            self._thread = threading.Thread(target=lambda: self._page(ScriptedPage(line.rsplit(maxsplit=1)[-1])))
            self._thread.start()

    def wait(self) -> None:
        """Until the page did all that it had to."""
        assert self._thread is not None
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()


def runs(pid: int) -> bool:
    """Whether there is such a process, and it isn't one that has ended and waits to be asked for how."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self/stat").exists()
