"""The leaderboard's page in a real browser: sort, filter, unfold, tabs by mouse and keys, hover, paper, no script."""

from pathlib import Path
from typing import Any

import pytest
from tests.reports.page.browser import Tab, find_chromium

from inferometer.analyses.operators.leaderboard import make_leaderboard
from inferometer.hardware.known import require_device
from inferometer.operators import require_operator
from inferometer.reports.leaderboard.page import render_leaderboard

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

OPERATORS = (
    "unified_attention",
    "paged_attention_decode",
    "reshape_and_cache",
    "topk_filter",
    "fused_qkv_rope",
    "rms_norm",
)
NAMES = (
    "[...document.querySelectorAll('#catalogue tr.row')].filter(r => r.offsetParent).map(r => r.cells[0].textContent)"
)
PANELS = "[...document.querySelectorAll('#{} > .tabs > .panel')].map(panel => panel.checkVisibility())"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = sorted(map(require_operator, OPERATORS), key=lambda operator: -operator.catalogue().importance)
    board = make_leaderboard(chosen, [require_device("H100 SXM")], require_device)
    path = tmp_path_factory.mktemp("page") / "leaderboard.html"
    path.write_text(render_leaderboard(board, title="Operators", command="inferometer leaderboard").html, "utf-8")
    return path


def text(tab: Tab, selector: str) -> Any:
    return tab.run(f"document.querySelector({selector!r}).textContent.trim()")


def test_the_catalogue_sorts_by_ratio_share_and_name_and_filters(tab: Tab, page: Path) -> None:
    tab.open(page)
    assert tab.run(NAMES)[0] == "unified_attention"
    head = "[...document.querySelectorAll('#catalogue thead button')].find(b => b.textContent === '{}').click()"
    tab.run(head.format("Median S"))
    assert (tab.run(NAMES)[0], set(tab.run(NAMES)[-2:])) == ("rms_norm", {"topk_filter", "fused_qkv_rope"})
    tab.run(head.format("Operator"))
    assert tab.run(NAMES) == sorted(OPERATORS)
    tab.run("(i => { i.value = 'atten'; i.oninput(); })(document.querySelector('#catalogue input'))")
    assert tab.run(NAMES) == ["paged_attention_decode", "unified_attention"]
    ratios = "[...document.querySelectorAll('#hardware .panel:not([hidden]) .grid')][1]"
    tab.run(f"{ratios}.querySelectorAll('thead button')[3].click()")
    first = f"{ratios}.querySelector('tr.row')"
    assert tab.run(f"[{first}.cells[0].textContent, {first}.cells[3].textContent]") == ["unified_attention", "102.8"]


def test_an_operator_unfolds_to_its_shapes_with_bands_told_by_signs_and_words(tab: Tab, page: Path) -> None:
    tab.open(page)
    fold = "document.querySelector('#shapes .unfolds')"
    assert tab.run(f"{fold}.querySelector('table').checkVisibility({{contentVisibilityAuto: true}})") is False
    tab.run(f"{fold}.querySelector('summary').click()")
    tab.wait(f"{fold}.querySelector('table').checkVisibility({{contentVisibilityAuto: true}})")
    assert tab.run(f"{fold}.querySelector('tr.row').cells[2].textContent").startswith("◔ 0.")
    assert text(tab, "#shapes tr.row .band") == "◔ 0.0 % (below 12.5 %)"
    tab.run("document.querySelector('#shapes .unfold').click()")
    tab.wait("document.querySelector('#shapes .unfold').textContent === 'Fold all'")
    assert tab.run("document.querySelectorAll('#shapes .panel:not([hidden]) .unfolds[open]').length") == len(OPERATORS)
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_tabs_are_chosen_by_mouse_and_keys(tab: Tab, page: Path) -> None:
    tab.open(page)
    tabs = "document.querySelectorAll('#hardware [role=tab]')"
    assert tab.run(f"[...{tabs}].map(t => t.textContent)") == ["XPU-A", "H20", "H100 SXM"]
    assert tab.run(PANELS.format("hardware")) == [True, False, False]
    tab.run(f"{tabs}[1].click()")
    assert tab.run(PANELS.format("hardware")) == [False, True, False]
    tab.run(f"{tabs}[1].focus()")
    for key, code, chosen in (("ArrowRight", 39, 2), ("ArrowRight", 39, 0), ("ArrowLeft", 37, 2), ("Home", 36, 0)):
        tab.press(key, code)
        assert tab.run(f"[...{tabs}].findIndex(t => t === document.activeElement)") == chosen
        assert tab.run(PANELS.format("hardware")).index(True) == chosen
    assert tab.run(f"[...{tabs}].map(t => [t.ariaSelected, t.tabIndex])") == [["true", 0], ["false", -1], ["false", -1]]
    panel = "document.getElementById(document.querySelector('#hardware [role=tab]').getAttribute('aria-controls'))"
    assert tab.run(f"[{panel}.role, document.getElementById({panel}.getAttribute('aria-labelledby')).textContent]") == [
        *("tabpanel", "XPU-A")
    ]


