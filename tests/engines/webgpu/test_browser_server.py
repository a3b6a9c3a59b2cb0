"""The browser's server and session without a browser: who gets what, ranges, a page by script, how it all ends."""

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import numpy as np
import pytest
from tests.engines.webgpu.browser_programs import sources, toy_contents, toy_program
from tests.engines.webgpu.scripted_page import ScriptedPage, UserOfBrowser, runs, submission

from inferometer.engines.webgpu.browser.bundle import WeightFile, describe_program
from inferometer.engines.webgpu.browser.chromium import choose_flags, find_chromium
from inferometer.engines.webgpu.browser.messages import PageSubmission, TimeStep, find_clock
from inferometer.engines.webgpu.browser.opening import open_browser
from inferometer.engines.webgpu.browser.server import PageServer
from inferometer.engines.webgpu.program import Buffer
from inferometer.engines.webgpu.run.executor import Content, DeviceLost, Request, Submission
from inferometer.errors import FormatError, InputError, Unavailable

PAGE = Path(find_chromium.__code__.co_filename).parent / "page"
SESSION = "inferometer.engines.webgpu.browser.session"
REQUEST = Request(prompt=(1, 2), new_tokens=9, timing="timestamps")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SESSION}._GONE_S", 0.3)


@pytest.fixture
def server() -> Iterator[PageServer]:
    server = PageServer()
    yield server
    server.close()


def ask(
    server: PageServer, path: str, headers: dict[str, str] | None = None, method: str = "GET", body: bytes | None = None
) -> tuple[int, bytes, dict[str, str]]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request(method, path, body, headers or {})
        with connection.getresponse() as answer:
            return answer.status, answer.read(), {key.lower(): value for key, value in answer.getheaders()}


def three_contents(asked: list[str]) -> WeightFile:
    def content(name: str, part: str, data: bytes) -> Content:
        def read() -> np.ndarray:
            asked.append(name)
            return np.frombuffer(data, np.uint8)

        return Content(part, 0, read)

    contents = {
        "tail": content("tail", "head", b"QRSTUV"),
        "first": content("first", "embedding", b"abcdefgh"),
        "second": content("second", "layers", b"ijklmnop"),
    }
    return WeightFile(tuple(Buffer(name, 8, "weights", 8) for name in contents), contents)


@pytest.mark.parametrize(
    ("span", "status", "data"),
    [
        (None, 200, b"abcdefghijklmnopQRSTUV\0\0"),
        ("bytes=0-3", 206, b"abcd"),
        ("bytes=6-17", 206, b"ghijklmnopQR"),
        ("bytes=20-", 206, b"UV\0\0"),
        ("bytes=-4", 206, b"UV\0\0"),
        ("bytes=22-99999999999999999", 206, b"\0\0"),
        ("bytes=24-", 416, b""),
        ("bytes=5-4", 416, b""),
        ("bytes=-0", 416, b""),
        ("bytes=-", 416, b""),
        ("bytes=0-1,3-4", 416, b""),
        ("bytes=\u0661-\u0662".encode().decode("latin-1"), 416, b""),
        (f"bytes=0-{'9' * 4400}", 416, b""),
        ("chapters=0-1", 416, b""),
    ],
)
def test_the_weights_are_served_in_ranges(server: PageServer, span: str | None, status: int, data: bytes) -> None:
    server.publish(b"{}", three_contents([]))

    found = ask(server, f"/{server.token}/weights.bin", {} if span is None else {"Range": span})

    assert found[:2] == (status, data)
    assert found[2].get("content-range", "").endswith("/24") == (span is not None)


def test_a_content_is_read_when_its_range_is_asked_for_and_once_in_a_row() -> None:
    asked: list[str] = []
    weights = three_contents(asked)
    assert asked == []

    for first in range(0, 12, 2):
        list(weights.read(first, first + 2))

    assert asked == ["first", "second"]


def test_an_error_of_reading_weights_is_kept_for_who_waits(server: PageServer) -> None:
    def fail() -> None:
        raise FormatError("model.safetensors: cut off")

    contents = {"weights": Content("layers", 0, fail)}
    server.publish(b"{}", WeightFile((Buffer("weights", 8, "weights", 8),), contents))

    with pytest.raises((IncompleteRead, ConnectionError)):
        ask(server, f"/{server.token}/weights.bin")

    assert str(server.failure) == "model.safetensors: cut off"


