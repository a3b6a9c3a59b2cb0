"""Events as JSON to an address of the user's: in a thread of its own, with bounded time, tries and memory.

Watching never waits for it. An address often holds a secret, in its path or its query: messages name scheme and host
alone. Redirects aren't followed. A proxy is used where the environment names one (`https_proxy`), as for other
programs. Not tried again is what the other side refuses (4xx but 408 and 429).
"""

import http.client
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from inferometer.errors import InputError
from inferometer.record.server.deadline import EndingHandler
from inferometer.record.server.http import NoRedirects

TIMEOUT_S = 5.0
PAUSES_S = (1.0, 5.0, 25.0)
"""Before the second try, the third, the fourth and last."""

MOST_WAITING = 100
_TRY_AGAIN = frozenset({408, 429, *range(500, 600)})
_CLOSE_S = 10.0  # that what waits may take when the watch ends


class Webhook:
    """Posts documents to `url`, one after the other.

    Args:
        url: `http://` or `https://`, with any path and query.
        on_trouble: Called, from another thread, when a document couldn't be delivered, and when they can be again.
        timeout_s: Of one try.
        pauses_s: Before each further try.

    Raises:
        InputError: `url` is no address.
    """

    def __init__(
        self,
        url: str,
        on_trouble: Callable[[str], object],
        *,
        timeout_s: float = TIMEOUT_S,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self.name = _name_of(url)
        self._url, self._on_trouble, self._timeout_s, self._pauses_s = url, on_trouble, timeout_s, tuple(pauses_s)
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._is_ending = self._is_failing = False
        self._stop = threading.Event()
        self.sent = self.failed = 0
        self._thread = threading.Thread(target=self._run, name="inferometer-webhook", daemon=True)
        self._thread.start()

    def send(self, document: Mapping[str, Any]) -> None:
        """Returns at once. Of more than `MOST_WAITING` the oldest is dropped, and counted as failed."""
        data = msgspec.json.encode(document)
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self.failed += 1
            self._waiting.append(data)
            self._changed.notify()

    def close(self, wait_s: float = _CLOSE_S) -> None:
        """Deliver what waits, for `wait_s` at most."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(wait_s)
        self._stop.set()
        left = len(self._waiting) + self._thread.is_alive()
        if left:
            self._on_trouble(f"webhook {self.name}: {left} not delivered before the end")

    def _run(self) -> None:
        while (data := self._next()) is not None:
            trouble = self._deliver(data)
            self.sent, self.failed = self.sent + (not trouble), self.failed + bool(trouble)
            if trouble and not self._is_failing and not self._stop.is_set():
                self._on_trouble(f"webhook {self.name}: not delivered: {trouble}")
            elif self._is_failing and not trouble:
                self._on_trouble(f"webhook {self.name}: delivers again")
            self._is_failing = bool(trouble)

    def _next(self) -> bytes | None:
        with self._changed:
            while not self._waiting and not self._is_ending:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting and not self._stop.is_set() else None

    def _deliver(self, data: bytes) -> str | None:
        """Why it couldn't be delivered."""
        trouble: str | None = "the watch ended before a try"
        for pause_s in (0.0, *self._pauses_s):
            if self._stop.wait(pause_s):
                break
            trouble, is_final = self._try(data)
            if is_final:
                break
        return trouble

    def _try(self, data: bytes) -> tuple[str | None, bool]:
        """What went wrong, and whether to leave it at that."""
        headers = {"Content-Type": "application/json", "User-Agent": "inferometer"}
        request = urllib.request.Request(self._url, data, headers, method="POST")
        ends = time.monotonic() + self._timeout_s
        try:
            opener = urllib.request.build_opener(NoRedirects, EndingHandler(ends))
            with opener.open(request, timeout=self._timeout_s):
                return None, True
        except urllib.error.HTTPError as error:
            with error:
                return f"it answered {error.code}", error.code not in _TRY_AGAIN
        except (OSError, http.client.HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, TimeoutError):
                return f"no answer within {self._timeout_s:g} s", False
            return (cause.strerror if isinstance(cause, OSError) else None) or type(cause).__name__, False


def _name_of(url: str) -> str:
    """Scheme and host, which messages may name."""
    hint = "As in https://HOST/PATH."
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InputError("the webhook: expected an address, found what can't be read as one", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError("the webhook: expected http:// or https:// and a host in ASCII", hint=hint)
    if parts.username or parts.password:
        raise InputError(
            "the webhook: its address holds a name or password", hint="Put a token into its path or query."
        )
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}"
