"""The time line in a real browser: pan, zoom, search, keys, sums, hover, flow, themes, phones, and no harm by names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.reports.page.browser import Tab, find_chromium
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Levels
from inferometer.reports.page.blocks import Block, Mark, TimeLine, Words
from inferometer.reports.page.document import render_page
from inferometer.reports.page.time_line.fit import fit_excerpt
from inferometer.reports.page.time_line.markup import time_line_script
from inferometer.trace.trace import Trace

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

KINETO = SHARED_DATA / "traces" / "kineto"
real = pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")
VIEWER = "document.querySelector('.time-line').viewer"
EVIL = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "\u202egnirts",
    "x" * 10_000,
    "日本",
]
FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def show(tab: Tab, tmp_path: Path) -> Callable[..., None]:
    """Opens a page with the time line of a trace, and waits until it is drawn."""

    def show(trace: Trace, *marks: Mark, **window: Any) -> None:
        line = find_lanes(trace)
        assert line is not None
        parts = [TimeLine("What ran when", "All of it.", line, marks), *(Words("below") for _ in range(40))]
        path = tmp_path / "page.html"
        path.write_text(render_page([Block("timeline", "Time line", parts)], title="run").html, "utf-8")
        tab.open(path, **window)
        tab.wait(f"{VIEWER}?.drawn > 0")

    return show


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


def test_keys_zoom_and_pan_and_show_all(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    whole = seen(tab)
    assert whole == (0, 1_015_001)
    tab.run("document.querySelector('.tl-body').focus()")
    key(tab, "w")
    key(tab, "w")
    start, end = seen(tab)
    assert end - start == pytest.approx(1_015_001 / 1.25**2)
    key(tab, "d")
    later = seen(tab)
    assert later[0] > start
    assert later[1] - later[0] == pytest.approx(end - start)
    key(tab, "ArrowLeft")
    assert seen(tab) == pytest.approx((start, end))
    key(tab, "Home")
    assert seen(tab) == whole


def test_a_drag_pans_and_the_wheel_zooms_with_ctrl_alone(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    tab.run("document.querySelector('.tl-body').focus()")
    for _ in range(5):
        key(tab, "w")
    start, end = seen(tab)
    x, y = tab.run("(b => [b.left + 400, b.top + 40])(document.querySelector('.tl-lanes').getBoundingClientRect())")
    click(tab, x, y, to=(x - 100, y))
    per_pixel = (end - start) / tab.run(f"{VIEWER}.width")
    assert seen(tab)[0] == pytest.approx(start + 100 * per_pixel)
    before = seen(tab)
    tab.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=30)
    tab.wait("scrollY > 0")
    assert seen(tab) == before
    y = tab.run("document.querySelector('.tl-lanes').getBoundingClientRect().top + 40")
    under = before[0] + 400 * per_pixel
    tab.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-40, modifiers=2)
    tab.wait(f"{VIEWER}.view.width < {before[1] - before[0]}")
    start, end = seen(tab)
    assert start + 400 * (end - start) / tab.run(f"{VIEWER}.width") == pytest.approx(under, rel=1e-3)


def test_what_is_chosen_says_its_exact_numbers_and_leads_to_its_call_and_the_op_around(
    tab: Tab, show: Callable[..., None]
) -> None:
    show(calls_and_work())
    tab.run(f"{VIEWER}.view.showAround(1_005_000, 1_020_000), {VIEWER}.redraw()")
    x, y = at(tab, 1)
    tab.point(x, y)
    wanted = ["kernel_1", "5.001 μs (5,001 ns), other kernels", "from 1.010 ms (1,010,000 ns)", "gpu:0, stream 7"]
    assert tab.run("[...document.querySelectorAll('.tl-hover p')].map(p => p.textContent)") == wanted
    click(tab, x, y)
    assert text(tab, ".time-line [role=status]") == "; ".join(wanted)
    links = "[...document.querySelectorAll('.tl-links button')].map(b => b.textContent)"
    assert tab.run(links) == ["queued 9.900 μs before by cudaLaunchKernel", "in aten::op_1"]
    tab.run("document.querySelector('.tl-body').focus()")
    key(tab, "Enter")
    assert tab.run(f"{VIEWER}.source.about.names[{VIEWER}.source.line.name[{VIEWER}.chosen]]") == "cudaLaunchKernel"
    assert tab.run(links) == ["queued kernel_1", "in aten::op_1"]
    key(tab, "Enter")
    assert tab.run(f"{VIEWER}.chosen") == 1
    key(tab, ",")
    assert text(tab, ".tl-about code") == "kernel_0"
    key(tab, "Escape")
    assert tab.run("document.querySelector('.tl-about').hidden")


def test_search_counts_goes_on_and_back_and_dims_the_rest(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    tab.run("document.querySelector('.tl-body').focus()")
    key(tab, "/")
    assert tab.run("document.activeElement === document.querySelector('.tl-tools input')")
    tab.call("Input.insertText", text="KERNEL_")
    assert text(tab, ".tl-tools output") == "2 found"
    key(tab, "Enter")
    assert (text(tab, ".tl-tools output"), text(tab, ".tl-about code")) == ("1 of 2 found", "kernel_0")
    key(tab, "Enter")
    assert text(tab, ".tl-about code") == "kernel_1"
    start, end = seen(tab)
    assert (start <= 1_010_000, end >= 1_015_001) == (True, True)
    tab.run("document.querySelectorAll('.tl-tools button')[0].click()")
    assert text(tab, ".tl-tools output") == "1 of 2 found"
    tab.run("(i => { i.value = 'none such'; i.oninput(); })(document.querySelector('.tl-tools input'))")
    assert text(tab, ".tl-tools output") == "0 found"
    assert tab.run("document.querySelectorAll('.tl-tools button')[0].disabled")


@real
@pytest.mark.parametrize("name", ["h100_vit", "a100_nccl"])
def test_sums_of_a_selection_are_the_trace_s_to_the_nanosecond(tab: Tab, show: Callable[..., None], name: str) -> None:
    trace = inferometer.open(KINETO / f"{name}.json.gz")
    show(trace)
    length = tab.run(f"{VIEWER}.source.about.length")
    origin = int(tab.run(f"{VIEWER}.source.about.origin"))
    start, end = length // 3, length // 2
    tab.run(f"{VIEWER}.select({start}, {end}), 0")
    found = tab.run(
        "[...document.querySelectorAll('.tl-sums tbody tr')].map(r => [r.cells[0].textContent,"
        " Number(r.cells[2].textContent.replaceAll(',', '')), Number(r.cells[3].dataset.ns)])"
    )
    sums: dict[str, tuple[int, int]] = {}
    lane = ""
    for head, count, ns in found:
        lane = (head or lane).rpartition(", ")[2]
        before = sums.get(lane, (0, 0))
        sums[lane] = (before[0] + count, before[1] + ns)
    rows = trace.launches.with_columns(pl.col("start_ns") - origin).with_columns(
        end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    within = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(start))
    wanted = (
        rows.filter(pl.col("start_ns") < end, (pl.col("end_ns") > start) | (pl.col("start_ns") >= start))
        .group_by("stream")
        .agg((pl.col("start_ns") >= start).sum().alias("count"), within.sum().alias("ns"))
        .collect()
    )
    assert {f"stream {stream}": (count, ns) for stream, count, ns in wanted.iter_rows()} == {
        lane: sum_ for lane, sum_ in sums.items() if lane.startswith("stream ") and not lane.endswith("ranges")
    }
    assert wanted.height > 0


def test_a_range_dragged_on_the_ruler_is_selected_and_its_edges_are_said(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    box = tab.run("(b => [b.left, b.top])(document.querySelector('.tl-head').getBoundingClientRect())")
    click(tab, box[0] + 2, box[1] + 35, to=(box[0] + 100, box[1] + 35))
    start, end = tab.run(f"[{VIEWER}.range.start, {VIEWER}.range.end]")
    assert 0 <= start < end
    assert f"({end - start:,} ns)" in text(tab, ".time-line [role=status]")
    tab.run("document.querySelector('.tl-body').focus()")
    key(tab, "m")
    assert tab.run(f"[{VIEWER}.range.start, {VIEWER}.range.end]") == [0, 1_015_001]
    sums = "[...document.querySelectorAll('.tl-sums tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert tab.run(sums)[0] == ["gpu:0, stream 7", "other kernels", "2", "10.001 μs"]


@real
def test_levels_in_the_browser_are_those_of_the_analysis(tab: Tab, show: Callable[..., None]) -> None:
    """Of each row and level: single events, slices with time and count."""
    trace = inferometer.open(KINETO / "h100_vit.json.gz")
    show(trace)
    line = find_lanes(trace)
    assert line is not None
    levels = Levels(line)
    for level in (1, 5, 9, 12, 14, 17, 22, 30):
        found = tab.run(
            f"(s => s.rowLane.map((_, row) => {{ const {{ single, slices }} = s.row(row).at({level});"
            "return [single, ...['at', 'category', 'ns', 'count', 'longestNs'].map(name => slices[name])]"
            f".map(values => [...values]); }}))({VIEWER}.source)"
        )
        wanted = levels.at(level)
        for row, (single, *columns) in enumerate(found):
            first, last = line.row_at[row], line.row_at[row + 1]
            assert single == [event for event in wanted.single.tolist() if first <= event < last]
            own = wanted.slices.take(wanted.slices.row == row)
            parts = (own.at, own.category, own.ns, own.count, own.longest_ns)
            assert columns == [part.tolist() for part in parts]


@real
def test_where_events_are_merged_hover_and_sums_say_so_and_stay_exact(tab: Tab, tmp_path: Path) -> None:
    trace = inferometer.open(KINETO / "v100_graph_branches.json.gz")
    line = find_lanes(trace)
    assert line is not None
    excerpt = fit_excerpt(line, 20_000)
    merged = int(excerpt.slices.count.sum())
    assert merged > 0
    show_excerpt(tab, tmp_path, line)
    tab.run(f"{VIEWER}.selectView(), 0")
    total = tab.run(
        "[...document.querySelectorAll('.tl-sums tbody tr')].reduce((n, r) => n + Number(r.cells[3].dataset.ns), 0)"
    )
    count = tab.run(
        "[...document.querySelectorAll('.tl-sums tbody tr')]"
        ".reduce((n, r) => n + Number(r.cells[2].textContent.replaceAll(',', '')), 0)"
    )
    assert (total, count) == (int(line.dur_ns.sum()), len(line.dur_ns))
    spot = tab.run(
        f"(v => {{ const a = v.answers.find(a => a.sliceTo > a.sliceFrom); const s = v.layout.spot(a.row);"
        "const b = v.parts.lanes.getBoundingClientRect(); const i = a.sliceFrom;"
        "const middle = v.painter.at((a.slices.at[i] + 0.5) * 2 ** a.level);"
        "return [b.left + middle, b.top + s.y - v.parts.body.scrollTop + s.height / 2]; })"
        f"({VIEWER})"
    )
    tab.point(*spot)
    assert text(tab, ".tl-hover p").startswith("merged: ")


def show_excerpt(tab: Tab, tmp_path: Path, line: Any) -> None:
    """A page so small that not all events have room."""
    from inferometer.reports.page import document
    from inferometer.reports.page.time_line import markup

    (html,) = markup.write_time_lines([("timeline", TimeLine("t", "a", line))], 60_000)
    page = document.render_page([Block("timeline", "Time line", [Words("x")])], title="run").html
    css = f"<style>{markup.time_line_css()}</style>"
    script = f"<script>{time_line_script()}</script>"
    path = tmp_path / "small.html"
    path.write_text(
        page.replace("</section>", f"{html}</section>").replace("</body>", f"{css}{script}</body>"), "utf-8"
    )
    tab.open(path)
    tab.wait(f"{VIEWER}?.drawn > 0")


def test_marks_lead_to_their_place_and_addresses_do_too(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work(), Mark(15_000, 1_010_000, "gpu:0 idle <b>", "bad", "timeline"))
    tab.run("document.querySelector('.tl-places summary').click(), document.querySelector('.tl-places a').click()")
    assert tab.run("location.hash") == "#timeline?at=15000-1010000"
    tab.wait(f"{VIEWER}.mark !== null")
    assert text(tab, ".time-line [role=status]") == "gpu:0 idle <b>"
    assert tab.run("document.querySelector('.tl-about a').hash") == "#timeline"
    tab.run("location.hash = '#timeline?at=1010000-1015001', 0")
    tab.wait(f"{VIEWER}.range?.start === 1010000")
    start, end = seen(tab)
    assert (start < 1_010_000, end >= 1_015_001, end - start < 10_000) == (True, True, True)


def test_lanes_fold_by_button_and_keyboard(tab: Tab, show: Callable[..., None]) -> None:
    frames = [{"frame": f"f{i}", "process": 1, "thread": 1, "start_ns": i, "dur_ns": 100 - 2 * i} for i in range(9)]
    show(trace_of(frames=frames))
    lane = "document.querySelector('button.tl-lane')"
    height = "document.querySelector('.tl-inside').offsetHeight"
    assert tab.run(f"{lane}.ariaExpanded") == "false"
    folded = tab.run(height)
    tab.run(f"{lane}.focus()")
    key(tab, "Enter")
    tab.wait(f"{lane}.ariaExpanded === 'true'")
    assert tab.run(height) == folded + 6 * 16
    tab.run("document.querySelector('.tl-group').click()")
    tab.wait(f"{height} === 26")


@pytest.mark.parametrize("width", [390, 1400])
def test_dark_and_light_are_the_page_s_and_nothing_is_wider_than_a_phone(
    tab: Tab, show: Callable[..., None], width: int
) -> None:
    show(calls_and_work(), width=width, mobile=width < 500)
    pixel = f"({VIEWER}.painter.pixels[0] & 0xffffff).toString(16)"  # blue, green, red
    tab.run(FRAME)
    assert tab.run(pixel) == "ffffff"
    tab.run("document.getElementById('theme').click()")
    tab.wait(f"{pixel} === '1a1614'")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert tab.run("document.querySelector('.time-line').classList.contains('tl-narrow')") is (width < 500)


def test_names_of_a_hostile_file_are_text(tab: Tab, show: Callable[..., None]) -> None:
    rows = [{"kernel": name, "start_ns": 1_000 * i, "dur_ns": 900} for i, name in enumerate(EVIL)]
    ops = [{"op": name, "process": 1, "thread": 1, "start_ns": 0, "dur_ns": 5_000} for name in EVIL]
    show(trace_of(rows, ops=ops, facts={"threads": ()}), *(Mark(0, 9, name) for name in EVIL))
    for event in range(len(EVIL)):
        tab.run(f"{VIEWER}.choose({event}), 0")
        tab.point(*at(tab, event))
    assert tab.run(f"{VIEWER}.source.about.names.length") == 2 * len(EVIL)
    assert "日本" in tab.run(f"{VIEWER}.source.about.names")
    assert tab.run("typeof hacked") == "undefined"
    assert tab.run("document.querySelectorAll('img, b').length") == 0


def test_one_event_instants_and_ten_thousand_lanes_are_drawn(tab: Tab, show: Callable[..., None]) -> None:
    show(trace_of([{"start_ns": 2**61, "dur_ns": 0}]))
    assert seen(tab) == (0, 40)
    click(tab, *at(tab, 0))
    assert text(tab, ".tl-about code") == "k"
    show(trace_of([{"stream": i, "start_ns": i, "dur_ns": 9} for i in range(10_000)]))
    tab.run("document.querySelector('.tl-body').scrollTop = 1e9")
    tab.run(FRAME)
    tab.wait("[...document.querySelectorAll('.tl-lane')].some(e => e.textContent === 'stream 9999')")
    assert tab.run("document.querySelectorAll('.tl-lane').length") < 100


@real
def test_two_hundred_zooms_take_no_more_memory(tab: Tab, show: Callable[..., None]) -> None:
    show(inferometer.open(KINETO / "v100_graph_branches.json.gz"))
    zoom = (
        "(async v => { for (let i = 0; i < %d; i += 1) { v.zoom(i %% 40 < 20 ? 1.3 : 1 / 1.3, v.width * (i %% 7) / 7);"
        " await new Promise(requestAnimationFrame); } })(" + VIEWER + ")"
    )
    heap = []
    for count in (120, 200):
        tab.run(zoom % count)
        tab.run(f"{VIEWER}.showAll(), 0")
        tab.call("HeapProfiler.collectGarbage")
        heap.append(tab.call("Runtime.getHeapUsage")["usedSize"])
    assert heap[1] < heap[0] + 2_000_000, json.dumps(heap)


def test_without_a_script_the_sentence_and_the_places_are_there(tab: Tab, tmp_path: Path) -> None:
    line = find_lanes(calls_and_work())
    assert line is not None
    block = Block("timeline", "Time line", [TimeLine("What ran when", "All of it.", line, [Mark(0, 5, "a place")])])
    path = tmp_path / "page.html"
    path.write_text(render_page([block], title="run").html, "utf-8")
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(path)
        said = tab.run("document.body.innerText")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "All of it. Every single event is in the page." in said
    assert "Places that stand out" in said


def test_fingers_pan_and_pinch(tab: Tab, show: Callable[..., None]) -> None:
    tab.call("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        show(calls_and_work(), width=390, mobile=True)
        tab.run(f"{VIEWER}.zoom(4)")
        start, end = seen(tab)
        tab.run("document.querySelector('.tl-lanes').scrollIntoView({behavior: 'instant', block: 'center'})")
        x, y = tab.run("(b => [b.left + 250, b.top + 60])(document.querySelector('.tl-lanes').getBoundingClientRect())")
        touch(tab, "touchStart", (x, y))
        for step in range(1, 6):
            touch(tab, "touchMove", (x - 20 * step, y))
        touch(tab, "touchEnd")
        panned = seen(tab)
        assert (panned[0] > start, panned[1] - panned[0]) == (True, pytest.approx(end - start))
        touch(tab, "touchStart", (x - 60, y), (x, y))
        for step in range(1, 6):
            touch(tab, "touchMove", (x - 60 - 10 * step, y), (x + 10 * step, y))
        touch(tab, "touchEnd")
        closer = seen(tab)
        assert closer[1] - closer[0] < 0.6 * (end - start)
    finally:
        tab.call("Emulation.setTouchEmulationEnabled", enabled=False)


def touch(tab: Tab, kind: str, *points: tuple[float, float]) -> None:
    """Fingers at these places."""
    fingers = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
    tab.call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)


def test_paper_has_the_time_line_in_light_and_no_wider_than_itself(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    tab.run("document.getElementById('theme').click()")
    tab.wait(f"({VIEWER}.painter.pixels[0] & 0xffffff) === 0x1a1614")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    assert tab.run(f"({VIEWER}.painter.pixels[0] & 0xffffff) === 0xffffff")
    assert tab.run("document.querySelector('.tl-stage').getBoundingClientRect().width") <= 680
    assert tab.run("getComputedStyle(document.querySelector('.tl-tools')).display") == "none"
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint')), 0")
    tab.wait(f"({VIEWER}.painter.pixels[0] & 0xffffff) === 0x1a1614")
