"""How tests drive the viewer: where things are, mouse, keys, fingers, and a small trace of calls and their work."""

from tests.reports.page.browser import Tab
from tests.traces import trace_of

from inferometer.trace.trace import Trace

VIEWER = "document.querySelector('.time-line').viewer"
FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def seen(tab: Tab) -> tuple[float, float]:
    """First and last ns of the window, when it has been drawn."""
    tab.run(FRAME)
    start, end = tab.run(f"[{VIEWER}.view.start, {VIEWER}.view.end]")
    return float(start), float(end)


def at(tab: Tab, event: int) -> tuple[float, float]:
    """Where on the screen the middle of an event is."""
    tab.run(FRAME)
    x, y = tab.run(
        f"(v => {{ const line = v.source.line; const spot = v.layout.spot(line.rowOf({event}));"
        f"const box = v.parts.lanes.getBoundingClientRect();"
        f"const middle = line.start[{event}] + line.dur[{event}] / 2;"
        f"const top = box.top + spot.y - v.parts.body.scrollTop;"
        f"return [box.left + v.painter.at(middle), top + spot.height / 2]; }})({VIEWER})"
    )
    return float(x), float(y)


def click(tab: Tab, x: float, y: float, to: tuple[float, float] | None = None, modifiers: int = 0) -> None:
    """Press there, move where that is asked for, and release."""
    end = to or (x, y)
    common = {"button": "left", "clickCount": 1, "modifiers": modifiers}
    tab.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **common)
    if to is not None:
        middle = ((x + end[0]) / 2, (y + end[1]) / 2)
        for px, py in (middle, end):
            tab.call(
                "Input.dispatchMouseEvent", type="mouseMoved", x=px, y=py, button="left", buttons=1, modifiers=modifiers
            )
    tab.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **common)
    tab.run(FRAME)


def text(tab: Tab, selector: str) -> str:
    return str(tab.run(f"document.querySelector('{selector}').innerText"))


def key(tab: Tab, name: str) -> None:
    """A letter or a named key, as it is typed."""
    codes = {"Enter": 13, "Escape": 27, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
    tab.press(name, codes.get(name, ord(name[0].upper())), {"Enter": "\r"}.get(name, name if len(name) == 1 else ""))


def touch(tab: Tab, kind: str, *points: tuple[float, float]) -> None:
    """Fingers at these places."""
    fingers = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
    tab.call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)


def calls_and_work() -> Trace:
    """Two launches with their calls inside ops, 1 ms apart."""
    return trace_of(
        [
            {
                "kernel": f"kernel_{i}",
                "process": 1,
                "correlation_id": i,
                "start_ns": 10_000 + i * 1_000_000,
                "dur_ns": 5_000 + i,
            }
            for i in range(2)
        ],
        calls=[
            {
                "api": "cudaLaunchKernel",
                "process": 1,
                "thread": 2,
                "correlation_id": i,
                "start_ns": i * 1_000_000 + 100,
                "dur_ns": 900,
            }
            for i in range(2)
        ],
        ops=[
            {"op": f"aten::op_{i}", "process": 1, "thread": 2, "start_ns": i * 1_000_000, "dur_ns": 2_000}
            for i in range(2)
        ],
    )
