"""The server over HTTP: who may come in, jobs, pages, questions, uploads, recordings, and how it ends."""

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.reports.serve.served import TOKEN, Served, serving

pytest.importorskip("uvicorn")

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
EVIL = "<img src=x onerror=alert(1)>.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "deep").mkdir()
    for name, ns in (("base.json", "10"), ("slow.json", "30")):
        events = [kernel("gemm", str(100 + 50 * i), ns, correlation=i) for i in range(40)]
        (folder / name).write_bytes(write_file(events))
    (folder / "deep" / EVIL).write_bytes(write_file([kernel("<b>gemm</b>", "1", "2", correlation=1)]))
    (folder / "broken.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph":')
    (folder / "notes.json").write_text('{"just": "notes"}')
    (folder / "out.json").symlink_to("/etc/passwd")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    keep = tmp_path_factory.mktemp("keep")
    with serving(folder, "--keep", keep, cache=tmp_path_factory.mktemp("cache")) as server:
        server.keep = keep  # type: ignore[attr-defined]
        yield server


def id_of(server: Served, name: str) -> str:
    return str(server.runs()[name]["id"])


def upload_head(server: Served, name: str, size: int) -> bytes:
    lines = (
        f"POST /{TOKEN}/api/uploads?name={name} HTTP/1.1",
        f"Host: {server.host}",
        f"Content-Length: {size}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def test_the_list_says_what_each_run_is(server: Served) -> None:
    runs = server.until(lambda runs: all(run["about"] or run["error"] for run in runs.values()) and runs)

    assert set(runs) == {"base.json", "slow.json", f"deep/{EVIL}", "broken.json", "notes.json"}
    about = runs["base.json"]["about"]
    assert (about["format"], about["launches"], about["is_profile"]) == ("kineto", 40, True)
    assert about["wall_ns"] == 39 * 50_000 + 10_000
    assert about["busy_share"] == pytest.approx(40 * 10 / (39 * 50 + 10))
    assert runs["notes.json"]["about"] == {"is_profile": False}


@pytest.mark.parametrize("kind", ["about", "page"])
def test_a_file_that_can_t_be_read_is_an_error_of_its_job(server: Served, folder: Path, kind: str) -> None:
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 50)
    run = server.until(lambda runs: runs.get("cut.json.gz"))

    job = server.job(kind, run=run["id"])
    (folder / "cut.json.gz").unlink()

    if kind == "page":
        assert job["state"] == "failed"
        assert "compressed data" in job["error"]
    assert server.get("api/state")


def test_only_who_knows_the_token_is_let_in(server: Served) -> None:
    assert server.ask(f"/{TOKEN}/")[0] == 200
    for path in (
        "/",
        f"/{TOKEN}",
        f"/{TOKEN[:-1]}/",
        f"/{TOKEN}x/",
        "/api/state",
        "//",
        f"/x/{TOKEN}/",
        f"/{TOKEN.upper()}/",
        "/" + "a" * 5000,
    ):
        status, body, headers = server.ask(path)
        assert (status, body) == (404, b""), path
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0:{port}"]
)
def test_a_name_that_somebody_made_point_here_is_not_ours(server: Served, host: str) -> None:
    given = host.format(port=server.port)

    assert server.ask(f"/{TOKEN}/", headers={"Host": given})[:2] in (
        (404, b""),
        (400, b"Invalid HTTP request received."),
    )


