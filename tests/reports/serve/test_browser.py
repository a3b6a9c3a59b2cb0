"""The app in a real browser: list, compare, report, time line, SQL, upload, recording; keyboard, dark, phone."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.digests import fleet_of
from tests.fleet.digests import kernel as of_kernel
from tests.kineto_files import kernel, write_file
from tests.reports.page.accessibility import grave_violations
from tests.reports.page.browser import Tab, chromium, find_chromium
from tests.reports.serve.served import Served, serving

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium on PATH")

EVIL = "<img src=x onerror=hacked()>.json"
KERNELS = 30_000
RECORDER = """
import sys, time
from pathlib import Path
from inferometer.record.journal.journal import Journal

with Journal(Path(sys.argv[1]), flush_s=0.2) as journal:
    for step in range(10_000):
        if Path(sys.argv[2]).exists():
            break
        at = {"start_ns": [journal.clock.now()], "dur_ns": [5_000_000 + step]}
        journal.add("steps", 1, {"step": [step], "phase": "decode", "source": "recorded", **at})
        sample = {"metric": ["power"], "device": "gpu:0", "time_ns": at["start_ns"], "value": [300.0], "unit": "W"}
        journal.add("counters", 1, sample)
        time.sleep(0.05)
"""


def fleet_trace(n: int) -> dict[str, Any]:
    """Of two models, with a kernel."""
    about = {"model": "ab"[n % 2], "gpu": "H100", "held_ns": 1_000, "busy_ns": 100 * n}
    return {"about": about, "kernels": [of_kernel("gemm", 10 + n), of_kernel("<b>norm</b>", 1)]}


def launches(ns: int, count: int = 60, name: str = "gemm") -> bytes:
    return write_file([kernel(f"{name}_{i % 3}", str(100 + 50 * i), str(ns), correlation=i) for i in range(count)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "deep").mkdir()
    (folder / "base.json").write_bytes(launches(10))
    (folder / "slow.json").write_bytes(launches(30))
    (folder / "deep" / EVIL).write_bytes(launches(3, name="<b>norm</b>"))
    (folder / "linked").symlink_to(folder / "deep")
    events = [kernel(f"k{i % 7}", str(10 * i), "0.5", correlation=i) for i in range(KERNELS)]
    fleet_of(folder / "all.ifm", {f"t{n}": fleet_trace(n) for n in range(6)})
    (folder / "long.json").write_bytes(write_file(events))
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    keep = tmp_path_factory.mktemp("keep")
    with serving(folder, "--keep", keep, cache=tmp_path_factory.mktemp("cache")) as server:
        server.until(lambda runs: all(run["about"] for run in runs.values()))
        yield server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    """At the end of each test, the console has said nothing."""
    yield browser
    assert browser.problems == []
    browser.call("Emulation.setEmulatedMedia", features=[])


def visit(tab: Tab, server: Served, where: str = "", *, width: int = 1400, mobile: bool = False) -> None:
    """The app from anew, at a place in it."""
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=mobile)
    tab.call("Page.navigate", url="about:blank")
    tab.problems.clear()
    tab.requests.clear()
    tab.call("Page.navigate", url=f"{server.url}#/{where}")
    tab.wait("document.readyState === 'complete' && document.querySelector('#view h1, #view [role=alert]') !== null")


NAMES = "[...document.querySelectorAll('.runs tbody th a')].map(a => a.textContent)"
VIEWER = "document.querySelector('.time-line').viewer"


def write(tab: Tab, selector: str, text: str) -> None:
    tab.run(f"(i => {{ i.focus(); i.select(); }})(document.querySelector({json.dumps(selector)}))")
    tab.call("Input.insertText", text=text)


def drop(tab: Tab, name: str, text: str) -> None:
    """A file with this text onto the page."""
    tab.run(
        f"(() => {{ const data = new DataTransfer(); "
        f"data.items.add(new File([{json.dumps(text)}], {json.dumps(name)})); "
        "for (const kind of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent("
        "new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true})); })()"
    )


def test_the_list_is_searched_sorted_and_filtered_by_tags(tab: Tab, server: Served) -> None:
    visit(tab, server)
    assert set(tab.run(NAMES)) >= {"base.json", "slow.json", "long.json", EVIL}
    assert "A link to a folder, or out of the folders" in tab.run("document.querySelector('.note').textContent")

    write(tab, "#search", "SLO json")
    assert tab.run(NAMES) == ["slow.json"]
    assert tab.run("document.querySelector('output').textContent").startswith("1 of ")
    write(tab, "#search", "tag:kineto base")
    assert tab.run(NAMES) == ["base.json"]
    write(tab, "#search", "nothing has this")
    assert "No run has all these words." in tab.run("document.querySelector('.note').textContent")
    tab.run("(i => { i.value = ''; i.dispatchEvent(new Event('input')); })(document.getElementById('search'))")
    tab.run("document.querySelector('[data-sort=length] button').click()")
    assert tab.run(NAMES)[0] == "long.json"
    assert tab.run("document.querySelector('[data-sort=length]').ariaSort") == "descending"
    tab.run("document.querySelector('[data-sort=length] button').click()")
    assert tab.run(NAMES)[-1] == "long.json"


def test_two_ticks_compare(tab: Tab, server: Served) -> None:
    visit(tab, server)
    assert tab.run("document.getElementById('compare').disabled")
    for name in ("slow.json", "base.json"):
        tab.run(f"document.querySelector('input[aria-label=\"Tick {name}\"]').click()")
    assert not tab.run("document.getElementById('compare').disabled")
    tab.run("document.getElementById('compare').click()")
    tab.wait("location.hash.startsWith('#/compare/') && document.querySelector('iframe') !== null")
    ids = {server.id_of("base.json"), server.id_of("slow.json")}
    assert set(tab.run("location.hash").split("/")[2:]) == ids
    assert "compared with" in tab.run("document.querySelector('h1').textContent")
    tab.run("history.back()")
    tab.wait("document.querySelector('.runs') !== null")
    assert tab.run("document.querySelectorAll('.runs input:checked').length") == 2


def test_the_others_are_judged_against_a_base(tab: Tab, server: Served) -> None:
    visit(tab, server)
    tab.run("document.querySelector('[aria-label=\"Judge the others against base.json\"]').click()")
    row = "[...document.querySelectorAll('.runs tbody tr')].find(r => r.textContent.includes('slow.json'))"
    tab.wait(f"{row}.querySelector('.outcome') !== null")
    found = server.job("verdict", base=server.id_of("base.json"), candidate=server.id_of("slow.json"))["result"]
    assert tab.run(f"{row}.querySelector('.outcome').title") == found["headline"]
    assert tab.run(f"{row}.querySelector('.outcome').textContent").startswith(found["outcome"])


def test_a_report_is_framed_without_an_origin(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('base.json')}")
    tab.wait("document.querySelector('iframe') !== null")
    frame = "document.querySelector('iframe')"
    assert tab.run(f"{frame}.sandbox.value") == "allow-scripts allow-downloads"
    assert tab.run(f"{frame}.contentDocument") is None
    address = tab.run(f"{frame}.src")
    assert server.token not in address

    tab.call("Page.navigate", url=address)
    tab.wait("document.readyState === 'complete' && document.querySelector('#kernels') !== null")
    assert tab.run("origin") == "null"
    assert "gemm_0" in tab.run("document.getElementById('kernels').textContent")


def test_a_fleet_has_its_page_with_filters_and_its_tables(tab: Tab, server: Served) -> None:
    visit(tab, server)
    row = "[...document.querySelectorAll('.runs tbody tr')].find(r => r.textContent.includes('all.ifm'))"
    assert tab.run(f"{row}.querySelector('.mark').textContent") == "fleet of 6"
    assert tab.run(f"{row}.querySelector('input[type=checkbox]')") is None

    fleet = server.id_of("all.ifm")
    visit(tab, server, f"run/{fleet}")
    tab.wait("document.querySelector('iframe') !== null")
    assert tab.run("[...document.querySelectorAll('.views a')].map(a => a.textContent)") == ["Report", "SQL", "About"]
    address = tab.run("document.querySelector('iframe').src")

    visit(tab, server, f"run/{fleet}/sql")
    tab.wait("document.querySelectorAll('.names summary').length > 5")
    tab.run("document.getElementById('go').click()")
    tab.wait("document.querySelector('.answer table') !== null")
    cells = "[...document.querySelectorAll('.answer tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert sorted(tab.run(cells)) == [["a", "H100", "3", "0"], ["b", "H100", "3", "0"]]

    tab.call("Page.navigate", url=address)
    tab.wait("document.readyState === 'complete' && document.querySelector('.filters select') !== null")
    assert tab.run("origin") == "null"
    tab.run("(s => { s.value = '0'; s.onchange(); })(document.querySelector('.filters select'))")
    shown = "document.querySelector('.filtered[data-name=kernels] .grid:not([hidden] *)')"
    assert tab.run(f"[...{shown}.querySelectorAll('tr.row [data-value]')].map(c => c.dataset.value)")[1] == "36"


def test_a_fleet_that_comes_is_listed(tab: Tab, server: Served, folder: Path) -> None:
    visit(tab, server)
    fleet_of(folder / "deep" / "new.ifm", {"t": fleet_trace(1)})
    tab.wait(f"{NAMES}.includes('new.ifm')")
    run = server.until(lambda runs: runs["deep/new.ifm"]["about"] and runs["deep/new.ifm"])
    assert (run["kind"], run["about"]["traces"]) == ("fleet", 1)
    status, answer = server.send("api/jobs", {"kind": "line", "run": run["id"]})
    assert (status, answer["error"]) == (422, "new.ifm: of a fleet, expected about, page, query, found line")


def test_axe_finds_nothing_grave_in_the_app(tab: Tab, server: Served) -> None:
    base, slow, fleet = (server.id_of(name) for name in ("base.json", "slow.json", "all.ifm"))
    for where in ("", f"run/{base}", f"run/{base}/line", f"run/{base}/sql", f"compare/{base}/{slow}", f"run/{fleet}"):
        visit(tab, server, where)
        tab.wait("document.querySelector('.waiting') === null")
        assert grave_violations(tab) == [], where


def test_names_with_markup_are_text_everywhere(tab: Tab, server: Served) -> None:
    run = server.id_of(f"deep/{EVIL}")
    for view in ("report", "sql", "about", "line"):
        visit(tab, server, f"run/{run}/{view}")
        assert tab.run("document.querySelector('h1').textContent") == EVIL
        tab.wait("document.querySelector('.waiting') === null")
    visit(tab, server)
    assert EVIL in tab.run(NAMES)
    assert tab.run("typeof hacked") == "undefined"
    assert tab.run("document.querySelectorAll('#view img').length") == 0


def test_a_zoom_fetches_the_single_launches_of_its_window(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('long.json')}/line")
    tab.wait(f"document.querySelector('.time-line') !== null && {VIEWER} !== undefined && {VIEWER}.drawn > 0")
    stream = f"{VIEWER}.source.about.lanes.find(lane => lane.kind === 'stream')"
    assert tab.run(f"{stream}.level") > 0
    before = tab.run(f"{VIEWER}.source.calls.length")

    tab.run(f"{VIEWER}.view.show(100_000_000, 100_400_000), {VIEWER}.redraw()")
    answer = f"{VIEWER}.answers.find(each => each.row === {stream}.firstRow)"
    tab.wait(f"{answer} && {answer}.level === 0 && {answer}.to > {answer}.from")

    shown = tab.run(
        f"(a => [...a.single.subarray(a.from, a.to)].map(e => [a.line.start[e], a.line.dur[e], "
        f"{VIEWER}.source.about.names[a.line.name[e]]]))({answer})"
    )
    assert shown == [[10_000 * i, 500, f"k{i % 7}"] for i in range(10_000, 10_040)]
    assert tab.run(f"{VIEWER}.source.calls.length") > before
    asked = [request for request in tab.requests if "/rows?" in request]
    assert asked
    assert all(request.startswith(server.url) for request in tab.requests)

    tab.run(f"{VIEWER}.choose({answer}.single[{answer}.from])")
    assert "500 ns" in tab.run("document.querySelector('.tl-about').textContent")
    assert "k4" in tab.run("document.querySelector('.tl-about').textContent")


def test_a_selection_is_added_up_to_the_ns(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('long.json')}/line")
    tab.wait(f"document.querySelector('.time-line') !== null && {VIEWER} !== undefined && {VIEWER}.drawn > 0")
    tab.run(f"{VIEWER}.select(100_000_200, 100_400_000)")
    tab.wait("document.querySelector('.tl-sums tbody td') !== null")
    rows = "[...document.querySelectorAll('.tl-sums tbody tr')].map(r => [...r.cells].slice(2).map(c => c.textContent))"
    times = "[...document.querySelectorAll('.tl-sums tbody td:last-child')].map(c => Number(c.dataset.ns))"
    assert [row[0] for row in tab.run(rows)] == ["39"]
    assert sum(tab.run(times)) == 300 + 39 * 500


def test_a_search_goes_to_launches_that_are_merged_in_sight(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('long.json')}/line")
    tab.wait(f"document.querySelector('.time-line') !== null && {VIEWER} !== undefined && {VIEWER}.drawn > 0")
    write(tab, ".tl-tools input", "k3")
    count = len([i for i in range(KERNELS) if i % 7 == 3])
    tab.wait(f"document.querySelector('.tl-tools output').textContent === '{count:,} found'")
    for at in (3, 10, 17):
        tab.press("Enter", 13, "\r")
        tab.wait(f"{VIEWER}.chosen !== null && {VIEWER}.source.line.start[{VIEWER}.chosen] === {10_000 * at}")
    assert "500 ns" in tab.run("document.querySelector('.tl-about').textContent")


def test_panning_stays_in_what_is_here(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('long.json')}/line")
    tab.wait(f"document.querySelector('.time-line') !== null && {VIEWER} !== undefined && {VIEWER}.drawn > 0")
    for i in range(30):
        tab.run(f"{VIEWER}.view.show({200_000_000 + 10_000 * i}, {200_400_000 + 10_000 * i}), {VIEWER}.redraw()")
        time.sleep(0.02)
    tab.wait(f"{VIEWER}.answers.some(each => each.level === 0 && each.to > each.from)")
    assert len([request for request in tab.requests if "/rows?" in request]) <= 4


def test_a_question_is_answered_and_a_wrong_one_explained(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('base.json')}/sql")
    tab.wait("document.querySelectorAll('.names summary').length > 10")
    write(tab, "#query", "select kernel, sum(dur_ns) as ns from launches group by kernel order by kernel")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, modifiers=2)
    tab.wait("document.querySelector('.answer table') !== null")
    cells = "[...document.querySelectorAll('.answer tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    assert tab.run(cells) == [["gemm_0", "200,000"], ["gemm_1", "200,000"], ["gemm_2", "200,000"]]

    write(tab, "#query", "select kernell from launches")
    tab.run("document.getElementById('go').click()")
    tab.wait("document.querySelector('.answer [role=alert]') !== null")
    assert 'unknown column "kernell"' in tab.run("document.querySelector('.answer').textContent")


def test_work_is_cancelled_by_its_button(tab: Tab, server: Served) -> None:
    visit(tab, server, f"run/{server.id_of('base.json')}/sql")
    tables = ", ".join(f"launches l{i}" for i in range(9))
    write(tab, "#query", f"select count(*) from {tables}")
    tab.run("document.getElementById('go').click()")
    tab.wait("document.querySelector('#jobs .job') !== null")
    tab.run("document.querySelector('#jobs .job button').click()")
    tab.wait("document.querySelector('.answer [role=alert]') !== null")
    assert "It was cancelled." in tab.run("document.querySelector('.answer').textContent")
    tab.wait("document.querySelector('#jobs .job') === null")


def test_a_dropped_file_is_kept_and_opened(tab: Tab, server: Served) -> None:
    visit(tab, server)
    text = launches(7, count=5).decode()
    drop(tab, "dropped <b>.json", text)
    tab.wait("location.hash.startsWith('#/run/') && document.querySelector('iframe') !== null")
    assert tab.run("document.querySelector('h1').textContent") == "dropped _b_.json"
    assert tab.run("document.getElementById('drop').hidden")


def test_a_dropped_file_of_no_format_is_refused_in_words(tab: Tab, server: Served) -> None:
    visit(tab, server)
    drop(tab, "photo.png", "x")
    tab.wait("document.querySelector('#jobs [role=alert]') !== null")
    assert "photo.png: expected a name in " in tab.run("document.querySelector('#jobs').textContent")
    tab.problems[:] = [each for each in tab.problems if "422" not in each]  # the browser's own line of a refusal


def test_a_recording_is_seen_as_it_grows(tab: Tab, server: Served, folder: Path, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    recorder = subprocess.Popen([sys.executable, "-c", RECORDER, str(folder / "now.ifm"), str(stop)])
    try:
        run = server.until(lambda runs: runs.get("now.ifm", {}).get("is_recording") and runs["now.ifm"])
        visit(tab, server, f"live/{run['id']}")
        steps = "Number([...document.querySelectorAll('.big div')].find(d => d.textContent.startsWith('Steps'))"
        steps += ".querySelector('dd').textContent.replaceAll(',', ''))"
        tab.wait("document.querySelector('.live-chart path') !== null")
        seen = tab.run(steps)
        tab.wait(f"{steps} > {seen}")
        assert tab.run("document.querySelector('.steps b').textContent").startswith("5.0")
        assert tab.run("document.querySelector('.charts figcaption').textContent") == "power gpu:0300 W"
        stop.touch()
        tab.wait("document.querySelector('.mark.live').textContent === 'finished'")
    finally:
        stop.touch()
        recorder.wait()
    server.until(lambda runs: runs["now.ifm"]["about"] and not runs["now.ifm"]["is_recording"])


def test_a_list_that_changes_keeps_the_place_of_the_keyboard(tab: Tab, server: Served, folder: Path) -> None:
    visit(tab, server)
    tab.run("document.querySelector('input[aria-label=\"Tick base.json\"]').focus()")
    (folder / "new.json").write_bytes(launches(1, count=2))
    tab.wait(f"{NAMES}.includes('new.json')")
    assert tab.run("document.activeElement.ariaLabel") == "Tick base.json"
    (folder / "new.json").unlink()
    tab.wait(f"!{NAMES}.includes('new.json')")


def test_all_goes_by_keyboard(tab: Tab, server: Served) -> None:
    visit(tab, server)
    tab.press("/", 191, "/")
    assert tab.run("document.activeElement.id") == "search"
    tab.call("Input.insertText", text="base.json")
    for _ in range(30):
        tab.press("Tab", 9)
        if tab.run("document.activeElement.textContent === 'base.json'"):
            break
    tab.press("Enter", 13, "\r")
    tab.wait("location.hash.startsWith('#/run/') && document.activeElement.id === 'view'")
    assert tab.run("[...document.querySelectorAll('button, input, select, textarea, iframe')].every(e => "
                   "e.textContent.trim() || e.ariaLabel || e.title || e.hidden || e.labels?.length)")  # fmt: skip


def test_the_theme_is_the_system_s_until_chosen(tab: Tab, server: Served) -> None:
    visit(tab, server)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.run(ground) == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.wait(f"{ground} === 'rgb(20, 22, 26)'")
    tab.run("document.getElementById('theme').click()")
    tab.wait(f"{ground} === 'rgb(255, 255, 255)'")


@pytest.mark.parametrize("view", ["", "report", "line", "sql", "about"])
def test_a_phone_has_all_without_scrolling_sideways(tab: Tab, server: Served, view: str) -> None:
    where = f"run/{server.id_of('base.json')}/{view}" if view else ""
    visit(tab, server, where, width=390, mobile=True)
    tab.wait("document.querySelector('.waiting') === null")
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_server_that_ends_is_noticed(tab: Tab, folder: Path, tmp_path: Path) -> None:
    with serving(folder / "base.json", cache=tmp_path) as server:
        visit(tab, server)
    tab.wait("document.body.classList.contains('alone')")
    tab.problems.clear()  # the browser's own lines of a refused connection


def test_a_wrong_address_has_nothing_of_the_app(tab: Tab, server: Served) -> None:
    tab.call("Page.navigate", url=server.url.replace(server.token, "x" * 24))
    tab.wait("document.readyState === 'complete'")
    assert tab.run("document.querySelector('#view')") is None
    tab.problems.clear()  # the browser's own line of a 404
