"""Charts in a real browser: what is drawn where, from the numbers alone; zoom, series, phones and paper."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.page_parts import bars, hover

from inferometer.reports.page.blocks import Chart, Tabs, Words
from inferometer.reports.page.blocks import Tab as PageTab

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

TICKS = "[...document.querySelectorAll('.axes text')].map(text => text.textContent)"


def chart(*traces: dict[str, Any], **layout: Any) -> Chart:
    return Chart("Time", "It is so.", traces, layout)


def line(**more: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines+markers", "x": [1, 2, 3, 4], "y": [10, 20, 15, 40], **more}


def boxes(tab: Tab) -> list[list[float]]:
    """Left, top, width and height of each bar."""
    script = (
        "[...document.querySelectorAll('rect.mark')].map(mark =>"
        " ['x', 'y', 'width', 'height'].map(name => Number(mark.getAttribute(name))))"
    )
    found: list[list[float]] = tab.run(script)
    return found


def drag(tab: Tab, share: tuple[float, float]) -> None:
    tab.run("document.querySelector('.plot').scrollIntoView({behavior: 'instant', block: 'center'})")
    x, y, width = tab.run(
        "(b => [b.left, b.top + b.height / 2, b.width])(document.querySelector('.plot svg').getBoundingClientRect())"
    )
    begin, end = (x + width * each for each in share)
    for kind, at in (("mousePressed", begin), ("mouseMoved", end), ("mouseReleased", end)):
        tab.call("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1, clickCount=1)


def test_bars_are_as_long_as_their_numbers(tab: Tab, show: Callable[..., None]) -> None:
    trace = {"type": "bar", "orientation": "h", "y": ["a", "b", "c"], "x": [10, 5, 40]}
    show(chart(trace, yaxis={"autorange": "reversed"}))
    found = boxes(tab)
    assert [width / found[0][2] for _, _, width, _ in found] == pytest.approx([1, 0.5, 4], rel=0.01)
    assert [top for _, top, _, _ in found] == sorted(top for _, top, _, _ in found)


def test_stacked_bars_begin_where_the_ones_below_end(tab: Tab, show: Callable[..., None]) -> None:
    traces = [
        {"type": "bar", "name": name, "x": [1, 2], "y": [value, 2 * value]} for name, value in (("a", 3), ("b", 6))
    ]
    show(chart(*traces, barmode="stack"))
    (_, top_a, _, tall_a), _, (_, top_b, _, tall_b), _ = boxes(tab)
    assert top_b + tall_b == pytest.approx(top_a, abs=0.1)
    assert tall_b / tall_a == pytest.approx(2, rel=0.01)
    tab.run("document.querySelector('.legend button').click()")  # without the series below, they stand on the axis
    (_, top, _, tall), _ = boxes(tab)
    assert top + tall == pytest.approx(top_a + tall_a, abs=0.1)
    assert tab.run("document.querySelector('.legend button').ariaPressed") == "false"


def test_bars_share_the_room_of_a_name_with_those_that_stand_there(tab: Tab, show: Callable[..., None]) -> None:
    one = {"type": "bar", "orientation": "h", "name": "one", "y": ["both", "own"], "x": [1, 1]}
    two = {"type": "bar", "orientation": "h", "name": "two", "y": ["both"], "x": [1]}
    show(chart(one, two, barmode="group"))
    (_, _, _, shared), (_, _, _, whole), (_, _, _, other) = boxes(tab)
    assert [shared / whole, other / whole] == pytest.approx([0.5, 0.5], rel=0.01)


def test_a_waterfall_goes_on_where_it_was(tab: Tab, show: Callable[..., None]) -> None:
    trace: dict[str, Any] = {
        "type": "waterfall",
        "orientation": "h",
        "y": ["base", "more", "less", "all"],
        "x": [10, 4, -2, 12],
    }
    colors = {"increasing": "var(--bad)", "decreasing": "var(--good)", "totals": "var(--series-1)"}
    trace |= {"measure": ["absolute", "relative", "relative", "total"]}
    trace.update({name: {"marker": {"color": shade}} for name, shade in colors.items()})
    show(chart(trace))
    base, more, less, whole = ((left, left + width) for left, _, width, _ in boxes(tab))
    assert more[0] == pytest.approx(base[1], abs=0.1)
    assert less[1] == pytest.approx(more[1], abs=0.1)
    assert less[0] == pytest.approx(whole[1], abs=0.1)


def test_ticks_of_a_logarithmic_axis_are_equally_far_apart_by_ratio(tab: Tab, show: Callable[..., None]) -> None:
    show(chart(line(x=[1, 10, 100, 1000, 10000]), xaxis={"type": "log"}))
    at = "[...document.querySelectorAll('.plot path.mark')].map(mark => mark.getAttribute('transform'))"
    places = [float(re.findall(r"[\d.]+", place)[0]) for place in tab.run(at)]
    gaps = [after - before for before, after in pairwise(places)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), abs=0.3)
    assert {"1", "10", "100", "1,000", "10,000"} <= set(tab.run(TICKS))


def test_dragging_zooms_in_and_a_button_goes_back(tab: Tab, show: Callable[..., None]) -> None:
    show(chart(line(x=[*range(101)], y=[*range(101)])))
    whole = tab.run(TICKS)
    assert {"0", "100"} <= set(whole)
    drag(tab, (0.4, 0.6))
    assert tab.run("document.querySelector('.whole').hidden") is False
    ticks = [float(text) for text in tab.run(TICKS)]
    assert not {0.0, 100.0} & set(ticks[: len(ticks) // 3])
    tab.run("document.querySelector('.whole').click()")
    assert tab.run(TICKS) == whole


def test_a_cell_of_a_heat_map_says_its_number(tab: Tab, show: Callable[..., None]) -> None:
    trace = {
        "type": "heatmap",
        "y": ["gpu:0", "gpu:1"],
        "x0": 5,
        "dx": 10,
        "z": [[0, 0.5], [1, None]],
        "zmin": 0,
        "zmax": 1,
    }
    show(chart({**trace, "hovertemplate": "%{y} at %{x}: %{z:.0%}<extra></extra>"}))
    said = []
    for x, y in ((0.3, 0.3), (0.3, 0.8), (0.8, 0.8)):
        box = "document.querySelector('.plot svg > g[clip-path]').getBoundingClientRect()"
        left, top, width, height = tab.run(f"(b => [b.left, b.top, b.width, b.height])({box})")
        tab.point(left + x * width, top + y * height)
        said.append(tab.run("document.querySelector('.tip').textContent"))
    assert sorted(said) == ["gpu:0 at 15: 50%", "gpu:0 at 5: 0%", "gpu:1 at 5: 100%"]


def test_a_chart_is_as_wide_as_its_tab_when_that_is_chosen_and_as_paper(tab: Tab, show: Callable[..., None]) -> None:
    show(Tabs("Of", [PageTab("one", [bars(["a"])]), PageTab("two", [bars(["b"])])]))
    drawn = "[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.mark').length)"
    assert tab.run(drawn) == [1, 1]
    tab.call("Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False)
    tab.run("document.querySelectorAll('[role=tab]')[1].click()")
    tab.wait(
        "(plot => Number(plot.querySelector('svg').getAttribute('width')) === plot.clientWidth)"
        "(document.querySelectorAll('.plot')[1])"
    )
    tab.run("document.querySelectorAll('[role=tab]')[0].click()")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    widths = "[...document.querySelectorAll('.plot svg')].map(svg => svg.getAttribute('width'))"
    assert tab.run(widths)[:2] == ["680", "680"]
    tab.run("dispatchEvent(new Event('afterprint')), 0")


def test_labels_fit_on_a_phone_and_are_whole_when_asked(tab: Tab, show: Callable[..., None]) -> None:
    name = "flash_attention_forward_kernel_with_a_long_name_and_an_end"
    show(bars([name, "copy"]), width=390, mobile=True)
    label = "document.querySelectorAll('.axes text')[document.querySelectorAll('.axes text').length - 3]"
    texts = "[...document.querySelectorAll('.axes text')].filter(text => text.textContent.includes('…'))"
    shown = tab.run(f"{texts}.map(text => text.firstChild.textContent)")
    assert [text[:5] for text in shown] == ["flash"]
    assert shown[0].endswith("end"), label
    assert tab.run(f"{texts}[0].querySelector('title').textContent") == name
    left, right = tab.run(f"(b => [b.left, b.right])({texts}[0].getBoundingClientRect())")
    assert left >= 0
    assert right < 390 / 2
    assert hover(tab).startswith(name)


def test_a_list_of_long_names_to_choose_from_has_room_on_a_phone(tab: Tab, show: Callable[..., None]) -> None:
    names = [f"cutlass_gemm_{n}_with_a_name_that_is_wider_than_a_phone_is" for n in range(2)]
    buttons = [{"label": name, "method": "restyle", "args": [{"x": [[1, 2]]}]} for name in names]
    show(bars(["a", "b"], updatemenus=[{"buttons": buttons}]), width=390, mobile=True)
    assert tab.run("document.querySelector('.choose select').options.length") == 2
    assert tab.run("document.querySelector('.choose select').getBoundingClientRect().right") <= 390
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("kind", ["empty", "null", "one", "same", "huge", "negative"])
def test_numbers_that_are_few_or_far_out_draw_without_a_problem(tab: Tab, show: Callable[..., None], kind: str) -> None:
    few: dict[str, list[Any]] = {
        "empty": [],
        "null": [None, None],
        "one": [7],
        "same": [3, 3, 3],
        "huge": [1e-300, 1e300],
        "negative": [-5, 5, -2],
    }
    values = few[kind]
    places = [*range(len(values))]
    traces = [line(x=places, y=values), {"type": "bar", "x": places, "y": values}]
    show(*(chart(trace) for trace in traces), chart(line(x=places, y=values), yaxis={"type": "log"}), Words("end"))
    assert tab.run("document.querySelectorAll('.plot svg').length") == 3
    assert not tab.run("document.querySelector('main').innerHTML.includes('NaN')")
