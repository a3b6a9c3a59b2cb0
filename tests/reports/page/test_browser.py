"""The page in a real browser: sorting, filtering, folding, hovering, themes, phones, paper, and no harm by names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.page_parts import ROWS, bars, grid, hover

import inferometer
from inferometer.reports.page.blocks import Block, Point, Points, Words
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

SAMPLES = Path(__file__).parents[3] / "samples"
EVIL = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "<b onmouseover=hacked=1>bold</b>&lt;i&gt;",
    "\x1b[31mred\x1b[0m",
    "\u202egnirts",
    "%{x} $x^2$ {{ 7*7 }}",
    "x" * 10_000,
]
NAMES = (
    "[...document.querySelectorAll('#kernels tbody tr.row')].filter(row => row.offsetParent)"
    ".map(row => row.cells[0].textContent.slice(0, 6))"
)


def test_a_table_sorts_by_exact_numbers_and_says_so(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    click = "document.querySelectorAll('#kernels thead button')[{}].click()"
    tab.run(click.format(1))
    assert tab.run(NAMES) == ["copy_b", "gemm_a", "gemm_c", "norm_d", "norm_e", "copy_f"]
    assert tab.run("document.querySelectorAll('thead th')[1].ariaSort") == "descending"
    tab.run(click.format(1))
    assert tab.run(NAMES)[0] == "copy_f"
    tab.run(click.format(4))
    assert tab.run(NAMES) == ["copy_b", "gemm_c", "gemm_a", "norm_d", "copy_f", "norm_e"]  # unknown numbers come last
    tab.run(click.format(4))
    assert tab.run(NAMES)[-2:] == ["copy_b", "norm_e"]
    assert tab.run("[...document.querySelectorAll('thead th')].map(h => h.ariaSort)")[1] == "none"
    tab.run(click.format(4))
    assert tab.run(NAMES) == [row[-1][:6] for row in ROWS]  # the third time, as it came


def test_a_keyboard_reaches_the_headings_and_sorts(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    tab.run("document.querySelector('#kernels .scroll').focus()")
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.textContent") == "Kernel"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.press("Enter", 13, "\r")
    assert tab.run(NAMES)[0] == "copy_b"
    assert tab.run("document.activeElement.closest('th').ariaSort") == "ascending"


def test_the_filter_keeps_what_has_all_words_and_adds_it_up(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    tab.run("document.querySelector('.tools input').focus()")
    tab.call("Input.insertText", text="GEMM _")
    assert tab.run(NAMES) == ["gemm_a", "gemm_c"]
    assert tab.run("document.querySelector('output').textContent") == "2 of 6 rows"
    sums = "[...document.querySelectorAll('tfoot tr > *')].map(c => c.textContent)"
    assert tab.run(sums) == ["Sum of these rows", "11.000 μs", "10", "70.0 %", "", ""]
    tab.run("(i => { i.value = ''; i.oninput(); })(document.querySelector('.tools input'))")
    assert len(tab.run(NAMES)) == 6
    whole = ["Sum of all rows", "3.513 ms", "1,531", "100.0 %", "", ""]
    assert tab.run(sums) == whole


def test_groups_fold_with_their_sums_and_open_for_what_is_found(tab: Tab, show: Callable[..., None]) -> None:
    show(grid(group="family"))
    groups = "[...document.querySelectorAll('tr.group')].map(r => [...r.cells].map(c => c.textContent))"
    assert [row[:5] for row in tab.run(groups)][1] == ["copy 2 rows", "3.500 ms", "1,501", "21.0 %", ""]
    toggle = "document.querySelector('tr.group .toggle')"
    assert tab.run(f"{toggle}.ariaExpanded") == "true"
    tab.run(f"{toggle}.click()")
    assert (tab.run(f"{toggle}.ariaExpanded"), tab.run(NAMES)[0]) == ("false", "copy_b")
    tab.run("document.querySelector('.fold').click()")
    assert tab.run(NAMES)[0] == "gemm_a"
    tab.run("document.querySelector('.fold').click()")
    assert tab.run(NAMES) == []
    tab.run("(i => { i.value = 'norm_e'; i.oninput(); })(document.querySelector('.tools input'))")
    assert tab.run(NAMES) == ["norm_e"]
    assert tab.run(
        "[...document.querySelectorAll('tr.group')].filter(r => r.offsetParent).map(r => r.cells[0].textContent)"
    ) == ["norm 1 of 2 rows"]
    tab.run("(i => { i.value = ''; i.oninput(); })(document.querySelector('.tools input'))")
    tab.run("document.querySelectorAll('thead button')[1].click()")
    assert [row[0] for row in tab.run(groups)] == ["copy 2 rows", "gemm 2 rows", "norm 2 rows"]
    tab.run("document.querySelector('.by').click()")
    assert tab.run(NAMES)[:2] == ["copy_b", "gemm_a"]


def test_a_long_name_unfolds_and_a_number_tells_itself_exactly(tab: Tab, show: Callable[..., None]) -> None:
    show(grid())
    assert tab.run("document.querySelector('.long code').checkVisibility({contentVisibilityAuto: true})") is False
    tab.run("document.querySelector('.long summary').click()")
    tab.wait("document.querySelector('.long code').checkVisibility({contentVisibilityAuto: true})")
    assert tab.run("document.querySelector('.long code').textContent") == ROWS[2][-1]
    assert tab.run("getComputedStyle(document.querySelector('.long code')).userSelect") == "all"
    box = tab.run(
        "(b => [b.left + 5, b.top + 5])(document.querySelectorAll('tr.row')[1].cells[1].getBoundingClientRect())"
    )
    tab.point(*box)
    assert tab.run("document.querySelectorAll('tr.row')[1].cells[1].title") == "3,500,000 ns"


def test_every_chart_is_drawn_at_once_and_tells_its_numbers(tab: Tab, show: Callable[..., None]) -> None:
    show(*(Words("far") for _ in range(200)), bars(["gemm", "copy"]), height=600)
    assert tab.run("document.querySelectorAll('.plot .mark').length") == 2  # in a picture of the whole page, too
    assert hover(tab) == "gemm: 3 ms"
    plot = "document.querySelector('.plot')"
    assert tab.run(f"{plot}.ariaLabel") == "Time: The first takes 3 ms."


def test_the_arrow_keys_go_from_number_to_number_of_a_chart(tab: Tab, show: Callable[..., None]) -> None:
    show(bars(["gemm", "copy"]))
    tab.run("document.querySelector('.plot').focus()")
    said = []
    for key, code in (("ArrowDown", 40), ("ArrowDown", 40), ("Home", 36)):
        tab.press(key, code)
        said.append(tab.run("document.querySelector('.plot .tip').textContent"))
    assert said == ["gemm: 3 ms", "copy: 4 ms", "gemm: 3 ms"]
    tab.press("Escape", 27)
    assert tab.run("document.querySelector('.plot .tip').hidden")


def test_a_menu_of_a_chart_is_a_list_that_the_keyboard_changes(tab: Tab, show: Callable[..., None]) -> None:
    buttons = [
        {"label": name, "method": "restyle", "args": [{"x": [[n]]}]} for name, n in (("<one>", 3), ("two & three", 40))
    ]
    show(bars(["gemm"], updatemenus=[{"buttons": buttons}]))
    tab.wait("document.querySelector('select') !== null")
    assert tab.run("[...document.querySelectorAll('option')].map(o => o.textContent)") == ["<one>", "two & three"]
    tab.run("document.querySelector('select').focus()")
    tab.press("ArrowDown", 40)
    assert hover(tab) == "gemm: 40 ms"
    tab.run("document.getElementById('theme').click()")
    assert hover(tab) == "gemm: 40 ms"


def test_the_theme_is_the_system_s_until_chosen_and_charts_follow(tab: Tab, show: Callable[..., None]) -> None:
    show(bars(["gemm"]))
    color = "getComputedStyle(document.querySelector('.plot .mark')).fill"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert (tab.run(color), tab.run(ground)) == ("rgb(200, 89, 10)", "rgb(255, 255, 255)")
    dark = ("rgb(255, 154, 82)", "rgb(20, 22, 26)")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.wait(f"{color} === '{dark[0]}'")
    assert (tab.run(color), tab.run(ground)) == dark
    tab.run("document.getElementById('theme').click()")
    assert (tab.run(color), tab.run(ground)) == ("rgb(200, 89, 10)", "rgb(255, 255, 255)")
    assert tab.run("document.getElementById('theme').textContent") == "Dark theme"


def test_a_page_opens_in_the_theme_that_it_was_made_in(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "dark.html"
    blocks = [Block("kernels", "Kernels", [bars(["gemm"])])]
    path.write_text(render_page(blocks, title="run", theme="dark").html, "utf-8")
    tab.open(path)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    ground = "getComputedStyle(document.body).backgroundColor"
    color = "getComputedStyle(document.querySelector('.plot .mark')).fill"
    assert (tab.run(color), tab.run(ground)) == ("rgb(255, 154, 82)", "rgb(20, 22, 26)")
    assert tab.run("document.getElementById('theme').textContent") == "Light theme"
    tab.run("document.getElementById('theme').click()")
    assert tab.run(ground) == "rgb(255, 255, 255)"


def test_paper_has_everything_unfolded_light_and_without_controls(tab: Tab, show: Callable[..., None]) -> None:
    points = Points([Point("Idle", "high", "bad", detail=["Half of it."])])
    show(points, *(Words("far") for _ in range(200)), grid(ROWS * 11, group="family"), bars(["gemm"]))
    tab.run("document.getElementById('theme').click(); document.querySelector('.fold').click()")
    tab.run("document.querySelector('.fold').click()")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    assert tab.run("document.querySelector('.plot .mark').closest('svg').getAttribute('width')") == "680"
    assert tab.run("document.querySelector('.points details').open")
    assert len(tab.run(NAMES)) == len(ROWS) * 11
    assert tab.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint')), 0")
    assert tab.run("document.documentElement.dataset.theme") == "dark"
    assert tab.run(NAMES) == []


def test_without_a_script_the_tables_and_the_words_are_there(tab: Tab, show: Callable[..., None]) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(grid(group="family"), bars(["gemm"]))
        text = tab.run("document.body.innerText")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert {"gemm_a", "3.500 ms", "The first takes 3 ms."} <= {
        part.strip() for part in text.replace("\t", "\n").split("\n")
    }


def test_names_of_a_hostile_file_do_nothing(tab: Tab, show: Callable[..., None]) -> None:
    rows = [(10, 1, 0.1, 1.0, name, name) for name in EVIL]
    show(Words(EVIL[0]), Points([Point(name, name) for name in EVIL]), bars(EVIL), grid(rows, group="family"))
    shown = [hover(tab, 0), hover(tab, 1), hover(tab, 2)]
    assert shown == [f"{name}: {3 + i} ms" for i, name in enumerate(EVIL[:3])]
    assert hover(tab, len(EVIL) - 1).startswith("x" * 900)
    assert tab.run("typeof hacked") == "undefined"
    assert tab.run("document.querySelectorAll('img, b, script[src]').length") == 0
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize(
    "names", [["decode.json.gz"], ["nsys.sqlite.gz"], ["webgpu.log.gz"], ["slow/normal", "slow/abnormal"]]
)
@pytest.mark.parametrize("width", [390, 1400])
def test_a_sample_shows_on_phone_and_desk_with_all_its_charts(
    tab: Tab, names: list[str], width: int, tmp_path: Path
) -> None:
    run, *others = (inferometer.open(str(SAMPLES / name)) for name in names)
    path = tmp_path / "page.html"
    path.write_text(
        render_page(build_blocks(PageData(run, others[0] if others else None)), title=names[0]).html, "utf-8"
    )
    tab.open(path, width=width, mobile=width < 500)
    assert tab.run("document.querySelector('nav details').open") is (width > 500)
    for n in range(tab.run("document.querySelectorAll('.plot').length")):
        plot = f"document.querySelectorAll('.plot')[{n}]"
        assert tab.run(f"{plot}.querySelector('.axes, .flame') !== null || !{plot}.checkVisibility()")
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    identifiers = tab.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(identifiers) == len(set(identifiers))
