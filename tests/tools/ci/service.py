"""A service's API of comments on a loopback port: as much of GitHub's and GitLab's as a comment needs."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-that-nobody-may-see"
GITHUB, GITLAB = "/repos/o/r/issues/7/comments", "/projects/5/merge_requests/7/notes"
_ONE = re.compile(r"/repos/o/r/issues/comments/(\d+)|/projects/5/merge_requests/7/notes/(\d+)")


class Service:
    """`comments`: those of the request. `asked`: method and path of each request. `fail`: a status for a method.

    `me`: whose token it is; None: it may not ask. `answer`: bytes in place of any answer.
    """

    def __init__(self, me: dict[str, Any] | None) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.fail: dict[str, int] = {}
        self.me = me
        self.answer: bytes | None = None
        self.url = ""

    def add(self, body: str, author: dict[str, Any] | None = None) -> None:
        who = author or self.me or {"id": 99, "type": "Bot"}
        self.comments.append({"id": len(self.comments) + 1, "body": body, "user": who, "author": who})

    @property
    def writes(self) -> list[str]:
        return [method for method, _ in self.asked if method != "GET"]

    def reply(self, method: str, path: str, data: dict[str, str]) -> tuple[int, Any]:
        place = urlsplit(path)
        one = _ONE.fullmatch(place.path)
        if method in self.fail:
            return self.fail[method], {"message": "a reason\n::error::of the service"}
        if place.path == "/user":
            return (200, self.me) if self.me else (403, {"message": "Resource not accessible by integration"})
        if one and method in ("PATCH", "PUT"):
            self.comments[int(one[1] or one[2]) - 1]["body"] = data["body"]
            return 200, {}
        if place.path not in (GITHUB, GITLAB):
            return 404, {}
        if method == "POST":
            self.add(data["body"])
            return 201, {}
        query = {name: int(value[0]) for name, value in parse_qs(place.query).items()}
        first = (query["page"] - 1) * query["per_page"]
        return 200, self.comments[first : first + query["per_page"]]


@contextmanager
def serving(me: dict[str, Any] | None) -> Iterator[Service]:
    """The service, on a port of its own."""
    service = Service(me)

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            service.asked.append((self.command, self.path))
            if TOKEN not in (self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""):
                answered: tuple[int, Any] = 401, {}
            else:
                answered = service.reply(self.command, self.path, json.loads(data or "{}"))
            status, found = answered
            answer = json.dumps(found).encode() if service.answer is None else service.answer
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", service.url + "/elsewhere")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = do_PUT = _any  # noqa: N815 - the names that http.server asks for

        def log_message(self, *_: object) -> None:
            """Nothing: the output is what is tested."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def github(service: Service, event: str, **other: str) -> dict[str, str]:
    """The environment of a job; `event` is the file of what set it off."""
    names = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": TOKEN}
    return {**names, "GITHUB_API_URL": service.url, "GITHUB_EVENT_PATH": event, **other}


def gitlab(service: Service, **other: str) -> dict[str, str]:
    """The environment of a job."""
    names = {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "GITLAB_TOKEN": TOKEN, "CI_API_V4_URL": service.url}
    projects = dict.fromkeys(("CI_MERGE_REQUEST_PROJECT_ID", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID"), "5")
    return {**names, **projects, **other}
