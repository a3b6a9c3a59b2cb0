"""Servers on loopback for tests of a watch: one that takes events, one that answers as it is told."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Received(BaseHTTPRequestHandler):
    """Keeps what is posted in `server.got`, and answers as `server.answer` says."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.got.append((self.path, dict(self.headers), json.loads(body)))
        status, headers = server.answer(len(server.got))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def hook(answer: Callable[[int], tuple[int, dict[str, str]]] = lambda _: (204, {})) -> Iterator[tuple[str, list[Any]]]:
    """Its address, and what it got: path, headers, document; `answer` gets the number of the request."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Received)
    server.got, server.answer = [], answer
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wait_until(is_so: Callable[[], object], seconds: float = 20.0) -> None:
    """Fails where it isn't so in time."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it didn't happen in time"
        time.sleep(0.01)
