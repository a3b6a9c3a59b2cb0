"""Who may come in, and what else an address leads to."""

import json
import socket
from pathlib import Path

import pytest
from tests.reports.serve.served import TOKEN, Served

pytest.importorskip("uvicorn")


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
def test_pages_of_other_origins_change_nothing(server: Served, keep: Path, origin: str) -> None:
    headers = {"Origin": origin.format(host=server.host)}
    body = json.dumps({"kind": "about", "run": server.id_of("base.json")}).encode()
    before = len(list(keep.iterdir()))

    assert server.ask(f"/{TOKEN}/api/jobs", "POST", body, headers)[:2] == (404, b"")
    assert server.ask(f"/{TOKEN}/api/jobs/1", "DELETE", None, headers)[:2] == (404, b"")
    assert server.ask(f"/{TOKEN}/api/uploads?name=a.json", "POST", b"{}", headers)[:2] == (404, b"")
    assert len(list(keep.iterdir())) == before
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
    job = server.job("page", run=server.id_of("base.json"))
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
