"""The list, jobs, pages, questions and events, over HTTP."""

import socket
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.reports.serve.served import EVIL, TOKEN, Served

pytest.importorskip("uvicorn")


def test_the_list_says_what_each_run_is(server: Served) -> None:
    runs = server.until(lambda runs: all(run["about"] or run["error"] for run in runs.values()) and runs)

    assert set(runs) == {"base.json", "slow.json", f"deep/{EVIL}", "broken.json", "notes.json"}
    about = runs["base.json"]["about"]
    assert (about["format"], about["launches"], about["is_profile"]) == ("kineto", 40, True)
    assert about["wall_ns"] == 39 * 50_000 + 10_000
    assert about["busy_share"] == pytest.approx(40 * 10 / (39 * 50 + 10))
    assert runs["notes.json"]["about"] == {"is_profile": False}


def test_a_file_that_can_t_be_read_is_no_profile_and_an_error_of_its_report(server: Served, folder: Path) -> None:
    (folder / "cut.json.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 50)
    run = server.until(lambda runs: runs.get("cut.json.gz"))

    about, page = server.job("about", run=run["id"]), server.job("page", run=run["id"])
    (folder / "cut.json.gz").unlink()

    assert about["result"] == {"is_profile": False}
    assert page["state"] == "failed"
    assert "the compressed data is broken" in page["error"]


def test_a_trace_that_ends_early_is_read_as_far_as_it_goes(server: Served) -> None:
    about = server.job("about", run=server.id_of("broken.json"))["result"]

    assert (about["format"], about["launches"], about["warnings"]) == ("kineto", 0, 1)


def test_two_runs_are_compared_and_judged(server: Served) -> None:
    base, candidate = server.id_of("base.json"), server.id_of("slow.json")

    page = server.job("pair_page", base=base, candidate=candidate)
    verdict = server.job("verdict", base=base, candidate=candidate)

    assert (page["state"], verdict["state"]) == ("done", "done")
    assert verdict["result"]["outcome"]
    assert verdict["result"]["headline"].endswith(".")
    body = server.ask(f"{server.get('api/state')['pages']}{page['page']}")[1]
    assert b"slow.json compared with base.json" in body


def test_what_was_made_once_is_there_at_once(server: Served) -> None:
    run = server.id_of("base.json")
    server.job("page", run=run)

    status, again = server.send("api/jobs", {"kind": "page", "run": run})

    assert (status, again["state"]) == (202, "done")


def test_a_question_is_answered_in_text(server: Served) -> None:
    query = "select kernel, sum(dur_ns) as ns, max(start_ns) / 2.0 as half from launches group by kernel"

    job = server.job("query", run=server.id_of("base.json"), query=query)

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
    job = server.job("query", run=server.id_of("base.json"), query=query)

    assert job["state"] == "failed"
    assert error in job["error"]


def test_a_job_is_cancelled_in_the_middle(server: Served) -> None:
    """A join of a table with itself, eight times over, ends in no lifetime."""
    tables = ", ".join(f"launches l{i}" for i in range(8))
    query = f"select count(*) from {tables} where " + " and ".join(f"l{i}.dur_ns < l{i + 1}.start_ns" for i in range(7))
    _, begun = server.send("api/jobs", {"kind": "query", "run": server.id_of("base.json"), "query": query})
    server.until(lambda _: server.get(f"api/jobs/{begun['id']}")["state"] == "running")

    server.ask(f"/{TOKEN}/api/jobs/{begun['id']}", "DELETE")

    assert server.ended(begun["id"])["state"] == "cancelled"
    assert server.job("query", run=server.id_of("base.json"), query="select 1 as a")["state"] == "done"


def test_the_rows_of_an_answer_have_an_end(server: Served) -> None:
    job = server.job(
        "query", run=server.id_of("base.json"), query="select a.dur_ns from launches a, launches b", most_rows=10
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
            "api/jobs", {"kind": "query", "run": server.id_of("base.json"), "query": "select 2 as b"}
        )
        heard = b""
        while b'"state":"done"' not in heard:
            heard += connection.recv(4096)

    assert f'"id":"{begun["id"]}"'.encode() in heard
    assert b'"rows"' not in heard
