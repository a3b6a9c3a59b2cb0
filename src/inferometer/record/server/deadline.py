"""HTTP connections that end at a point in time: a socket's own timeout starts again with every byte that drips in."""

import functools
import http.client
import io
import socket
import time
import urllib.request
from typing import Any, cast


class _Reader(io.RawIOBase):
    """Reads a socket, each time no longer than what is left."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends = sock, ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._ends))
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        self._sock.close()
        super().close()


class _Socket:
    """As much of a socket as `http.client` uses. It is closed with its reader, once there is one."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends, self._is_read = sock, ends, False

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        self._is_read = True
        return io.BufferedReader(_Reader(self._sock, self._ends))

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(_left(self._ends))  # of all of it
        self._sock.sendall(data)

    def close(self) -> None:
        if not self._is_read:
            self._sock.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, *args: Any, ends: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ends = ends

    def connect(self) -> None:
        super().connect()
        self.sock = cast("Any", _Socket(self.sock, self._ends))


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS: `super()` is `HTTPSConnection` there."""


class EndingHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens requests whose answer, headers and body, must be there at `ends` on the monotonic clock.

    `TimeoutError` is raised then, in `open` or by the response's `read`.
    """

    def __init__(self, ends: float) -> None:
        super().__init__()
        self._ends = ends

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As of `urllib.request`."""
        return self.do_open(cast("Any", functools.partial(_Connection, ends=self._ends)), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As of `urllib.request`, with its checks of certificates."""
        return self.do_open(cast("Any", functools.partial(_SecureConnection, ends=self._ends)), req)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
