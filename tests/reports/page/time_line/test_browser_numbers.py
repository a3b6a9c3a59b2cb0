"""What the viewer counts and adds up in a real browser is what the trace has, at every scale; memory stays flat."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.time_line.driving import FRAME, VIEWER, at, click, seen, text
from tests.traces import trace_of

import inferometer
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.lanes.levels import Levels
from inferometer.reports.page.blocks import Block, TimeLine, Words
from inferometer.reports.page.time_line.fit import fit_excerpt
from inferometer.reports.page.time_line.markup import time_line_script

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

KINETO = SHARED_DATA / "traces" / "kineto"
real = pytest.mark.skipif(not KINETO.is_dir(), reason="needs ../shared/data/traces")


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
def test_what_a_zoom_needs_is_made_while_nothing_else_is_to_be_done(tab: Tab, show: Callable[..., None]) -> None:
    """Of each row that was drawn merged: every third level between its finest and the one that was drawn."""
    show(inferometer.open(KINETO / "h100_vit.json.gz"))
    rows = f"[...{VIEWER}.source.levels.values()].filter(row => row.known.size > 1)"
    keys = f"{rows}.map(row => [...row.known.keys()].sort((a, b) => a - b))"
    first = tab.run(f"{rows}.map(row => Math.max(...row.known.keys()))")
    assert first
    wanted = [sorted({*range(0, level, 3), level}) for level in first]
    tab.wait(f"JSON.stringify({keys}) === {json.dumps(json.dumps(wanted, separators=(',', ':')))}")


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


def test_an_instant_at_the_very_end_is_drawn_and_counts(tab: Tab, show: Callable[..., None]) -> None:
    spans = [{"span": "end", "process": 1, "thread": 1, "start_ns": 1_000_000, "dur_ns": 0}]
    show(trace_of([{"start_ns": 0, "dur_ns": 1_000_000}], spans=spans))
    assert seen(tab) == (0, 1_000_000)
    x, y = at(tab, 1)
    tab.point(x - 1, y)
    assert text(tab, ".tl-hover").split("\n\n")[1] == "ranges: 1 range, 0 ns; the longest 0 ns: end"
    tab.run(f"{VIEWER}.selectView(), 0")
    sums = "[...document.querySelectorAll('.tl-sums tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert tab.run(sums) == [
        ["gpu:0, stream 7", "other kernels", "1", "1.000 ms"],
        ["process 1, thread 1, ranges", "ranges", "1", "0 ns"],
    ]


def test_what_is_nested_too_deeply_is_told_with_the_sums(tab: Tab, show: Callable[..., None]) -> None:
    ops = [{"op": f"op {i}", "process": 1, "thread": 1, "start_ns": i, "dur_ns": 1_000 - 2 * i} for i in range(300)]
    show(trace_of(ops=ops))
    tab.run(f"{VIEWER}.selectView(), 0")
    assert "Not in these sums: 44 events of the whole time line" in text(tab, ".tl-sums")


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
