"""Keeps one comment on a pull request of GitHub or a merge request of GitLab: makes it, and updates it from then on.

    python3 comment.py comment.md

Where to is what the service puts into the environment of a job; the token is GITHUB_TOKEN or GITLAB_TOKEN, and is sent
to no other machine and never printed. The comment is known by a hidden mark at its begin, and only one that this token
made is changed. INFEROMETER_COMMENT_NAME tells the comments of several jobs apart.

Needs Python 3.11 and nothing else. Exits with 0 where the comment is made, updated or as it was, or where there is
nowhere or no right to write it: no request, no token, a request of a fork. 2 for a wrong request, 5 where the service
refuses or fails.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

OK, USAGE, FAILED = 0, 2, 5
MOST_CHARACTERS: Final = 65_000  # GitHub takes 65,536

_PER_PAGE: Final = 100  # the most that either service gives
_MOST_PAGES: Final = 100
_MOST_BYTES: Final = 64 << 20
_TIMEOUT_S: Final = 30
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_ADVICE: Final = {
    401: "the token is not valid",
    403: "the token may not do this: on GitHub the job needs `permissions: pull-requests: write`",
    404: "there is no such request, or the token can't see it",
    429: "too many requests: run the job again later",
}


class Skipped(Exception):
    """There is nowhere to write to, or no right to: what a fork's request can't help."""


class Failed(Exception):
    """The service refused or failed. `status`: of HTTP, 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """The request to comment on, as one of both services has it.

    Attributes:
        api: Begin of all addresses.
        comments: Of this request, below `api`.
        comment: Of one of them, below `api`, with a number to follow.
        update: The method that changes one.
        author: The key of a comment's author.
        headers: With the token.
    """

    api: str
    comments: str
    comment: str
    update: str
    author: str
    headers: Mapping[str, str]


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code; what was done is said in one line."""
    if len(arguments) != 1:
        return _say(USAGE, "expected one file with the comment's text")
    try:
        text = Path(arguments[0]).read_text("utf-8")
        request = find_request(environment)
        return _say(OK, keep_comment(request, mark(environment), text))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        return _say(USAGE, str(error))
    except Skipped as why:
        return _say(OK, f"skipped: {why}")
    except Failed as why:
        return _say(FAILED, str(why))


def mark(environment: Mapping[str, str]) -> str:
    """The hidden line that the comment begins with.

    Raises:
        ValueError: The name could end the mark.
    """
    name = environment.get("INFEROMETER_COMMENT_NAME", "") or "default"
    if not re.fullmatch(r"[A-Za-z0-9._ ]{1,80}", name):
        raise ValueError(f"INFEROMETER_COMMENT_NAME: expected letters, digits, dots and blanks, found {name!r}")
    return f"<!-- inferometer: {name} -->"


def find_request(environment: Mapping[str, str]) -> Request:
    """Where to comment.

    Raises:
        Skipped: Nowhere, or nobody may.
        ValueError: The environment is not that of a job.
    """
    if environment.get("GITHUB_ACTIONS"):
        return _of_github(environment)
    if environment.get("GITLAB_CI"):
        return _of_gitlab(environment)
    raise Skipped("this is no job of GitHub or GitLab")


def keep_comment(request: Request, marked: str, text: str) -> str:
    """Make the comment, or make the one that is there say `text`; what was done, in words."""
    body = f"{marked}\n{text}"
    if len(body) > MOST_CHARACTERS:
        raise ValueError(f"expected a comment of at most {MOST_CHARACTERS:,} characters, found {len(body):,}")
    found = _own_comment(request, marked)
    if found is not None:
        if found.get("body") == body:
            return "the comment says so already"
        try:
            _ask(request, request.update, f"{request.comment}/{found['id']}", {"body": body})
        except Failed as why:
            if why.status != 404:  # somebody deleted it meanwhile
                raise
        else:
            return "updated the comment"
    _ask(request, "POST", request.comments, {"body": body})
    return "made the comment"


def _of_github(environment: Mapping[str, str]) -> Request:
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    pull = event.get("pull_request")
    if not isinstance(pull, dict) or not isinstance(pull.get("number"), int):
        raise Skipped("the job is not about a pull request")
    repository = _expect(environment, "GITHUB_REPOSITORY", r"[\w.-]+/[\w.-]+")
    head = (pull.get("head") or {}).get("repo") or {}
    if head.get("full_name") != repository:
        raise Skipped("the pull request comes from a fork, whose jobs may not write")
    token = environment.get("GITHUB_TOKEN") or _no_token("GITHUB_TOKEN")
    comments = f"/repos/{repository}/issues"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    api = _api(environment.get("GITHUB_API_URL") or "https://api.github.com")
    return Request(api, f"{comments}/{pull['number']}/comments", f"{comments}/comments", "PATCH", "user", headers)


def _of_gitlab(environment: Mapping[str, str]) -> Request:
    if not environment.get("CI_MERGE_REQUEST_IID"):
        raise Skipped("the job is not about a merge request")
    number = _expect(environment, "CI_MERGE_REQUEST_IID", r"\d+")
    project = _expect(environment, "CI_MERGE_REQUEST_PROJECT_ID", r"\d+")
    if environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != project:
        raise Skipped("the merge request comes from a fork, whose jobs may not write")
    token = environment.get("GITLAB_TOKEN") or _no_token("GITLAB_TOKEN")
    notes = f"/projects/{project}/merge_requests/{number}/notes"
    api = _api(_expect(environment, "CI_API_V4_URL", r"\S+"))
    return Request(api, notes, notes, "PUT", "author", {"PRIVATE-TOKEN": token})


def _event(path: str) -> dict[str, Any]:
    """What set off the job."""
    if not path:
        return {}
    try:
        event = json.loads(Path(path).read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected the event as JSON: {error}") from None
    return event if isinstance(event, dict) else {}


def _expect(environment: Mapping[str, str], name: str, pattern: str) -> str:
    value = environment.get(name, "")
    if not re.fullmatch(pattern, value, re.ASCII):
        raise ValueError(f"{name}: expected what the service sets, found {value!r}")
    return value


def _no_token(name: str) -> str:
    raise Skipped(f"no token in {name}")


def _api(address: str) -> str:
    """The address without a slash at its end; a token is sent encrypted, or to this machine.

    Raises:
        ValueError: It would not be.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError(f"expected an address that begins with https://, found {address!r}")
    return address.rstrip("/")


