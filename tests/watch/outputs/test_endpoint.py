"""What Prometheus reads of a watch: each number by another way, who is answered, and what can't hold it up."""

import json
import math
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from tests.watch.streams import made, one_after_another

from inferometer.errors import InputError
from inferometer.watch.cause import Why
from inferometer.watch.outputs.endpoint import Endpoint
from inferometer.watch.outputs.gauges import PREFIX, Gauges
from inferometer.watch.session import Session
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watcher import Watcher

_DASHBOARD = Path(__file__).resolve().parents[3] / "deploy" / "grafana-watch.json"
_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)')


def _read(text: str) -> dict[str, float]:
    """Every line must be a comment or a sample."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(("# HELP ", "# TYPE ")):
            matched = _SAMPLE.fullmatch(line)
            assert matched, line
            found[f"{matched[1]}{{{matched[2] or ''}}}".replace("{}", "")] = float(matched[3])
    return found


def _watched(steps: list[WatchedStep], gauges: Gauges) -> Session:
    watcher = Watcher()
    session = Session(
        watcher, on_event=gauges.add_event, on_step=lambda judged: gauges.add_step(judged, session.watcher.state)
    )
    session.watch(steps)
    return session


def test_each_number_is_that_of_the_steps() -> None:
    steps = [*one_after_another(made(400), made(60, ms=20, seed=1))]
    gauges = Gauges(base_ns=10**18)
    _watched(steps, gauges)
    found = _read(gauges.text())
    of = '{phase="decode"}'
    last = [step.dur_ns for step in steps[-16:]]
    assert found[f"{PREFIX}step_seconds{of}"] == pytest.approx(sum(last) / 16 / 1e9)
    assert found[f"{PREFIX}expected_seconds{of}"] == pytest.approx(0.010, rel=0.01)
    low, high = found[f"{PREFIX}expected_low_seconds{of}"], found[f"{PREFIX}expected_high_seconds{of}"]
    assert math.log(high / low) == pytest.approx(2 * 2.326 * 0.02, rel=0.25)  # 98 % of a normal distribution
    assert found[f"{PREFIX}steps_total{of}"] == 460
    assert found[f"{PREFIX}step_seconds_total{of}"] == pytest.approx(sum(step.dur_ns for step in steps) / 1e9)
    assert [found[f'{PREFIX}state{{state="{state}"}}'] for state in ("learning", "normal", "slow")] == [0, 0, 1]
    slow = '{slowdown="1",phase="decode"}'
    since = found[f"{PREFIX}slow_since_timestamp_seconds{slow}"]
    assert since == pytest.approx(1e9 + steps[400].start_ns / 1e9, abs=1)
    assert found[f"{PREFIX}last_step_timestamp_seconds"] == pytest.approx(1e9 + steps[-1].end_ns / 1e9, abs=1e-3)
    assert found[f"{PREFIX}slow_ratio{slow}"] == pytest.approx(2, rel=0.05)
    assert found[f"{PREFIX}alarms_total"] == 1
    assert (
        found[f'{PREFIX}cause_info{{slowdown="1",phase="decode",verdict="not looked for yet",cause="",device=""}}'] == 1
    )


def test_a_slowdown_that_is_over_is_gone() -> None:
    gauges = Gauges()
    _watched([*one_after_another(made(400), made(60, ms=20, seed=1), made(200, seed=2))], gauges)
    found = _read(gauges.text())
    assert not any("slowdown=" in name for name in found)
    assert found[f"{PREFIX}alarms_total"] == 1
    assert not any("timestamp" in name for name in found)  # no clock is known


def test_series_are_bounded_and_labels_escaped() -> None:
    gauges = Gauges()
    for rank in range(100):
        _watched([step._replace(owner=f"rank {rank}") for step in made(3)], gauges)
    found = _read(gauges.text())
    assert sum(name.startswith(f"{PREFIX}step_seconds{{") for name in found) == 64
    assert found[f"{PREFIX}left_out_steps_total"] == 36 * 3
    hostile = 'a"} 1\nup 0\\' + "x" * 500
    slow = Gauges()
    session = _watched([*one_after_another(made(400), made(60, ms=20, seed=1))], slow)
    session.account.explain(0, Why("cause named", "slower", "", hostile, "gpu:0"))
    slow.resume(session.account.slowdowns, session.watcher.state)
    cause = next(name for name in _read(slow.text()) if "cause_info" in name)
    assert r'cause="a\"} 1\nup 0\\xxx' in cause
    assert len(cause) < 300


def _get(url: str, host: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_only_metrics_and_only_for_this_machine() -> None:
    endpoint = Endpoint("127.0.0.1:0", lambda: "x 1\n")
    try:
        port = endpoint.url.split(":")[2].split("/")[0]
        assert _get(endpoint.url) == (200, "x 1\n")
        assert _get(endpoint.url, f"localhost:{port}") == (200, "x 1\n")
        assert _get(f"{endpoint.url}?a=b")[0] == 200
        assert _get(endpoint.url, f"evil.example:{port}")[0] == 403
        assert _get(endpoint.url, "evil.example")[0] == 403
        assert _get(endpoint.url.replace("/metrics", "/"))[0] == 404
        assert _get(endpoint.url.replace("/metrics", "/../../etc/passwd"))[0] == 404
        with pytest.raises(InputError, match="can't listen there"):
            Endpoint(f"127.0.0.1:{port}", str)
    finally:
        endpoint.close()


@pytest.mark.parametrize(
    "address", ["", ":", "x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "[::1]", ":9464", "h:²"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="--listen"):
        Endpoint(address, str)


def test_connections_that_only_drip_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.watch.outputs.endpoint._LONGEST_S", 0.3)
    endpoint = Endpoint("0", lambda: "x 1\n")
    port = int(endpoint.url.split(":")[2].split("/")[0])
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    try:
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.05):
                for each in held:
                    with suppress(OSError):
                        each.send(b"G")

        thread = threading.Thread(target=drip)
        thread.start()
        time.sleep(1.0)
        assert _get(endpoint.url) == (200, "x 1\n")
        stop.set()
        thread.join()
    finally:
        for each in held:
            each.close()
        endpoint.close()


def test_the_dashboard_asks_for_what_there_is() -> None:
    gauges = Gauges(base_ns=0)
    session = _watched([*one_after_another(made(400), made(60, ms=20, seed=1))], gauges)
    assert session.account.slowdowns
    known = {name.partition("{")[0] for name in _read(gauges.text())}
    text = _DASHBOARD.read_text()
    board = json.loads(text)
    asked = set(re.findall(rf"{PREFIX}\w+", text))
    assert asked <= known
    assert known - asked <= {f"{PREFIX}{name}" for name in ("step_seconds_total", "left_out_steps_total")}
    ids = [panel["id"] for panel in board["panels"]]
    assert len({*ids}) == len(ids)
    for panel in board["panels"]:
        assert panel["targets"][0]["expr"]
        assert panel["datasource"]["uid"] == "${datasource}"