def test_only_who_knows_the_token_and_the_host_gets_an_answer(server: PageServer) -> None:
    page = f"/{server.token}/"
    mine = f"127.0.0.1:{server.port}"

    assert ask(server, page)[0] == 200
    assert ask(server, page, {"Host": f"localhost:{server.port}"})[0] == 200
    for path in (
        "/",
        "/program.json",
        f"/{server.token}",
        f"/{server.token[:-1]}/",
        "/x/",
        "//",
        f"http://{mine}{page}",
    ):
        assert ask(server, path)[:2] == (404, b"")
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"127.0.0.1:{server.port + 1}"):
        assert ask(server, page, {"Host": host})[:2] == (404, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Content-Length", "9" * 5_000)], 413),
        ([("Content-Length", str((64 << 20) + 1))], 413),
        ([("Content-Length", "-1")], 411),
        ([(f"X-{i}", "x" * 1_000) for i in range(70)], 431),
        ([("X", "x" * 70_000)], 431),
    ],
    ids=["digits", "large", "negative", "many headers", "long header"],
)
def test_requests_have_limits(headers: list[tuple[str, str]], status: int, server: PageServer) -> None:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.putrequest("POST", f"/{server.token}/log")
        for header in headers:
            connection.putheader(*header)
        connection.endheaders()
        assert connection.getresponse().status == status
    assert server.failure is None


def test_a_hundred_connections_are_served_at_once_and_too_many_are_told_so(server: PageServer) -> None:
    with ExitStack() as open_ones:
        held = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            for _ in range(100)
        ]
        assert ask(server, f"/{server.token}/clock")[0] == 200
        held += [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10)) for _ in range(28)
        ]
        status, body, _ = ask(server, f"/{server.token}/clock")
        assert (status, body) == (503, b"too many connections: close one of the pages, or try again\n")
    for _ in range(100):  # places come back when the threads see the ends
        if ask(server, f"/{server.token}/clock")[0] == 200:
            break
        time.sleep(0.05)
    assert ask(server, f"/{server.token}/clock")[0] == 200