def test_a_point_tells_its_shape_and_a_list_sets_one_operator_apart(tab: Tab, page: Path) -> None:
    tab.open(page)
    plot = "document.querySelector('#roofline .panel:not([hidden]) .plot')"
    tab.run(f"{plot}.scrollIntoView({{behavior: 'instant', block: 'center'}})")
    tab.wait(f"{plot}.querySelectorAll('path.mark').length > 0")
    box = tab.run(
        f"(points => {{ const b = points[points.length - 1].getBoundingClientRect();"
        f" return [b.left + b.width / 2, b.top + b.height / 2]; }})({plot}.querySelectorAll('path.mark'))"
    )
    tab.point(1, 1)
    tab.point(box[0] - 1, box[1])
    tab.point(*box)
    tab.wait(f"!{plot}.querySelector('.tip').hidden")
    said = tab.run(f"{plot}.querySelector('.tip').textContent")
    assert "#" in said
    assert "S " in said
    assert "FLOP/B" in said
    select = "document.querySelector('#roofline select')"
    assert tab.run(f"[...{select}.options].map(o => o.textContent)")[0] == "All operators"
    tab.run(f"{select}.value = 'rms_norm'; {select}.onchange()")
    faint = f"{plot}.querySelectorAll('.mark[opacity=\"0.06\"]').length"
    assert 0 < tab.run(faint) < tab.run(f"{plot}.querySelectorAll('path.mark').length")
    tab.run(f"{select}.selectedIndex = 0; {select}.onchange()")
    assert tab.run(faint) == 0


def test_a_chart_in_a_tab_is_as_wide_as_its_place_also_after_a_change_of_theme(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.run("document.getElementById('roofline').scrollIntoView({behavior: 'instant'})")
    for position in (2, 0):
        tab.run(f"document.querySelectorAll('#roofline [role=tab]')[{position}].click()")
        plot = f"document.querySelectorAll('#roofline .plot')[{position}]"
        tab.wait(f"{plot}.querySelector('svg') !== null")
        width = f"Math.abs({plot}.querySelector('svg').getBoundingClientRect().width - {plot}.clientWidth)"
        tab.wait(f"{width} < 2")
        tab.run("document.getElementById('theme').click()")
        tab.wait(f"{width} < 2")


def test_paper_has_every_tab_and_fold_and_then_all_is_as_before(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    for name in ("hardware", "shapes", "roofline"):
        assert tab.run(PANELS.format(name)) == [True, True, True]
    assert tab.run("document.querySelectorAll('.unfolds:not([open])').length") == 0
    assert tab.run("getComputedStyle(document.querySelector('.tab-list')).display") == "none"
    assert tab.run("[...document.querySelectorAll('#hardware .tab-title')].every(title => title.checkVisibility())")
    assert tab.run("document.querySelectorAll('#roofline .plot .canvas svg').length") == 3
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint')), 0")
    assert tab.run(PANELS.format("roofline")) == [True, False, False]
    assert tab.run("document.querySelectorAll('.unfolds[open]').length") == 0
    for position in range(3):
        tab.run(f"document.querySelectorAll('#roofline [role=tab]')[{position}].click()")
        plot = f"document.querySelectorAll('#roofline .plot')[{position}]"
        width = f"{plot}.querySelector('svg').getBoundingClientRect().width"
        tab.wait(f"Math.abs({width} - {plot}.clientWidth) < 2")


def test_without_a_script_every_platform_is_there(tab: Tab, page: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page)
        assert tab.run(PANELS.format("hardware")) == [True, True, True]
        assert tab.run("document.querySelector('#hardware .tab-title').checkVisibility()")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_phone_scrolls_one_way_only(tab: Tab, page: Path) -> None:
    tab.open(page, width=390, height=844, mobile=True)
    tab.run("document.querySelector('#shapes .unfold').click()")
    tab.wait("document.querySelector('#shapes .unfold').textContent === 'Fold all'")
    for position in range(3):
        tab.run(f"document.querySelectorAll('.tab-list').forEach(list => list.children[{position}].click())")
        assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
