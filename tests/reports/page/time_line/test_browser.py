"""The time line in a real browser: pan, zoom, search, keys, hover, flow, themes, phones, paper, no harm by names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.time_line.driving import FRAME, VIEWER, at, calls_and_work, click, key, seen, text, touch
from tests.traces import trace_of

from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.reports.page.blocks import Block, Mark, TimeLine
from inferometer.reports.page.document import render_page

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

EVIL = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "\u202egnirts",
    "x" * 10_000,
    "日本",
]


def test_keys_zoom_and_pan_and_show_all(tab: Tab, show: Callable[..., None]) -> None:
    show(calls_and_work())
    whole = seen(tab)
    assert whole == (0.0, 1_015_001.0)
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
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
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
        assert panned[0] > start
        assert panned[1] - panned[0] == pytest.approx(end - start)
        touch(tab, "touchStart", (x - 60, y), (x, y))
        for step in range(1, 6):
            touch(tab, "touchMove", (x - 60 - 10 * step, y), (x + 10 * step, y))
        touch(tab, "touchEnd")
        closer = seen(tab)
        assert closer[1] - closer[0] < 0.6 * (end - start)
    finally:
        tab.call("Emulation.setTouchEmulationEnabled", enabled=False)


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
