"""A watch that was killed goes on: it judges as if it had never ended, and raises no alarm twice."""

import json
from pathlib import Path

import pytest
from tests.watch.streams import made, one_after_another

from inferometer.errors import InputError
from inferometer.watch.cause import Why
from inferometer.watch.kept import Keeper
from inferometer.watch.session import Event, Session
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watcher import State, Watcher

_URL = "http://127.0.0.1:8000"


def _steps() -> list[WatchedStep]:
    parts = made(400), made(150, ms=14, seed=1), made(300, seed=2), made(60, ms=20, seed=3)
    return [step._replace(work=(100.0, float(i % 7), 0.0)) for i, step in enumerate(one_after_another(*parts))]


def _gone_on(path: Path, steps: list[WatchedStep], cuts: list[int]) -> tuple[Session, list[Event]]:
    """Watched by a new process after each cut."""
    events: list[Event] = []
    session = Session(Watcher())
    for begin, end in zip([0, *cuts], [*cuts, len(steps)], strict=True):
        watcher, keeper = Watcher(), Keeper(path, _URL)
        session = Session(watcher, keeper.read(watcher), on_event=events.append)
        session.watch(steps[begin:end])
        keeper.keep(watcher, session.account, now=True)
    return session, events


@pytest.mark.parametrize("cuts", [[395], [20], [402, 410], [450], [560, 700], [800, 860, 870]])
def test_it_finds_what_it_would_have_found(tmp_path: Path, cuts: list[int]) -> None:
    steps = _steps()
    whole, expected = _gone_on(tmp_path / "whole", steps, [])
    parts, found = _gone_on(tmp_path / "parts", steps, cuts)
    assert [event.what for event in found] == [event.what for event in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.number == other.number
        assert one.change is not None
        assert other.change is not None
        assert abs(one.change.step - other.change.step) <= 2
    assert parts.account.steps == whole.account.steps == len(steps)
    assert parts.watcher.state is whole.watcher.state is State.SLOW
    assert parts.account.slowdowns[1].ratio == pytest.approx(whole.account.slowdowns[1].ratio, rel=0.02)


def test_a_cause_is_kept(tmp_path: Path) -> None:
    session, _ = _gone_on(tmp_path / "k", _steps()[:450], [])
    why = Why("cause named", "slower", "Because.", "others_cpu_usage", "host")
    session.account.explain(0, why)
    Keeper(tmp_path / "k", _URL).keep(session.watcher, session.account, now=True)
    account = Keeper(tmp_path / "k", _URL).read(Watcher())
    assert account is not None
    assert account.slowdowns[0].why == why


def test_it_is_written_each_ten_seconds_or_less_often_where_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr("inferometer.watch.kept.time.thread_time", lambda: 0.0)
    keeper = Keeper(tmp_path / "k", _URL, monotonic_s=lambda: now_s[0])
    session, writes = Session(Watcher()), []
    for step in made(30):
        session.watch([step])
        keeper.keep(session.watcher, session.account)
        writes.append((tmp_path / "k").read_bytes())
        now_s[0] += 2
    assert len({*writes}) == 6
    ticks = iter(range(1000))
    monkeypatch.setattr("inferometer.watch.kept.time.thread_time", lambda: next(ticks) / 10)
    writes.clear()
    for _ in range(60):
        session.watch([step])
        keeper.keep(session.watcher, session.account)
        writes.append((tmp_path / "k").read_bytes())
        now_s[0] += 2
    assert len({*writes}) == 3


@pytest.mark.parametrize("part", range(0, 100, 7))
def test_what_is_cut_anywhere_is_refused(tmp_path: Path, part: int) -> None:
    _gone_on(tmp_path / "k", _steps()[:60], [])
    whole = (tmp_path / "k").read_bytes()
    (tmp_path / "k").write_bytes(whole[: len(whole) * part // 100])
    with pytest.raises(InputError, match="can't be read"):
        Keeper(tmp_path / "k", _URL).read(Watcher())


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("mark", "x", "version"),
        ("version", 1, "version"),
        ("source", "http://other:1", "was learned of http://other:1"),
        ("lanes", 1, "can't be read"),
        ("lanes", [[]], "can't be read"),
        ("account", None, "can't be read"),
    ],
)
def test_what_is_another_is_refused(tmp_path: Path, key: str, value: object, said: str) -> None:
    _gone_on(tmp_path / "k", _steps()[:60], [])
    kept = json.loads((tmp_path / "k").read_text())
    (tmp_path / "k").write_text(json.dumps({**kept, key: value}))
    with pytest.raises(InputError, match=said) as refused:
        Keeper(tmp_path / "k", _URL).read(Watcher())
    assert "-o" in str(refused.value)


@pytest.mark.parametrize("took", [0, -5, 2**62])
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value|overflow:RuntimeWarning")
def test_steps_that_can_t_be_are_refused_or_borne(tmp_path: Path, took: int) -> None:
    _gone_on(tmp_path / "k", _steps()[:60], [])
    kept = json.loads((tmp_path / "k").read_text())
    for step in kept["lanes"][0][1][0][1][0]:
        step[1] = took
    (tmp_path / "k").write_text(json.dumps(kept))
    watcher = Watcher()
    if took <= 0:
        with pytest.raises(InputError, match="makes no sense"):
            Keeper(tmp_path / "k", _URL).read(watcher)
        return
    Keeper(tmp_path / "k", _URL).read(watcher)
    Session(watcher).watch(_steps()[60:70])


def test_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("mine")
    (tmp_path / "link").symlink_to("k")
    for name in ("k", "link"):
        with pytest.raises(InputError):
            Keeper(tmp_path / name, _URL).keep(Watcher(), Session(Watcher()).account, now=True)
    assert (tmp_path / "k").read_text() == "mine"
