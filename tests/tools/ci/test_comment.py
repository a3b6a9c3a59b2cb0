"""One comment on a request, made and then updated, against a service on a loopback port."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.ci.service import TOKEN, Service, github, gitlab, serving
from tools.ci.comment import FAILED, MOST_CHARACTERS, OK, USAGE, main

MARK = "<!-- inferometer: default -->"
OTHER = {"id": 3, "type": "User"}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def service() -> Iterator[Service]:
    """With the token of a job on GitHub, which may not ask whose it is."""
    with serving(None) as service:
        yield service


@pytest.fixture
def event(tmp_path: Path) -> str:
    return write_event(tmp_path, "o/r")


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "comment.md"
    path.write_text("# Slower\n", "utf-8")
    return str(path)


def write_event(folder: Path, head: str | None) -> str:
    path = folder / "event.json"
    repository = None if head is None else {"full_name": head}
    path.write_text(json.dumps({"pull_request": {"number": 7, "head": {"repo": repository}}}), "utf-8")
    return str(path)


@pytest.mark.parametrize("where", ["GitHub", "GitLab"])
def test_it_is_made_then_updated_then_left_alone(where: str, event: str, text: str) -> None:
    with serving({"id": 42, "type": "User"}) as service:
        environment = github(service, event) if where == "GitHub" else gitlab(service)
        service.add("Nice!", OTHER)
        assert main([text], environment) == OK
        assert [each["body"] for each in service.comments] == ["Nice!", f"{MARK}\n# Slower\n"]
        Path(text).write_text("# Faster\n", "utf-8")
        assert main([text], environment) == main([text], environment) == OK
        assert [each["body"] for each in service.comments] == ["Nice!", f"{MARK}\n# Faster\n"]
        assert service.writes == ["POST", "PATCH" if where == "GitHub" else "PUT"]


def test_it_is_found_on_a_later_page(service: Service, event: str, text: str) -> None:
    for _ in range(250):
        service.add("Talk", OTHER)
    service.add(f"{MARK}\nold")
    assert main([text], github(service, event)) == OK
    assert service.comments[-1]["body"] == f"{MARK}\n# Slower\n"
    pages = [path.partition("&")[2] for _, path in service.asked if "per_page=100" in path]
    assert pages == ["page=1", "page=2", "page=3"]
    assert service.writes == ["PATCH"]


def test_a_full_last_page_is_followed_by_an_empty_one(service: Service, event: str, text: str) -> None:
    for _ in range(100):
        service.add("Talk", OTHER)
    assert main([text], github(service, event)) == OK
    assert [method for method, _ in service.asked] == ["GET", "GET", "POST"]


@pytest.mark.parametrize("me", [None, {"id": 42, "type": "User"}])
def test_only_an_own_comment_that_begins_with_the_mark_is_changed(
    me: dict[str, object] | None, event: str, text: str
) -> None:
    with serving(me) as service:
        service.add(f"{MARK}\nby somebody else", OTHER)
        service.add(f"> {MARK}\na bot that quotes it")
        assert main([text], github(service, event)) == OK
        assert service.writes == ["POST"]
        assert service.comments[0]["body"].endswith("by somebody else")


def test_comments_of_several_jobs_are_told_apart(service: Service, event: str, text: str) -> None:
    for name in ("decode", "prefill", "decode"):
        assert main([text], github(service, event, INFEROMETER_COMMENT_NAME=name)) == OK
    assert [each["body"].splitlines()[0] for each in service.comments] == [
        "<!-- inferometer: decode -->",
        "<!-- inferometer: prefill -->",
    ]


def test_one_that_was_deleted_meanwhile_is_made_again(service: Service, event: str, text: str) -> None:
    service.add(f"{MARK}\nold")
    service.fail["PATCH"] = 404
    assert main([text], github(service, event)) == OK
    assert service.writes == ["PATCH", "POST"]


@pytest.mark.parametrize(
    ("method", "status", "said"),
    [
        ("POST", 403, "HTTP 403: the token may not do this: on GitHub the job needs `permissions"),
        ("GET", 404, "HTTP 404: there is no such request"),
        ("GET", 401, "HTTP 401: the token is not valid"),
        ("GET", 429, "HTTP 429: too many requests"),
        ("GET", 500, "HTTP 500: the service failed"),
        ("POST", 502, "HTTP 502: the service failed"),
        ("POST", 422, "HTTP 422: refused"),
        ("GET", 301, "HTTP 301: refused"),
    ],
)
def test_an_error_of_the_service_is_one_line_and_no_token(
    method: str, status: int, said: str, service: Service, event: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    service.fail[method] = status
    assert main([text], github(service, event)) == FAILED
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith(f"comment: {method} /repos/o/r/issues/7/comments: {said}")) == (
        "",
        1,
        True,
    )
    assert TOKEN not in err
    assert not any("elsewhere" in path for _, path in service.asked), "a redirect would take the token along"


@pytest.mark.parametrize("answer", [b"", b"not JSON", b"{}", b"[1]", b"\xff"])
def test_an_odd_answer_is_an_error(
    answer: bytes, service: Service, event: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answer = answer
    assert main([text], github(service, event)) == FAILED
    assert "found something else" in capsys.readouterr().err


def test_no_service_at_all_is_an_error(event: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(None) as service:
        environment = github(service, event)
    assert main([text], environment) == FAILED
    assert "no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "head", "why"),
    [
        ({}, "fork/r", "comes from a fork"),
        ({}, None, "comes from a fork"),
        ({"GITHUB_TOKEN": ""}, "o/r", "no token in GITHUB_TOKEN"),
        ({"GITHUB_EVENT_PATH": ""}, "o/r", "not about a pull request"),
        ({"GITHUB_ACTIONS": ""}, "o/r", "no job of GitHub or GitLab"),
    ],
)
def test_it_is_skipped_on_github_where_it_can_t_be(
    changed: dict[str, str], head: str | None, why: str, service: Service, tmp_path: Path, text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert main([text], github(service, write_event(tmp_path, head), **changed)) == OK
    assert (why in capsys.readouterr().out, service.asked) == (True, [])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "6"}, "comes from a fork"),
        ({"GITLAB_TOKEN": ""}, "no token in GITLAB_TOKEN"),
        ({"CI_MERGE_REQUEST_IID": ""}, "not about a merge request"),
    ],
)
def test_it_is_skipped_on_gitlab_where_it_can_t_be(
    changed: dict[str, str], why: str, service: Service, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([text], gitlab(service, **changed)) == OK
    assert (why in capsys.readouterr().out, service.asked) == (True, [])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"GITHUB_API_URL": "http://api.evil.example"}, "expected an address that begins with https://"),
        ({"GITHUB_API_URL": "http://127.0.0.1.evil.example"}, "expected an address that begins with https://"),
        ({"GITHUB_REPOSITORY": "o/r/../../x"}, "GITHUB_REPOSITORY: expected what the service sets"),
        ({"INFEROMETER_COMMENT_NAME": "a --> b"}, "INFEROMETER_COMMENT_NAME: expected letters"),
        ({"GITHUB_EVENT_PATH": "/nowhere.json"}, "/nowhere.json"),
    ],
)
def test_a_wrong_request_is_refused_and_nothing_is_sent(
    changed: dict[str, str], said: str, service: Service, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head = changed.get("GITHUB_REPOSITORY", "o/r")
    assert main([text], github(service, write_event(tmp_path, head), **changed)) == USAGE
    assert (said in capsys.readouterr().err, service.asked) == (True, [])


def test_a_text_that_is_too_long_or_not_there_is_refused(service: Service, event: str, text: str) -> None:
    Path(text).write_text("x" * MOST_CHARACTERS, "utf-8")
    assert main([text], github(service, event)) == USAGE
    assert main([text + ".md"], github(service, event)) == USAGE
    assert main([], github(service, event)) == USAGE
    assert service.asked == []
