"""The page of a ranking: every shape is on it, what has no figure says why, and it stays below 8 MB."""

import re
from typing import Any

import pytest
from tests.bench.ranking.ranked_runs import result, run_of
from tests.reports.page.test_document import Html

from inferometer.bench.ranking.ranking import Ranking, rank_runs
from inferometer.bench.ranking.score import score
from inferometer.bench.results import Run
from inferometer.reports.page.blocks import Block, Chart, Facts, Folds, Grid, Tabs, Words
from inferometer.reports.page.document import MOST_BYTES
from inferometer.reports.ranking.page import build_blocks, render_ranking, render_ranking_text

OLDER: dict[str, Any] = {"bound_ns": 2_000.0, "binding": "launch"}


def base_run() -> Run:
    return run_of(
        *(result("torch", i, 10_000) for i in range(3)),
        *(result("mine", i, 8_000, speedup=1.25) for i in range(2)),
        result("mine", 2, wrong="case 1: out: a row is 24 times off"),
        result("torch", 0, 4_000, operator="fused_qkv_rope", **OLDER),
        result("mine", 0, 3_000, operator="fused_qkv_rope", speedup=1.33, **OLDER),
    )


def blocks_of(ranking: Ranking) -> dict[str, Block]:
    return {block.name: block for block in build_blocks(ranking)}


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    return rank_runs([("a.json", base_run())])


def test_sections_stand_in_order(ranking: Ranking) -> None:
    assert [*blocks_of(ranking)] == ["facts", "remarks", "ranking", "operators", "shapes", "runs", "definitions"]
    two = rank_runs([("a.json", base_run()), ("b.json", base_run())])
    assert [*blocks_of(two)] == [
        *("facts", "remarks", "ranking", "operators", "differences", "shapes", "runs", "definitions")
    ]


def test_every_shape_of_every_candidate_is_on_the_page_with_why_s_is_missing(ranking: Ranking) -> None:
    page = render_ranking(ranking, title="<b>Mine</b>", command="inferometer leaderboard a.json")
    html = Html(page.html)
    assert page.left_out == ()
    assert "b" not in {tag for tag, _ in html.tags}
    folds = next(part for part in blocks_of(ranking)["shapes"].parts if isinstance(part, Folds))
    assert [(fold.title, fold.aside) for fold in folds.folds] == [
        ("fused_qkv_rope", "1 shape, all right"),
        ("rms_norm", "3 shapes, 1 result wrong"),
    ]
    grids = [part for fold in folds.folds for part in fold.parts if isinstance(part, Grid)]
    assert [grid.section.frame.height for grid in grids] == [2, 6]
    assert html.texts.count("no bound (older file)") == 2
    assert "case 1: out: a row is 24 times off" in html.texts
    ids = [attrs["id"] for _, attrs in html.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_chart_has_s_by_operator_with_its_interval(ranking: Ranking) -> None:
    (chart,) = (part for part in blocks_of(ranking)["ranking"].parts if isinstance(part, Chart))
    assert [trace["name"] for trace in chart.data] == ["torch", "mine"]  # in the order of the ranking
    for trace, s in zip(chart.data, (40, 50), strict=True):
        assert (trace["y"], trace["x"]) == (["rms_norm"], [s])
        assert trace["error_x"]["array"][0] == pytest.approx(s * (1 / 0.995 - 1), rel=1e-3)
    assert chart.alt == "1 operators; the highest is 50.0 % (rms_norm, mine), the lowest 40.0 % (rms_norm, torch)."


def test_without_bounds_the_chart_has_speedups() -> None:
    none: dict[str, Any] = {"bound_ns": None}
    found = rank_runs([("a.json", run_of(result("torch", 0, **none), result("mine", 0, 5_000, speedup=2.0, **none)))])
    (chart,) = (part for part in blocks_of(found)["ranking"].parts if isinstance(part, Chart))
    assert chart.layout["xaxis"]["title"]["text"].startswith("Speedup")
    assert [trace["x"] for trace in chart.data] == [[2], [1]]


def test_a_tab_a_device_and_functional_ones_say_so_without_a_chart() -> None:
    cpu = run_of(result("mine", 0, 9_999, bound_ns=None), device="Some CPU", functional_only=True)
    blocks = blocks_of(rank_runs([("a.json", base_run()), ("cpu.json", cpu)]))
    (tabs,) = (part for part in blocks["ranking"].parts if isinstance(part, Tabs))
    assert [tab.title for tab in tabs.tabs] == ["NVIDIA H200", "Some CPU (functional only)"]
    assert not any(isinstance(part, Chart) for part in tabs.tabs[1].parts)
    (warning,) = (part for part in tabs.tabs[1].parts if isinstance(part, Words))
    assert "there is no score" in warning.text


def test_differences_have_the_verdict_first_then_what_differs() -> None:
    slow = run_of(*(result("mine", i, 9_000) for i in range(2)), versions={"torch": "2.14.0"})
    block = blocks_of(rank_runs([("a.json", base_run()), ("b.json", slow)]))["differences"]
    assert isinstance(block.parts[0], Words)
    assert (block.parts[0].kind, block.parts[0].text[:33]) == ("verdict", "Of 2 shapes in both runs 2 slower")
    changes, levels, shapes = (part.section for part in block.parts if isinstance(part, Grid))
    assert levels.frame["operator"].to_list() == ["all", "rms_norm"]
    assert changes.frame.rows() == [("version of torch", "2.13.0", "2.14.0")]
    assert shapes.frame["verdict"].to_list() == ["slower", "slower"]


def test_every_figure_of_the_table_is_defined(ranking: Ranking) -> None:
    blocks = blocks_of(ranking)
    (facts,) = (part for part in blocks["definitions"].parts if isinstance(part, Facts))
    defined = " ".join(line[0] for line in facts.lines).lower()
    (grid,) = (part for part in blocks["ranking"].parts if isinstance(part, Grid))
    plain = {"rank", "candidate", "mark", "fast_1", "fast_1.5", "fast_2", "speedup 95 %"}
    for field in grid.section.fields:
        assert field.title.lower() in plain or field.title.lower() in defined, field.title
    assert "fast_p" in defined
    assert score.__doc__


def test_markdown_has_all_rows(ranking: Ranking) -> None:
    text = render_ranking_text(ranking, title="Mine", command="inferometer leaderboard a.json -o a.md")
    assert text.startswith("# Mine\n\n## The results\n")
    rows = re.findall(r"^\| .*$", text.split("## Shapes")[1].split("## Runs")[0], re.MULTILINE)
    assert len(rows) == 2 + 6 + 2  # and the heads
    assert text.count("no bound (older file)") == 2
    assert text.rstrip().endswith("Made with: inferometer leaderboard a.json -o a.md")


def test_thousands_of_operators_and_contenders_fit_into_8_mb() -> None:
    results = [result(f"candidate {i % 20}", i // 20, operator=f"operator {i % 400}") for i in range(6_000)]
    page = render_ranking(rank_runs([("a.json", run_of(*results))]), title="Many", command="")
    assert len(page.html.encode()) < MOST_BYTES
    assert "340 more operators are in the data alone" in page.html


def test_an_empty_run_has_a_page() -> None:
    Html(render_ranking(rank_runs([("a.json", run_of())]), title="None", command="").html)