def test_our_own_names_are(server: Served) -> None:
    for host in (server.host, f"localhost:{server.port}"):
        assert server.ask(f"/{TOKEN}/", headers={"Host": host})[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://localhost:1", ""])
def test_pages_of_other_origins_change_nothing(server: Served, origin: str) -> None:
    headers = {"Origin": origin.format(host=server.host)}
    body = json.dumps({"kind": "about", "run": id_of(server, "base.json")}).encode()
    before = len(list(server.keep.iterdir()))  # type: ignore[attr-defined]

    assert server.ask(f"/{TOKEN}/api/jobs", "POST", body, headers)[:2] == (404, b"")
    assert server.ask(f"/{TOKEN}/api/jobs/1", "DELETE", None, headers)[:2] == (404, b"")
    assert server.ask(f"/{TOKEN}/api/uploads?name=a.json", "POST", b"{}", headers)[:2] == (404, b"")
    assert len(list(server.keep.iterdir())) == before  # type: ignore[attr-defined]
    assert server.ask(f"/{TOKEN}/api/jobs", "POST", body, {"Origin": f"http://{server.host}"})[0] == 202


def test_the_app_s_page_may_run_and_load_its_own_files_alone(server: Served) -> None:
    policy = server.ask(f"/{TOKEN}/")[2]["content-security-policy"]

    assert "unsafe" not in policy
    assert "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    index = server.ask(f"/{TOKEN}/")[1].decode()
    assert "<script>" not in index
    assert "style=" not in index


def test_a_report_is_in_a_sandbox_and_does_not_know_the_app_s_token(server: Served) -> None:
    job = server.job("page", run=id_of(server, "base.json"))
    state = server.get("api/state")

    status, body, headers = server.ask(f"{state['pages']}{job['page']}")

    assert (status, job["state"]) == (200, "done")
    assert b"gemm" in body
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert TOKEN not in state["pages"]
    assert TOKEN.encode() not in body
    token = state["pages"].split("/")[1]
    assert server.ask(f"/{token}/api/state")[0] == 404
    assert server.ask(f"/{token}/")[0] == 404
    assert server.ask(f"/{TOKEN}/pages/{job['page']}")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "../pyproject.toml",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "app.js/../../routes.py",
        "routes.py",
        "index.html",
        "api/runs/..%2f..%2fetc%2fpasswd/live",
        "api/jobs/../../x",
        "app.js%00",
        "\\..\\x",
    ],
)
def test_no_address_leads_to_another_file(server: Served, path: str) -> None:
    status, body, _ = server.ask(f"/{TOKEN}/{path}")

    assert status in (404, 422)
    assert b"root:" not in body


@pytest.mark.parametrize("key", ["..", "%2e%2e", "a" * 32, "about.json", "x/../../x", "A" * 32])
def test_no_report_but_those_that_were_made(server: Served, key: str) -> None:
    assert server.ask(f"{server.get('api/state')['pages']}{key}")[0] == 404


def test_two_runs_are_compared_and_judged(server: Served) -> None:
    base, candidate = id_of(server, "base.json"), id_of(server, "slow.json")

    page = server.job("pair_page", base=base, candidate=candidate)
    verdict = server.job("verdict", base=base, candidate=candidate)

    assert (page["state"], verdict["state"]) == ("done", "done")
    assert verdict["result"]["outcome"]
    assert verdict["result"]["headline"].endswith(".")
    body = server.ask(f"{server.get('api/state')['pages']}{page['page']}")[1]
    assert b"slow.json compared with base.json" in body


def test_what_was_made_once_is_there_at_once(server: Served) -> None:
    run = id_of(server, "base.json")
    server.job("page", run=run)

    status, again = server.send("api/jobs", {"kind": "page", "run": run})

    assert (status, again["state"]) == (202, "done")


def test_a_question_is_answered_in_text(server: Served) -> None:
    query = "select kernel, sum(dur_ns) as ns, max(start_ns) / 2.0 as half from launches group by kernel"

    job = server.job("query", run=id_of(server, "base.json"), query=query)

    assert job["result"]["rows"][0][:2] == ["gemm", "400000"]
    assert [column["is_number"] for column in job["result"]["columns"]] == [False, True, True]
    assert job["result"]["more"] is False


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select * from launch", 'unknown table "launch"\n  Known, nearest first: launches,'),
        ("select kernell from launches", 'unknown column "kernell"\n  Known, nearest first: kernel,'),
        ("select * from read_csv('/etc/passwd')", "read_csv would open a file"),
        ("drop table launches", "expected one that only reads"),
    ],
)
def test_a_question_that_can_t_be_answered_says_why(server: Served, query: str, error: str) -> None:
    job = server.job("query", run=id_of(server, "base.json"), query=query)

    assert job["state"] == "failed"
    assert error in job["error"]


