"""The ranking's page in a real browser: the table sorts, tabs choose a device, an operator unfolds, nothing is wide."""

from pathlib import Path

import pytest
from tests.bench.ranking.ranked_runs import result, run_of
from tests.reports.page.browser import Tab, find_chromium

from inferometer.bench.ranking.ranking import rank_runs
from inferometer.reports.ranking.page import render_ranking

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")

NAMES = "[...document.querySelectorAll('#ranking tr.row')].filter(r => r.offsetParent).map(r => r.cells[0].textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = run_of(
        *(result("torch", i, 10_000) for i in range(3)),
        *(result("mine<b>", i, 8_000, speedup=1.25) for i in range(3)),
        result("torch", 0, 4_000, operator="fused_qkv_rope", bound_ns=2_000.0, binding="launch"),
        result("mine<b>", 0, 3_000, operator="fused_qkv_rope", bound_ns=2_000.0, binding="launch", speedup=1.33),
    )
    cpu = run_of(result("mine<b>"), device="Some CPU", functional_only=True)
    path = tmp_path_factory.mktemp("page") / "ranking.html"
    ranking = rank_runs([("a.json", run), ("cpu.json", cpu)])
    path.write_text(render_ranking(ranking, title="Kernels", command="inferometer leaderboard").html, "utf-8")
    return path


def test_the_order_is_the_rank_until_a_heading_is_clicked(tab: Tab, page: Path) -> None:
    tab.open(page)
    assert tab.run(NAMES) == ["mine<b>", "torch"]
    tab.run("[...document.querySelectorAll('#ranking thead button')].find(b => b.textContent === 'Speedup').click()")
    tab.run("[...document.querySelectorAll('#ranking thead button')].find(b => b.textContent === 'Speedup').click()")
    assert tab.run(NAMES) == ["torch", "mine<b>"]
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_tab_shows_the_other_device_and_an_operator_unfolds(tab: Tab, page: Path) -> None:
    tab.open(page)
    tabs = "document.querySelectorAll('#ranking [role=tab]')"
    assert tab.run(f"[...{tabs}].map(t => t.textContent)") == ["NVIDIA H200", "Some CPU (functional only)"]
    tab.run(f"{tabs}[1].click()")
    assert tab.run(NAMES) == ["mine<b>"]
    fold = "document.querySelector('#shapes .unfolds')"
    tab.run(f"{fold}.querySelector('summary').click()")
    tab.wait(f"{fold}.querySelector('table').checkVisibility({{contentVisibilityAuto: true}})")
    assert "no bound (older file)" in tab.run(f"{fold}.querySelector('tr.row').textContent")


def test_the_chart_draws_a_bar_for_each_candidate_and_operator_with_an_s(tab: Tab, page: Path) -> None:
    tab.open(page)
    plot = "document.querySelector('#ranking .panel:not([hidden]) .plot')"
    tab.run(f"{plot}.scrollIntoView({{behavior: 'instant', block: 'center'}})")
    tab.wait(f"{plot}.querySelectorAll('rect.mark').length === 2")
