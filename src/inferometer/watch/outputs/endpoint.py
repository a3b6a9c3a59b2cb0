"""An address that Prometheus scrapes: GET /metrics, and nothing else.

One request per connection, which has five seconds for all of it; sixteen connections at a time. On a loopback address
only requests that name this machine are answered, so that no page in a browser reads along. Nothing is logged.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from inferometer.errors import InputError
from inferometer.loopback import HEADERS, Door, is_loopback

_CONTENT = "text/plain; version=0.0.4; charset=utf-8"
_MOST_CONNECTIONS = 16
_LONGEST_S = 5.0
_HINT = "As in 127.0.0.1:9464; port 0 takes a free one."


class Endpoint:
    """Serves `text()` at `address` until `close`.

    Args:
        address: `HOST:PORT`, or a port on 127.0.0.1.
        text: What a scrape gets; called from any thread.

    Raises:
        InputError: `address` is none, or can't be listened on.
    """

    def __init__(self, address: str, text: Callable[[], str]) -> None:
        host, port = _parsed(address)
        try:
            self._server = _Server((host, port), text)
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise InputError(f"--listen {address}: can't listen there: {why}", hint=_HINT) from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="inferometer-endpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End; connections that are open end within seconds."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 8

    def __init__(self, address: tuple[str, int], text: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.text = text
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(address, _Handler)
        self.door = Door("", self.server_port, address[0]) if is_loopback(address[0]) else None

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        ends = threading.Timer(_LONGEST_S, _cut, (request,))
        ends.daemon = True
        ends.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            ends.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of ours."""

    def server_bind(self) -> None:
        # `HTTPServer` would look up the name of the machine, which may take long.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "inferometer", ""
    timeout = _LONGEST_S

    def do_GET(self) -> None:
        if self.server.door and not self.server.door.is_ours(self.headers.get("Host")):
            self._answer(403, b"this address is for programs of this machine\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"only /metrics is here\n")
        else:
            self._answer(200, self.server.text().encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": _CONTENT, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _parsed(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not host or not port.isascii() or not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise InputError(f"--listen: expected HOST:PORT, found {address!r}", hint=_HINT)
    return host, int(port)
