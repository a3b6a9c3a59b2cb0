"""The server of the page: on loopback, for one page, its own files and the program only.

    GET  /TOKEN/              the page; /TOKEN/engine.js and so on: its files, a fixed list
    GET  /TOKEN/program.json  what to run          /TOKEN/weights.bin  its weights, whole or in one range
    GET  /TOKEN/command       what to do next: waits, 204 where there is nothing yet
    GET  /TOKEN/clock         `time.perf_counter_ns` now
    GET  /TOKEN/events        server-sent events: text for the reader; its end is how either side knows of the other's
    POST /TOKEN/adapter, /log, /load, /submission, /result

Who may come in is a rule of `loopback.py`. Connections, headers and bodies have limits; who doesn't know the token is
waited for briefly.
"""

import contextlib
import http.client
import json
import queue
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, cast

from inferometer.engines.webgpu.browser.bundle import WeightFile
from inferometer.errors import InputError
from inferometer.loopback import (
    HEADERS,
    HOST,
    MOST_CONNECTIONS,
    MOST_HEADER_BYTES,
    OWN_FILES_ONLY,
    UNKNOWN_S,
    Door,
    new_token,
)

_TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
_PAGE = {"": "index.html"} | {name: name for name in ("engine.js", "weights.js", "view.js", "main.js", "style.css")}
_POSTS = ("adapter", "log", "load", "submission", "result")
_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": OWN_FILES_ONLY,
    "Cross-Origin-Embedder-Policy": "require-corp",  # the page's clock steps by 5 µs instead of 100
}
_MOST_POSTED = 64 << 20
_POLL_S = 10.0
_LOOK_S = 0.2
_STUCK_S = 30.0
_LONGEST_NUMBER = 18  # digits; Python refuses to read 5,000
_BUSY = b"too many connections: close one of the pages, or try again\n"


@dataclass(frozen=True)
class Posted:
    """What the page sent: `kind` is the last part of the address."""

    kind: str
    body: bytes


class PageServer:
    """Serves until `close`; `inbox` has what the page posted, in order. Its methods may be called from any thread.

    Args:
        port: 0: a free one.

    Raises:
        InputError: The port is taken.
    """

    def __init__(self, port: int = 0) -> None:
        self.token = new_token()
        self.inbox: queue.Queue[Posted] = queue.Queue()
        self.failure: Exception | None = None
        self.stopped = False
        self._commands: queue.Queue[bytes] = queue.Queue()
        self._events: queue.Queue[bytes] = queue.Queue()
        self.program = b""
        self.weights: WeightFile | None = None
        self._closing = threading.Event()
        self._page_lock = threading.Lock()
        self._listeners = 0
        self._left_at: float | None = None
        try:
            self._http = _Http((HOST, port), _Handler)
        except OSError as error:
            raise InputError(f"port {port}: {error.strerror or error}", hint="Name another one, or none.") from error
        self._http.owner = self
        self.port: int = self._http.server_address[1]
        self.door = Door(self.token, self.port)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(_LOOK_S / 4,), name="page server", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The page's address, with the token."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def publish(self, program: bytes, weights: WeightFile) -> None:
        """Serve this program from now on."""
        self.program, self.weights, self.failure = program, weights, None

    def ask(self, command: Mapping[str, Any]) -> None:
        """Give the page a command, behind those that it hasn't fetched yet."""
        self._commands.put(json.dumps(command).encode())

    def show(self, event: Mapping[str, Any]) -> None:
        """Send an event to the page's view."""
        self._events.put(json.dumps(event).encode())

    @property
    def is_closing(self) -> bool:
        """Whether `close` was called: what waits gives up."""
        return self._closing.is_set()

    def next_command(self, wait_s: float) -> bytes | None:
        """Take the next command for the page; None where there is none in this time."""
        return _next(self._commands, wait_s)

    def next_event(self, wait_s: float) -> bytes | None:
        """Take the next event for the page's view; None where there is none in this time."""
        return _next(self._events, wait_s)

    @contextlib.contextmanager
    def page_there(self) -> Iterator[None]:
        """A page listens to events in this block."""
        with self._page_lock:
            self._listeners += 1
            self._left_at = None
        try:
            yield
        finally:
            with self._page_lock:
                self._listeners -= 1
                if self._listeners == 0:
                    self._left_at = time.monotonic()

    def gone_s(self) -> float:
        """Seconds since the page that was there went away; 0 while one is there, or none came yet."""
        with self._page_lock:
            return 0.0 if self._left_at is None else time.monotonic() - self._left_at

    def drain(self, limit_s: float) -> None:
        """Wait until the page that is there has fetched its commands."""
        end = time.monotonic() + limit_s
        while not self._commands.empty() and self._listeners and time.monotonic() < end:
            time.sleep(0.01)

    def close(self) -> None:
        """End: what waits gets no answer any more."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=_STUCK_S)


def _next(waiting: "queue.Queue[bytes]", wait_s: float) -> bytes | None:
    try:
        return waiting.get(timeout=wait_s)
    except queue.Empty:
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS
    allow_reuse_address = True  # a port in TIME_WAIT after the last run; Windows means another thing by it, see below
    owner: PageServer

    def __init__(self, *args: Any) -> None:
        self._places = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread, or refused where there are too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.settimeout(_LOOK_S)
            request.sendall(
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                b"Retry-After: 1\r\nContent-Length: %d\r\n\r\n%b" % (len(_BUSY), _BUSY)
            )
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As of `socketserver`; then there is a place again."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def server_bind(self) -> None:
        if sys.platform == "win32":  # there, it would share a port that is in use
            self.allow_reuse_address = False
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that went away in the middle is no news; other mistakes are raised where the page is waited for."""
        error = sys.exception()
        if isinstance(error, Exception) and not isinstance(error, ConnectionError | TimeoutError):
            self.owner.failure = error