def test_a_job_is_cancelled_in_the_middle(server: Served) -> None:
    """A join of a table with itself, eight times over, ends in no lifetime."""
    tables = ", ".join(f"launches l{i}" for i in range(8))
    query = f"select count(*) from {tables} where " + " and ".join(f"l{i}.dur_ns < l{i + 1}.start_ns" for i in range(7))
    _, begun = server.send("api/jobs", {"kind": "query", "run": id_of(server, "base.json"), "query": query})
    server.until(lambda _: server.get(f"api/jobs/{begun['id']}")["state"] == "running")

    server.ask(f"/{TOKEN}/api/jobs/{begun['id']}", "DELETE")

    assert server.ended(begun["id"])["state"] == "cancelled"
    assert server.job("query", run=id_of(server, "base.json"), query="select 1 as a")["state"] == "done"


def test_the_rows_of_an_answer_have_an_end(server: Served) -> None:
    job = server.job(
        "query", run=id_of(server, "base.json"), query="select a.dur_ns from launches a, launches b", most_rows=10
    )

    assert (len(job["result"]["rows"]), job["result"]["more"]) == (10, True)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"kind": "about", "run": "nothing"}, 404),
        ({"kind": "about"}, 404),
        ({"kind": "rm", "run": "x"}, 422),
        ({"kind": "about", "run": 7}, 400),
        ({"kind": "about", "path": "/etc/passwd"}, 400),
        ([], 400),
        ({"kind": "query", "run": "x", "query": "x" * 2_000_000}, 413),
    ],
)
def test_a_wrong_request_is_refused_in_words(server: Served, data: object, status: int) -> None:
    found, answer = server.send("api/jobs", data)

    assert found == status
    assert answer["error"]


def test_a_kept_file_is_listed_and_nothing_is_replaced(server: Served) -> None:
    body = write_file([kernel("sent", "1", "2", correlation=1)])

    for name in ("sent.json", "sent-2.json"):
        status, answer, _ = server.ask(f"/{TOKEN}/api/uploads?name=sent.json", "POST", body)
        assert (status, json.loads(answer)["name"]) == (201, name)

    runs = server.until(lambda runs: runs.get("sent.json", {}).get("about") and runs)
    assert runs["sent.json"]["about"]["launches"] == 1
    assert (server.keep / "sent.json").read_bytes() == body  # type: ignore[attr-defined]


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
def test_names_of_kept_files_are_names_alone(server: Served, name: str, status: int, kept: str | None) -> None:
    found, body, _ = server.ask(f"/{TOKEN}/api/uploads?name={name}", "POST", b"{}")
    answer = json.loads(body)

    assert found == status, answer
    if kept:
        assert answer["name"] == kept
    if status == 201:
        assert (server.keep / answer["name"]).resolve().parent == server.keep.resolve()  # type: ignore[attr-defined]
        assert len(answer["name"]) <= 150
        (server.keep / answer["name"]).unlink()  # type: ignore[attr-defined]