def test_who_sends_nothing_is_not_waited_for_long(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.engines.webgpu.browser.server._Handler.timeout", 0.1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as silent:
        silent.sendall(b"GET /")
        assert silent.recv(100) == b""


def test_it_serves_its_own_files_and_no_paths(server: PageServer) -> None:
    for name in ("", *(path.name for path in PAGE.iterdir() if path.name != "index.html")):
        status, data, headers = ask(server, f"/{server.token}/{name}")
        assert (status, data) == (200, (PAGE / (name or "index.html")).read_bytes())
        assert headers["cache-control"] == "no-store"
    for name in ("../server.py", "%2e%2e/server.py", "page/engine.js", "engine.js/", "index.html", "etc/passwd", "\\"):
        assert ask(server, f"/{server.token}/{name}")[:2] == (404, b"")


def test_the_page_asks_nothing_of_any_network() -> None:
    for path in PAGE.iterdir():
        assert "//" not in path.read_text("utf-8").replace("// ", "").replace("chrome://gpu", ""), path.name


def test_posts_are_kept_in_order_and_checked(server: PageServer) -> None:
    log = f"/{server.token}/log"
    origin = f"http://127.0.0.1:{server.port}"

    assert ask(server, log, {"Origin": origin}, "POST", b"one")[:2] == (200, b"{}")
    server.stopped = True
    assert ask(server, log, {}, "POST", b"two")[:2] == (200, b'{"stop":true}')
    assert ask(server, log, {"Origin": "http://evil.example"}, "POST", b"three")[0] == 404
    assert ask(server, log, {"Content-Length": "99999999999"}, "POST")[0] == 413
    assert ask(server, log, {"Content-Length": "-1"}, "POST")[0] == 411
    assert ask(server, f"/{server.token}/other", {}, "POST", b"four")[0] == 404
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD"):
        assert ask(server, log, {}, method)[:2] == (501, b"")

    assert [server.inbox.get_nowait().body for _ in range(server.inbox.qsize())] == [b"one", b"two"]


def test_a_taken_port_is_an_error_and_a_closed_server_answers_nobody(server: PageServer) -> None:
    with pytest.raises(InputError, match=f"port {server.port}: "):
        PageServer(server.port)

    server.close()

    with pytest.raises(ConnectionRefusedError):
        ask(server, f"/{server.token}/")


def test_the_description_has_grids_as_data_and_no_weights() -> None:
    contents = toy_contents()
    program = toy_program()
    weights = WeightFile(program.buffers, contents)

    told = json.loads(describe_program(program, weights, sources, fingerprint="f", cached=True))

    assert told["kernels"]["step"]["access"] == ["read_write", "read_write", "read"]
    assert told["phases"]["head"] == [
        {"label": "step", "pipeline": 0, "bindings": [["state", 0, 32], ["tokens", 0, 2404], ["weights", 0, 200]]}
        | {"grid": [1, 1, 1]}
    ]
    assert told["weights"] == [
        {"buffer": "norm", "part": "embedding", "offset": 0, "size": 24},
        {"buffer": "weights", "part": "layers", "offset": 24, "size": 200},
    ]


def test_a_fingerprint_is_of_names_sizes_source_and_of_samples_of_the_bytes() -> None:
    def fingerprint(count: int = 50, seed: int = 0, source: str = "folder") -> str:
        program = toy_program(count)
        return WeightFile(program.buffers, toy_contents(count, seed)).fingerprint(program, source)

    assert fingerprint() == fingerprint()
    assert len({fingerprint(), fingerprint(51), fingerprint(seed=1), fingerprint(source="other")}) == 4


def test_the_quickest_round_trip_brings_clocks_together() -> None:
    clock = find_clock([(10.0, "5000000", 14.0), (20.0, "15000000", 21.0), (30.0, "25100000", 33.0)])

    assert clock.error_ns == 500_000
    assert clock.ns(20.5) == 15_000_000


def test_device_times_that_are_all_multiples_of_a_step_are_noticed() -> None:
    def times(step: int) -> TimeStep:
        found = TimeStep()
        told = submission(1, 1) | {"base": str(7 * step), "times": [step * number**2 for number in range(20)]}
        found.add(PageSubmission(**told))
        return found

    assert times(65_536).coarse_ns() == 65_536
    assert times(10).coarse_ns() is None


def answer_and_leave(page: ScriptedPage) -> None:
    page.introduce()
    load = page.command()
    assert load["kind"] == "load"
    assert json.loads(page.ask("GET", "program.json")[1])["name"] == "toy"
    phases = [{"name": "layers", "start": 50.0, "duration": 2.0, "bytes": 224}]
    page.post("log", level="log", time=190.26, module="Loader", text="ready")
    page.post("load", id=load["id"], phases=phases, fetched={"layers": 224}, cached={"layers": 0})
    run = page.command()
    page.post("submission", **submission(run["id"], 5))
    page.post("submission", **submission(run["id"], 6, 3))
    page.leave()


def test_a_page_that_is_closed_in_the_middle_is_a_lost_device_and_what_it_said_is_kept() -> None:
    user, kept = UserOfBrowser(answer_and_leave), list[Submission]()
    with open_browser(on_text=user, url_only=True, port=0, sources=sources) as session:
        phases = session.load(toy_program(), toy_contents(), user)
        with pytest.raises(DeviceLost, match="closed while result was awaited"):
            session.run(REQUEST, kept.append)
        with pytest.raises(DeviceLost, match="closed while result was awaited"):
            session.run(REQUEST, kept.append)
    user.wait()

    assert "[browser:log] [190.3ms][Loader] ready" in user.lines
    assert [(each.name, each.dur_ns, each.bytes) for each in phases] == [("layers", 2_000_000, 224)]
    assert phases[0].start_ns == session.clock.ns(50.0)
    assert [each.tokens for each in kept] == [(5,), (6,)]
    first = kept[0]
    assert first.wall_ns == 4_750_000
    returned_ns = first.start_ns + 1_500_000
    assert (first.begin_ns, first.end_ns) == ((returned_ns, None), (returned_ns + 700, None))
    assert (first.untimed, first.clock) == (1, "aligned")


def obey_again(page: ScriptedPage) -> None:
    page.introduce()
    page.post("load", id=page.command()["id"])
    run = page.command()
    while "stop" not in page.post("submission", **submission(run["id"], 5)):
        time.sleep(0.01)
    page.post("result", id=run["id"], stopped=True)
    run = page.command()
    assert page.post("submission", **submission(run["id"], 6)) == {}
    page.post("result", id=run["id"])
    assert page.event() == {"kind": "text", "text": "<b>"}
    assert page.command() == {"kind": "close"}
    page.leave()


def test_who_stops_listening_stops_the_page_and_can_ask_again() -> None:
    def interrupt(_: Submission) -> None:
        raise KeyboardInterrupt

    user = UserOfBrowser(obey_again)
    with open_browser(on_text=user, url_only=True, port=0, sources=sources) as session:
        session.load(toy_program(), toy_contents(), user)
        with pytest.raises(KeyboardInterrupt):
            session.run(REQUEST, interrupt)
        again = session.run(REQUEST, lambda _: None)
        session.show_text("<b>")
    user.wait()

    assert [each.tokens for each in again] == [(6,)]


def fail_to_load(page: ScriptedPage) -> None:
    page.introduce()
    page.post("load", id=page.command()["id"], error="kernel step: line 3: unknown type")
    page.introduce()
    page.leave()


def test_a_load_that_fails_says_why_and_a_page_loaded_again_is_lost() -> None:
    user = UserOfBrowser(fail_to_load)
    with open_browser(on_text=user, url_only=True, port=0, sources=sources) as session:
        with pytest.raises(Unavailable, match="can't load toy: kernel step: line 3: unknown type"):
            session.load(toy_program(), toy_contents(), user)
        with pytest.raises(DeviceLost, match="loaded again"):
            session.load(toy_program(), toy_contents(), user)
    user.wait()


@pytest.mark.parametrize(
    ("say", "wanted"),
    [
        (lambda page: page.post("adapter", error="no WebGPU"), "the browser gives no device: no WebGPU"),
        (lambda page: page.post("log", level="log", time=1, module="A", text="b"), "closed while adapter was awaited"),
    ],
)
def test_a_page_without_a_device_is_told(say, wanted: str) -> None:
    def page(scripted: ScriptedPage) -> None:
        say(scripted)
        scripted.leave()

    with pytest.raises(Unavailable, match=wanted):
        open_browser(on_text=UserOfBrowser(page), url_only=True, port=0)


def test_nobody_who_opens_the_page_ends_in_time() -> None:
    with pytest.raises(Unavailable, match="was silent for 0 s while adapter was awaited"):
        open_browser(on_text=lambda _: None, url_only=True, port=0, timeout_s=0.2)


def test_another_session_on_the_port_of_a_cache_gets_a_free_port_and_says_so(tmp_path: Path) -> None:
    lines: list[str] = []

    def open_both(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            with pytest.raises(Unavailable):
                open_browser(on_text=lines.append, url_only=True, cache=tmp_path, timeout_s=0.1)

    with pytest.raises(Unavailable):
        open_browser(on_text=open_both, url_only=True, cache=tmp_path, timeout_s=0.1)

    assert "is taken: on port" in lines[1]
    assert lines[0].split("/")[2] != lines[2].split("/")[2]


def program(folder: Path, text: str) -> Path:
    path = folder / "browser"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="needs scripts with a first line that says who runs them")
def test_a_browser_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path, monkeypatch) -> None:
    text = "import sys; print('\\n'.join(f'line {n}' for n in range(30)), file=sys.stderr); sys.exit(21)"
    monkeypatch.setenv("CHROMIUM", str(program(tmp_path, text)))

    with pytest.raises(Unavailable, match=r"the browser is gone: .*browser: ended with code 21") as caught:
        open_browser(on_text=lambda _: None)

    assert "line 29" in str(caught.value)
    assert "line 9\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="needs scripts with a first line that says who runs them")
