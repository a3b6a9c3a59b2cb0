"""The rules of our servers for a user's own browser: who may come in, and what every answer forbids.

Another page in the user's browser can send requests to any port here. It doesn't know the token, which is the first
part of every address, and a name that it made point here (DNS rebinding) is none of ours. A request that changes
something comes from our own page, or from a program that says nothing of pages. Nothing is logged, and an answer is
kept nowhere.
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HOST: Final = "127.0.0.1"
MOST_CONNECTIONS: Final = 128  # a page has about six
MOST_HEADER_BYTES: Final = 64 << 10  # of a request
UNKNOWN_S: Final = 5.0  # that who hasn't shown the token yet is waited for
SHORTEST_TOKEN: Final = 16
_TOKEN_BYTES = 24
_OWN_NAMES = frozenset({HOST, "localhost", "[::1]"})

HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer; a policy of what its page may load comes to these."""
OWN_FILES_ONLY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The policy of a page that is made of files of ours."""


def new_token() -> str:
    """A secret that fits into an address."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


@dataclass(frozen=True)
class Door:
    """Who may come in.

    Attributes:
        token: What an address begins with.
        port: That we listen on.
        host: The address that we listen on. On one that others reach, they may call us by any number, or by the names
            that this machine has: a name that somebody else made point here stays outside.
    """

    token: str
    port: int
    host: str = HOST

    def rest_of(self, path: str, host: str | None) -> str | None:
        """What of the address follows the token; None for whoever may not know that there is something."""
        token, slash, rest = path.removeprefix("/").partition("/")
        if not self.is_ours(host) or not slash:
            return None
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
        return rest if known else None

    def is_ours(self, host: str | None) -> bool:
        """Whether the request was meant for us, by its `Host`."""
        name, _, port = (host or "").rpartition(":")
        if port != str(self.port):
            return False
        return name in _OWN_NAMES or (not is_loopback(self.host) and _may_be_this_machine(name))

    @staticmethod
    def is_from_us(origin: str | None, host: str | None) -> bool:
        """Whether a request that changes something comes from our page, or from no page at all."""
        return origin is None or origin == f"http://{host}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _may_be_this_machine(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return name in (socket.gethostname(), socket.getfqdn())
    return True