def test_a_file_that_ends_early_leaves_nothing(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(upload_head(server, "early.json", 1000) + b"{")
        time.sleep(0.3)
    server.until(lambda _: not [path for path in server.keep.iterdir() if "early" in path.name])  # type: ignore[attr-defined]


def test_a_file_that_is_too_large_is_refused_before_it_comes(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(upload_head(server, "huge.json", 9 * 10**12))
        answer = connection.recv(1000)

    assert b" 413 " in answer.split(b"\r\n")[0]
    assert not [path for path in server.keep.iterdir() if "huge" in path.name]  # type: ignore[attr-defined]


def test_tags_are_kept_in_the_folder(server: Served) -> None:
    run = id_of(server, "base.json")

    assert server.send(f"api/runs/{run}/tags", ["good one", "good one", " <b> "], "PUT") == (
        200,
        {"tags": ["good one", "<b>"]},
    )
    assert server.runs()["base.json"]["tags"] == ["good one", "<b>"]
    assert json.loads((server.keep / ".inferometer-tags").read_text()) == {run: ["good one", "<b>"]}  # type: ignore[attr-defined]
    assert server.send(f"api/runs/{run}/tags", ["x" * 41], "PUT")[0] == 422
    assert server.send(f"api/runs/{run}/tags", {"a": 1}, "PUT")[0] == 400


def test_a_file_that_comes_later_is_listed(server: Served, folder: Path) -> None:
    (folder / "later.json").write_bytes(write_file([kernel("late", "1", "2", correlation=1)]))

    assert server.until(lambda runs: runs.get("later.json", {}).get("about"))["launches"] == 1
    (folder / "later.json").unlink()
    server.until(lambda runs: "later.json" not in runs)


def test_a_changed_file_is_read_anew(server: Served, folder: Path) -> None:
    path = folder / "changing.json"
    path.write_bytes(write_file([kernel("one", "1", "2", correlation=1)]))
    server.until(lambda runs: runs.get("changing.json", {}).get("about"))

    path.write_bytes(write_file([kernel("one", "1", "2", correlation=1), kernel("two", "9", "2", correlation=2)]))

    server.until(lambda runs: (runs["changing.json"]["about"] or {}).get("launches") == 2)
    path.unlink()


def test_events_tell_of_jobs(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"GET /{TOKEN}/api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert b"text/event-stream" in connection.recv(4096)
        _, begun = server.send(
            "api/jobs", {"kind": "query", "run": id_of(server, "base.json"), "query": "select 2 as b"}
        )
        heard = b""
        while b'"state":"done"' not in heard:
            heard += connection.recv(4096)

    assert f'"id":"{begun["id"]}"'.encode() in heard
    assert b'"rows"' not in heard


def test_who_says_nothing_is_not_waited_for_long(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as silent:
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nX-")
        assert slow.recv(1) == b""


def test_headers_have_a_limit(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 100_000)
        assert b" 400 " in connection.recv(100)


def test_a_server_that_keeps_nothing_says_so(folder: Path, tmp_path: Path) -> None:
    with serving(folder / "base.json", cache=tmp_path) as server:
        assert server.get("api/state")["may_write"] is False
        status, body, _ = server.ask(f"/{TOKEN}/api/uploads?name=a.json", "POST", b"{}")
        assert (status, json.loads(body)["error"]) == (403, "nothing is kept: start the server with --keep FOLDER")
        run = id_of(server, "base.json")
        assert server.send(f"api/runs/{run}/tags", ["a"], "PUT")[0] == 403


def test_a_killed_server_loses_nothing_and_starts_warm(folder: Path, tmp_path: Path) -> None:
    first = Served(folder / "base.json", cache=tmp_path / "cache")
    try:
        run = id_of(first, "base.json")
        page = first.job("page", run=run)
        assert page["state"] == "done"
        query = (
            "select count(*) from launches a, launches b, launches c, launches d, launches e, launches f, launches g"
        )
        _, begun = first.send("api/jobs", {"kind": "query", "run": run, "query": query})
        first.until(lambda _: first.get(f"api/jobs/{begun['id']}")["state"] == "running")
        workers = _children(first.process.pid)
        assert workers
    finally:
        first.stop(signal.SIGKILL)

    end = time.monotonic() + 60
    while any(_is_there(pid) for pid in workers):
        assert time.monotonic() < end, "a job outlives its server"
        time.sleep(0.1)
    with serving(folder / "base.json", cache=tmp_path / "cache") as second:
        status, again = second.send("api/jobs", {"kind": "page", "run": id_of(second, "base.json")})
        assert (status, again["state"], again["page"]) == (202, "done", page["page"])
        assert second.runs()["base.json"]["about"]["launches"] == 40


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(folder: Path, tmp_path: Path, number: int) -> None:
    server = Served(folder / "base.json", cache=tmp_path)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as stream:
        stream.sendall(f"GET /{TOKEN}/api/events HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert stream.recv(4096)
        workers = _children(server.process.pid)
        assert server.stop(number) == 0
    assert not any(_is_there(pid) for pid in workers)


def test_memory_of_a_job_has_a_limit(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "recorded" / "none" / "normal.ifm", tmp_path / "run.ifm")
    with serving(tmp_path / "run.ifm", "--memory", "2", cache=tmp_path / "cache") as server:
        query = "select array_agg(a.start_ns) as x from frames a, frames b, frames c"
        job = server.job("query", run=id_of(server, "run.ifm"), query=query)
        again = server.job("query", run=id_of(server, "run.ifm"), query="select 1 as a")

    assert job["state"] == "failed"
    assert "memory" in job["error"], job
    assert again["state"] == "done", again["error"]


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
