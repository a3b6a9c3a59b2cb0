"""The page of real runs for everybody: axe finds nothing grave, light, dark and on a phone; paper has all of it."""

import base64
import re
from pathlib import Path

import pytest
from tests.reports.page.accessibility import grave_violations
from tests.reports.page.browser import Tab, find_chromium

import inferometer
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    trace = inferometer.open(SAMPLES / "decode.json.gz")
    path.write_text(render_page(build_blocks(PageData(trace)), title="decode").html, "utf-8")
    return path


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(tab: Tab, page: Path, width: int, scheme: str) -> None:
    tab.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.open(page, width=width, mobile=width < 500)
    assert grave_violations(tab) == []
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_axe_finds_nothing_grave_in_two_runs(tab: Tab, tmp_path: Path) -> None:
    base, candidate = (inferometer.open(SAMPLES / "slow" / name) for name in ("normal", "abnormal"))
    path = tmp_path / "page.html"
    path.write_text(render_page(build_blocks(PageData(base, candidate)), title="slow").html, "utf-8")
    tab.open(path)
    assert grave_violations(tab) == []


def test_the_answer_is_on_the_first_screen(tab: Tab, page: Path) -> None:
    """Four numbers, the bar and the first finding, open, without scrolling."""
    tab.open(page, width=1400, height=900)
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    assert tab.run("document.querySelectorAll('.numbers .value').length") == 4
    assert tab.run(bottom.format(".stack-bar")) < 900
    assert tab.run(bottom.format("#findings .points details[open] summary")) < 900
    assert tab.run("document.querySelectorAll('#findings .points details[open]').length") == 1
    order = tab.run("[...document.querySelectorAll('main section')].map(section => section.id)")
    assert order[:4] == ["facts", "overview", "findings", "timeline"]


def test_a_number_and_a_slice_of_the_bar_lead_to_what_they_are_made_of(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.run("document.querySelector('.stack a[href^=\"#kernels?filter=\"]').click()")
    tab.wait("document.querySelector('#kernels .tools input[placeholder=Filter]').value !== ''")
    found = tab.run("document.querySelector('#kernels .grid output').textContent")
    assert re.match(r"\d+ of \d+ rows", found)
    first = "document.querySelector('#kernels .grid').getBoundingClientRect().top"
    tab.wait(f"{first} > -50 && {first} < innerHeight")


def test_the_keyboard_alone_reaches_charts_tables_and_flame_graphs(tab: Tab, page: Path) -> None:
    tab.open(page)
    reached = set()
    for _ in range(400):
        tab.press("Tab", 9)
        kind = "e.closest('.flame') ? 'flame' : e.classList[0] || e.type || e.tagName"
        reached.add(tab.run(f"(e => {kind})(document.activeElement)"))
        if {"flame", "plot", "scroll", "csv", "search"} <= reached:
            break
    assert {"flame", "plot", "scroll", "csv", "search"} <= reached


def test_paper_shows_every_chart_and_every_row(tab: Tab, page: Path, tmp_path: Path) -> None:
    tab.open(page)
    pdf = base64.b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    drawn = "plot.querySelector('.axes, .flame .box:not([hidden])')"
    blank = f"[...document.querySelectorAll('.plot')].filter(plot => !{drawn})"
    assert tab.run(f"{blank}.length") == 0
    assert tab.run("[...document.querySelectorAll('details.unfolds')].every(fold => fold.open)")
    hidden = "[...document.querySelectorAll('.grid thead th')].filter(head => head.hidden).length"
    assert tab.run(hidden) == 0
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint')), 0")
