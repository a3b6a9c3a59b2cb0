"""In front of all routes: the rules of `loopback.py`, and the policy of each answer.

The app's own page loads nothing but our files and runs nothing else. A report has its script and its style in it, as
it has as a file, so it is framed in a sandbox without an origin: a script in it could reach neither the app nor the
network. Reports have a token of their own, so that such a script doesn't learn the app's from its address.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from inferometer.loopback import HEADERS, OWN_FILES_ONLY, Door

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGES = "pages/"
_APP_POLICY = OWN_FILES_ONLY + "; frame-src 'self'"
_PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_SAFE = ("GET", "HEAD")


@dataclass(frozen=True)
class Guard:
    """Lets in who may come in, with the address after the token; all others get an empty 404.

    Attributes:
        app: What is behind.
        door: To the app.
        page_token: That reports have in place of the app's.
    """

    app: AsgiApp
    door: Door
    page_token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As of ASGI."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        rest = self._rest(scope) if scope["type"] == "http" else None
        if rest is None:
            await _refuse(scope, send)
            return
        policy = _PAGE_POLICY if rest.startswith(PAGES) else _APP_POLICY
        inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
        await self.app(inner, receive, _with_headers(send, {**HEADERS, "Content-Security-Policy": policy}))

    def _rest(self, scope: Scope) -> str | None:
        hosts, origins = _header(scope, b"host"), _header(scope, b"origin")
        if len(hosts) != 1 or len(origins) > 1:
            return None
        host, origin = hosts[0], next(iter(origins), None)
        if scope["method"] not in _SAFE and not Door.is_from_us(origin, host):
            return None
        rest = self.door.rest_of(scope["path"], host)
        if rest is not None:
            return None if rest.startswith(PAGES) else rest
        page = replace(self.door, token=self.page_token).rest_of(scope["path"], host)
        return page if page is not None and page.startswith(PAGES) and scope["method"] in _SAFE else None


def _header(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return sending


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    headers += [(b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
