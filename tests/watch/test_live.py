"""The screen of a watch."""

import io

from rich.console import Console
from tests.watch.streams import made, one_after_another

from inferometer.reports.watching.live import Screen
from inferometer.watch.intervals import Rates
from inferometer.watch.session import Session
from inferometer.watch.watcher import State, Watcher

_RATES = Rates(1234.0, None, 8.0, 3.0, 50.0)


def _drawn(ms: float, *, source: str = "http://h:1", trouble: str | None = None) -> str:
    out, shown = io.StringIO(), io.StringIO()
    console = Console(file=out, width=120, force_terminal=True, color_system=None, legacy_windows=False)
    screen = Screen(source, console)
    session = Session(Watcher(), on_step=screen.add_step)
    session.watch(one_after_another(made(400), made(60, ms=ms, seed=1)))
    screen.say("Slow since 4 s.\x1b[2J")
    assert "[2J" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    Console(file=shown, width=120).print(screen.content(session.watcher.state, _RATES, trouble))
    screen.close()
    return shown.getvalue()


def test_a_line_has_what_the_steps_took_and_what_was_expected() -> None:
    text = _drawn(20)
    assert "slow" in text.splitlines()[0]
    (line,) = [line for line in text.splitlines() if "decode 460" in line]
    took, expected = line.split()[2], line.split()[4]
    assert 19.5 < float(took) < 20.5
    assert 9.8 < float(expected) < 10.2
    assert 1.95 < float(line.split("ms")[-1].split()[0]) < 2.05
    assert "▇" in line or "█" in line
    assert "generated 1,234 tokens/s  running 8  waiting 3  KV cache 50 %" in text


def test_normal_steps_stand_at_half_height() -> None:
    (line,) = [line for line in _drawn(10).splitlines() if "decode 460" in line]
    assert set(line.split()[-1]) <= {"▄", "▅"}


def test_hostile_text_drives_no_terminal() -> None:
    text = _drawn(10, source="http://h:1\x1b]0;x\x07[red]", trouble="gone\x1b[2J")
    assert "\x1b" not in text
    assert "[red]" in text
    assert "Waiting: gone" in text


def test_it_is_drawn_once_a_second_at_most() -> None:
    out = io.StringIO()
    screen = Screen("x", Console(file=out, width=80, force_terminal=True))
    screen.draw(State.LEARNING, None, None)
    before = len(out.getvalue())
    for _ in range(100):
        screen.draw(State.LEARNING, None, None)
    assert len(out.getvalue()) == before
    screen.close()