@cache
def _page_file(name: str) -> bytes:
    return (files("inferometer.engines.webgpu.browser") / "page" / name).read_bytes()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "inferometer"
    sys_version = ""
    timeout = UNKNOWN_S
    disable_nagle_algorithm = True
    server: _Http

    @property
    def _owner(self) -> PageServer:
        return self.server.owner

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse without words: what can't be read as a request, and methods that there aren't."""
        self._refuse(HTTPStatus(code))

    def parse_request(self) -> bool:
        """As of `http.server`, with a limit of all headers together."""
        whole = self.rfile
        self.rfile = cast("Any", _Bounded(whole))
        try:
            return super().parse_request()
        finally:
            self.rfile = whole

    def do_GET(self) -> None:
        """The page, the program, what to do."""
        name = self._asked()
        match name:
            case None:
                self._refuse(HTTPStatus.NOT_FOUND)
            case "program.json":
                self._answer(self._owner.program, "application/json")
            case "weights.bin":
                self._send_weights()
            case "clock":
                self._answer(str(time.perf_counter_ns()).encode(), "text/plain")
            case "command":
                self._send_command()
            case "events":
                self._send_events()
            case _ if name in _PAGE:
                self._answer(_page_file(_PAGE[name]), _TYPES[_PAGE[name].rpartition(".")[2]])
            case _:
                self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """What the page has to say."""
        name = self._asked()
        if name not in _POSTS or not Door.is_from_us(self.headers.get("Origin"), self.headers.get("Host")):
            return self._refuse(HTTPStatus.NOT_FOUND)
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            return self._refuse(HTTPStatus.LENGTH_REQUIRED)
        if len(length) > _LONGEST_NUMBER or int(length) > _MOST_POSTED:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        body = self.rfile.read(int(length))
        if len(body) == int(length):
            self._owner.inbox.put(Posted(name, body))
        return self._answer(b'{"stop":true}' if self._owner.stopped else b"{}", "application/json")

    def _asked(self) -> str | None:
        """The last part of the address; None for whoever may not know that there is something."""
        name = self._owner.door.rest_of(self.path.partition("?")[0], self.headers.get("Host"))
        if name is not None:
            self.connection.settimeout(_STUCK_S)
        return name

    def _refuse(self, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> None:
        self.close_connection = True  # a body may be left unread
        self._answer(b"", "text/plain", status, headers or {})

    def _answer(
        self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
    ) -> None:
        self._begin(status, {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _begin(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in (_HEADERS | dict(headers)).items():
            self.send_header(key, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _send_weights(self) -> None:
        weights = self._owner.weights
        if weights is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        span = _read_range(self.headers.get("Range"), weights.size_bytes)
        if span is None:
            return self._refuse(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{weights.size_bytes}"}
            )
        first, last = span
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(last - first)}
        headers["Accept-Ranges"] = "bytes"
        if "Range" in self.headers:
            headers["Content-Range"] = f"bytes {first}-{last - 1}/{weights.size_bytes}"
        self._begin(HTTPStatus.PARTIAL_CONTENT if "Range" in self.headers else HTTPStatus.OK, headers)
        try:
            for piece in weights.read(first, last):
                self.wfile.write(piece)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 -- of whatever reads the weights: raised where the load is waited for
            self._owner.failure = error
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)  # the page sees an answer that is too short

    def _send_command(self) -> None:
        """Wait for a command a while. One that a page that left can't take any more is lost, as the page is."""
        end = time.monotonic() + _POLL_S
        while not self._owner.is_closing and time.monotonic() < end and not self._left():
            if (command := self._owner.next_command(_LOOK_S)) is not None:
                return self._answer(command, "application/json")
        return self._answer(b"", "application/json", HTTPStatus.NO_CONTENT)

    def _send_events(self) -> None:
        self.close_connection = True
        with self._owner.page_there():
            self._begin(HTTPStatus.OK, {"Content-Type": "text/event-stream"})
            while not self._owner.is_closing and not self._left():
                if (event := self._owner.next_event(_LOOK_S)) is not None:
                    self.wfile.write(b"data: " + event + b"\n\n")

    def _left(self) -> bool:
        """Whether the page closed this connection: it sends nothing while it waits, so only the end can be read."""
        return bool(select.select([self.connection], [], [], 0)[0])


class _Bounded:
    """Reads lines of headers, up to `MOST_HEADER_BYTES` bytes of them."""

    def __init__(self, whole: Any) -> None:
        self._whole, self._left = whole, MOST_HEADER_BYTES

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._whole.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise http.client.LineTooLong("headers")
        return line


def _read_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte, and the one after the last; None where the header isn't one range that begins inside the file."""
    if header is None:
        return 0, size
    unit, _, span = header.partition("=")
    first, dash, last = span.partition("-")
    if (
        unit.strip() != "bytes"
        or not dash
        or not all(part.isascii() and part.isdigit() for part in (first, last) if part)
    ):
        return None
    if len(first) > _LONGEST_NUMBER or len(last) > _LONGEST_NUMBER:
        return None
    if not first:
        begin, end = (size - min(int(last), size), size) if last else (size, size)
    else:
        begin, end = int(first), min(int(last) + 1, size) if last else size
    return (begin, end) if begin < end else None
