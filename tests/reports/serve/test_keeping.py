"""Files that are sent, and tags: kept in one folder, under names alone."""

import json
import socket
import time
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.reports.serve.served import TOKEN, Served, serving

pytest.importorskip("uvicorn")


def upload_head(server: Served, name: str, size: int) -> bytes:
    lines = (
        f"POST /{TOKEN}/api/uploads?name={name} HTTP/1.1",
        f"Host: {server.host}",
        f"Content-Length: {size}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def test_a_kept_file_is_listed_and_nothing_is_replaced(server: Served, keep: Path) -> None:
    body = write_file([kernel("sent", "1", "2", correlation=1)])

    for name in ("sent.json", "sent-2.json"):
        status, answer, _ = server.ask(f"/{TOKEN}/api/uploads?name=sent.json", "POST", body)
        assert (status, json.loads(answer)["name"]) == (201, name)

    runs = server.until(lambda runs: runs.get("sent.json", {}).get("about") and runs)
    assert runs["sent.json"]["about"]["launches"] == 1
    assert (keep / "sent.json").read_bytes() == body


@pytest.mark.parametrize(
    ("name", "status", "kept"),
    [
        ("..%2F..%2Fup.json", 201, "up.json"),
        ("C%3A%5CTemp%5Cwin.json", 201, "win.json"),
        ("%2Eshadow.json", 201, "shadow.json"),
        ("a%3Cb%3E.json", 201, "a_b_.json"),
        ("x" * 300 + ".json.gz", 201, None),
        ("", 422, None),
        ("script.sh", 422, None),
        (".json", 422, None),
        ("%00.json", 201, None),
    ],
)
def test_names_of_kept_files_are_names_alone(
    server: Served, keep: Path, name: str, status: int, kept: str | None
) -> None:
    found, body, _ = server.ask(f"/{TOKEN}/api/uploads?name={name}", "POST", b"{}")
    answer = json.loads(body)

    assert found == status, answer
    if kept:
        assert answer["name"] == kept
    if status == 201:
        assert (keep / answer["name"]).resolve().parent == keep.resolve()
        assert len(answer["name"]) <= 150
        (keep / answer["name"]).unlink()


def test_a_file_that_ends_early_leaves_nothing(server: Served, keep: Path) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(upload_head(server, "early.json", 1000) + b"{")
        time.sleep(0.3)
    server.until(lambda _: not [path for path in keep.iterdir() if "early" in path.name])


def test_a_file_that_is_too_large_is_refused_before_it_comes(server: Served, keep: Path) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(upload_head(server, "huge.json", 9 * 10**12))
        answer = connection.recv(1000)

    assert b" 413 " in answer.split(b"\r\n")[0]
    assert not [path for path in keep.iterdir() if "huge" in path.name]


def test_tags_are_kept_in_the_folder(server: Served, keep: Path) -> None:
    run = server.id_of("base.json")

    assert server.send(f"api/runs/{run}/tags", ["good one", "good one", " <b> "], "PUT") == (
        200,
        {"tags": ["good one", "<b>"]},
    )
    assert server.runs()["base.json"]["tags"] == ["good one", "<b>"]
    assert json.loads((keep / ".inferometer-tags").read_text()) == {run: ["good one", "<b>"]}
    assert server.send(f"api/runs/{run}/tags", ["x" * 41], "PUT")[0] == 422
    assert server.send(f"api/runs/{run}/tags", {"a": 1}, "PUT")[0] == 400


def test_a_server_that_keeps_nothing_says_so(folder: Path, tmp_path: Path) -> None:
    with serving(folder / "base.json", cache=tmp_path) as server:
        assert server.get("api/state")["may_write"] is False
        status, body, _ = server.ask(f"/{TOKEN}/api/uploads?name=a.json", "POST", b"{}")
        assert (status, json.loads(body)["error"]) == (403, "nothing is kept: start the server with --keep FOLDER")
        run = server.id_of("base.json")
        assert server.send(f"api/runs/{run}/tags", ["a"], "PUT")[0] == 403
