"""What comes out of a watch while it goes on: events, and causes that are found meanwhile."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.watch_pairs import joined
from tests.watch.streams import RECORDED, made, one_after_another

from inferometer.errors import InputError
from inferometer.formats.opening import open_trace
from inferometer.record.journal.journal import Journal
from inferometer.reports.watching.events import date_of, document, sentence
from inferometer.reports.watching.incident import Incidents, page_in
from inferometer.trace.losses import Losses
from inferometer.watch.explaining import Explainer
from inferometer.watch.recorded import steps_of
from inferometer.watch.session import Event, Session, What
from inferometer.watch.watched import Window
from inferometer.watch.watcher import Watcher


@pytest.fixture(scope="module")
def contended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = RECORDED / "cpu_contention"
    normal, fault = folder / "normal.ifm", folder / "fault.ifm"
    return joined(normal, fault, normal).save(tmp_path_factory.mktemp("watch") / "run.ifm")


def test_the_cause_comes_while_it_is_still_slow(contended: Path) -> None:
    events: list[Event] = []
    troubles: list[str] = []
    explainer = Explainer(lambda: contended, troubles.append)
    session = Session(Watcher(), explainer=explainer, on_event=events.append)
    steps = iter(steps_of(open_trace(contended)))
    for step in steps:
        session.watch([step])
        if events:
            break
    alarm = step
    for _ in range(40):
        session.watch([next(steps)])
    until = time.monotonic() + 120
    while len(events) < 2 and time.monotonic() < until:
        session.hear(1.0)
    assert [event.what for event in events] == [What.ALARM, What.CAUSE]
    first = events[1].slowdown.why
    assert first is not None
    assert session.account.window(0).end_ns > alarm.end_ns
    session.watch(steps)
    session.finish()
    explainer.close()
    assert events[-1].slowdown.recovered is not None or events[-1].what is What.CAUSE
    (slow,) = session.account.slowdowns
    assert slow.why is not None
    assert (slow.why.verdict, slow.why.metric) == ("cause named", "others_cpu_usage")
    assert troubles == []


def test_what_can_t_be_read_is_said_and_the_watch_goes_on(tmp_path: Path) -> None:
    troubles: list[str] = []
    explainer = Explainer(lambda: tmp_path / "nowhere.ifm", troubles.append)
    session = Session(Watcher(), explainer=explainer)
    session.watch(one_after_another(made(400), made(60, ms=20, seed=1)))
    session.finish()
    explainer.close()
    assert troubles
    assert all("no cause was looked for" in line for line in troubles)
    assert session.account.slowdowns[0].why is None


def test_an_event_is_a_document_whose_dates_are_those_of_the_steps() -> None:
    events: list[Event] = []
    session = Session(Watcher(), on_event=events.append)
    session.watch(one_after_another(made(400), made(60, ms=20, seed=1), made(200, seed=2)))
    base_ns = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
    found = [json.loads(json.dumps(document(event, "run --api-key kD83jf0sLq2", base_ns))) for event in events]
    assert [one["event"] for one in found] == ["alarm", "recovered"]
    assert "kD83jf0sLq2" not in json.dumps(found)
    alarm, recovered = found
    since_ms = alarm["slowdown"]["since_ns"] // 10**6
    assert alarm["since"] == f"2026-01-01T00:00:0{since_ms // 1000}.{since_ms % 1000:03}Z"
    assert (alarm["number"], alarm["recovered"], alarm["text"]) == (1, None, sentence(events[0]))
    assert recovered["recovered"] > alarm["noticed"] > alarm["since"]


@pytest.mark.parametrize(("at_ns", "base_ns"), [(0, None), (2**62, 2**62), (-(2**62), 0)])
def test_what_is_no_date_is_none(at_ns: int, base_ns: int | None) -> None:
    assert date_of(at_ns, base_ns) is None or base_ns is not None


def test_a_watch_without_steps_is_no_result() -> None:
    with pytest.raises(InputError, match="expected steps, found none"):
        Session(Watcher()).result("x", Losses())


def test_the_page_has_both_windows_and_the_cause(contended: Path, tmp_path: Path) -> None:
    session = Session(Watcher())
    session.watch(steps_of(open_trace(contended)))
    said: list[str] = []
    incidents = Incidents(tmp_path / "pages", lambda: contended, said.append)
    incidents.ask(0, session.account.window(0), "Slow")
    incidents.ask(1, Window(0, 0, 0, 0), "Nothing")
    incidents.close()
    page = page_in(tmp_path / "pages", 0).read_text("utf-8")
    assert said[0] == f"Written: {page_in(tmp_path / 'pages', 0)}"
    assert "others_cpu_usage" in page
    name = open_trace(contended).facts.source.rpartition("/")[2]
    assert f"{name}, normal" in page
    assert f"{name}, slow" in page
    assert said[1].startswith(("No page about slowdown 2: ", "Written: "))
    with pytest.raises(InputError, match="expected a folder"):
        Incidents(contended / "facts.json", lambda: contended, print)


@pytest.mark.parametrize(("others", "verdict"), [(90.0, "cause named"), (5.0, "cause not measured")])
def test_of_an_engine_counters_alone_name_the_cause(tmp_path: Path, others: float, verdict: str) -> None:
    random = np.random.default_rng(0)
    with Journal(tmp_path / "run.ifm") as journal:
        for second in range(300):
            is_slow = second >= 240
            took = round(1e7 * (2 if is_slow else 1) * random.normal(1, 0.01))
            journal.add("steps", 1, {"start_ns": second * 10**9, "dur_ns": took, "source": "recorded"})
            used = (others if is_slow else 5.0) + random.normal(0, 1)
            values: dict[str, Any] = {"metric": "others_cpu_usage", "unit": "%", "host": "h", "value": used}
            journal.add("counters", 1, {**values, "time_ns": second * 10**9 + 5})
    trace = open_trace(tmp_path / "run.ifm")
    session = Session(Watcher())
    session.watch(steps_of(trace))
    session.explain(trace)
    (slow,) = session.account.slowdowns
    assert slow.why is not None
    assert (slow.why.verdict, slow.why.metric is not None) == (verdict, verdict == "cause named")
    assert "so nothing says what of a step takes longer." in slow.why.sentence
