"""An A/B's page: the verdict in a sentence, icicles of all arms on one scale, every layer, nothing from names run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analyses.ab.runs import Call, measured, op
from tests.reports.page.browser import chromium, find_chromium

from inferometer.analyses.ab.comparison import PathComparison, compare_paths
from inferometer.reports.page.blocks import Chart, find_charts
from inferometer.reports.page.figures import figure_json
from inferometer.reports.path_ab import _blocks, render_page_of, render_text_of

NAME = "mlp<img src=x onerror=alert(1)>"


def completion(mlp_ns: int, *, noise: int = 0) -> Call:
    layers = [Call(f"layers.{i}", 1_000, [op("attention", 50_000 + noise), op(NAME, mlp_ns + noise)]) for i in range(2)]
    return Call("completion", 1_000, [Call("forward", 2_000, layers)])


@pytest.fixture
def found() -> PathComparison:
    draw = np.random.default_rng(3)
    arms = {
        "torch": [completion(100_000, noise=int(draw.integers(500))) for _ in range(8)],
        "triton": [completion(160_000, noise=int(draw.integers(500))) for _ in range(8)],
    }
    return compare_paths(measured(arms, facts={"model": "tiny", "device": "cpu"}))


def page(found: PathComparison) -> str:
    apart = compare_paths(found.measured, pool_layers=False)
    return render_page_of(found, apart, command="inferometer ab tiny -o ab.html").html


def icicles(found: PathComparison) -> dict[str, Any]:
    charts = [chart for block in _blocks(found, None) for chart in find_charts(block.parts)]
    (chart,) = charts
    assert isinstance(chart, Chart)
    figure: dict[str, Any] = json.loads(figure_json(chart))
    return figure


def test_the_verdict_names_the_ratio_and_the_path(found: PathComparison) -> None:
    text = render_text_of(found, None, command="inferometer ab tiny -o ab.md")
    assert re.search(r"triton takes 1\.39\d* times as long as torch \(1\.3\d* to 1\.\d+\): slower\.", text)
    assert "Most of it: completion.forward.layers" in text.replace("\\", "")
    assert "Made with: inferometer ab tiny -o ab.md" in text


def test_icicles_have_one_scale_and_children_within_their_parents(found: PathComparison) -> None:
    torch, triton = icicles(found)["data"]
    widths = [each["domain"]["x"][1] - each["domain"]["x"][0] for each in (torch, triton)]
    assert widths[0] / widths[1] == pytest.approx(torch["values"][0] / triton["values"][0], rel=1e-6)
    for each in (torch, triton):
        sums: dict[str, int] = {}
        for parent, value in zip(each["parents"], each["values"], strict=True):
            sums[parent] = sums.get(parent, 0) + value
        own = dict(zip(each["ids"], each["values"], strict=True))
        assert all(total <= own[parent] for parent, total in sums.items() if parent)
        assert set(each["parents"]) <= {"", *each["ids"]}


def test_a_slower_path_is_marked_in_the_candidate_alone_by_sign_and_colour(found: PathComparison) -> None:
    torch, triton = icicles(found)["data"]
    at = next(i for i, label in enumerate(triton["labels"]) if label.startswith("mlp"))
    assert triton["labels"][at].endswith("▲")
    assert triton["marker"]["colors"][at] == "var(--bad)"
    assert not any("▲" in label for label in torch["labels"])


def test_every_layer_is_on_the_page_and_names_stay_text(found: PathComparison) -> None:
    html = page(found)
    assert "layers.1" in html
    assert "<img" not in html
    assert "http" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL).replace("http-equiv", "")


def test_a_wrong_arm_has_no_ratio_in_its_verdict() -> None:
    import polars as pl

    from inferometer.analyses.ab.measurement import ERRORS

    row = {"arm": "triton", "path": f"completion.forward.layers.0.{NAME}", "calls": 1, "max_error": 3.0,
           "normalised_error": 0.5, "tolerance": 1e-5, "call": 1, "failure": "off by 50 %"}  # fmt: skip
    arms = {"torch": [completion(100_000)] * 3, "triton": [completion(90_000)] * 3}
    found = compare_paths(measured(arms, errors=pl.DataFrame([row], schema=ERRORS)))
    text = render_text_of(found, None, command="c")
    assert "triton is wrong: see below where. Its times say nothing." in text
    assert "times as long" not in text
    assert any(label.endswith("✗") for label in icicles(found)["data"][1]["labels"])


def test_a_run_without_a_whole_repetition_says_so() -> None:
    found = compare_paths(measured({"torch": [], "triton": []}, ended="triton, warm-up: RuntimeError: no"))
    html = page(found)
    assert "Nothing whole was measured of triton." in html
    assert "RuntimeError: no" in html


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")
def test_the_arms_are_drawn_below_each_other_on_one_scale(found: PathComparison, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(found), "utf-8")
    widths = "[...document.querySelectorAll('.flame')].map(flame => flame.getBoundingClientRect().width)"
    with chromium(tmp_path / "profile") as tab:
        tab.open(path)
        torch, triton = tab.run(widths)
        values = [each["values"][0] for each in icicles(found)["data"]]
        assert torch / triton == pytest.approx(values[0] / values[1], rel=0.01)
        names = tab.run("[...document.querySelectorAll('.flame-name')].map(name => name.textContent)")
        assert [name.split(":")[0] for name in names] == ["torch", "triton"]
        assert tab.problems == []