def test_a_browser_without_an_answer_is_ended_with_its_children(tmp_path: Path, monkeypatch) -> None:
    text = (
        "import os, signal, sys, time\n"
        f"child = os.fork(); open({str(tmp_path / 'pids')!r} + str(child == 0), 'w').write(str(os.getpid()))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN) if child == 0 else None\n"
        "print('no display', file=sys.stderr, flush=True); time.sleep(60)"
    )
    monkeypatch.setenv("CHROMIUM", str(program(tmp_path, text)))

    with pytest.raises(Unavailable, match=r"(?s)silent for 1 s while adapter was awaited.*no display"):
        open_browser(on_text=lambda _: None, timeout_s=1)

    left = [int((tmp_path / f"pids{each}").read_text()) for each in ("True", "False")]
    end = time.monotonic() + 5
    while any(map(runs, left)) and time.monotonic() < end:  # a killed process takes a moment
        time.sleep(0.01)
    assert not any(map(runs, left))


def test_a_browser_that_is_not_there_is_told_with_what_to_do(monkeypatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/such/browser")
    with pytest.raises(InputError, match=r"\$CHROMIUM: expected a program, found /no/such/browser"):
        find_chromium()

    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("pathlib.Path.is_file", lambda _: False)
    with pytest.raises(Unavailable, match=r"(?s)no Chromium or Chrome was found.*--browser-url"):
        find_chromium()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a system with a root user")
@pytest.mark.parametrize(("user", "without_sandbox"), [(0, True), (1000, False)])
def test_only_root_runs_without_the_sandbox(monkeypatch, user: int, without_sandbox: bool) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)

    assert ("--no-sandbox" in choose_flags()) == without_sandbox