def _own_comment(request: Request, marked: str) -> dict[str, Any] | None:
    """The first comment with the mark that the token's owner made: others may write the mark, too."""
    own = None
    for comment in _comments(request):
        if str(comment.get("body") or "").startswith(marked):
            own = own or _Owner.of(request)
            if own.made(comment.get(request.author) or {}):
                return comment
    return None


@dataclass(frozen=True)
class _Owner:
    """Whose token it is. The one of a job on GitHub may not ask that: it is a bot's."""

    number: int | None

    @classmethod
    def of(cls, request: Request) -> "_Owner":
        try:
            found = _ask(request, "GET", "/user")
        except Failed as why:
            if why.status != 403 or request.author != "user":
                raise
            return cls(None)
        return cls(found.get("id") if isinstance(found, dict) else None)

    def made(self, author: Mapping[str, Any]) -> bool:
        return author.get("type") == "Bot" if self.number is None else author.get("id") == self.number


def _comments(request: Request) -> Iterator[dict[str, Any]]:
    """All of the request, page by page; addresses that the answer names are not followed."""
    for page in range(1, _MOST_PAGES + 1):
        found = _ask(request, "GET", f"{request.comments}?per_page={_PER_PAGE}&page={page}")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise Failed("expected a list of comments, found something else")
        yield from found
        if len(found) < _PER_PAGE:
            return
    raise Failed(f"the request has more than {_MOST_PAGES * _PER_PAGE:,} comments")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Elsewhere the token must not go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _ask(request: Request, method: str, path: str, data: Mapping[str, str] | None = None) -> Any:
    """What the service answers, decoded.

    Raises:
        Failed: It refuses, fails, or can't be reached.
    """
    headers = {**request.headers, "User-Agent": "inferometer", "Content-Type": "application/json"}
    body = None if data is None else json.dumps(data).encode()
    asked = urllib.request.Request(request.api + path, body, headers, method=method)
    where = f"{method} {path.partition('?')[0]}"
    try:
        with urllib.request.build_opener(_NoRedirect).open(asked, timeout=_TIMEOUT_S) as answer:
            return json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        advice = _ADVICE.get(error.code, "the service failed: run the job again" if error.code >= 500 else "refused")
        raise Failed(f"{where}: HTTP {error.code}: {advice}", error.code) from None
    except (OSError, HTTPException) as error:
        raise Failed(f"{where}: no answer: {getattr(error, 'reason', error)}") from None
    except ValueError:
        raise Failed(f"{where}: expected JSON, found something else") from None


def _say(code: int, text: str) -> int:
    """On one line: nothing of it may look like a command of the runner."""
    line = " ".join(text.split())
    print(f"comment: {line}", file=sys.stdout if code == OK else sys.stderr)
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
