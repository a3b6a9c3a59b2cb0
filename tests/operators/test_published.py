"""The published figures follow from shapes, peaks and times: ours, the catalogue's and those of the seed's page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from inferometer.analyses.operators.published import (
    PLATFORMS,
    arithmetic_intensity,
    headline,
    median_headline,
    median_intensity,
    published_bound_ns,
    regime_of,
    upper_median,
)
from inferometer.hardware.known import require_device
from inferometer.operators import operators

EVERY = operators()
SHAPES = [(operator, shape) for operator in EVERY.values() for shape in operator.catalogue().shapes]
_DIGITS_NS = 0.5e-3  # published times have so many


def test_the_catalogue_is_whole() -> None:
    assert (len(EVERY), len(SHAPES)) == (30, 440)
    assert sum(operator.catalogue().importance for operator in EVERY.values()) == pytest.approx(1.09478, abs=1e-5)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_bounds_follow_from_work_bytes_and_peaks(platform: str) -> None:
    for operator, shape in SHAPES:
        found = published_bound_ns(operator, shape, require_device(platform))
        assert found == pytest.approx(shape.published.t_sol_ns[platform], rel=1e-4, abs=_DIGITS_NS), shape.label


def test_most_work_and_bytes_follow_from_formulas() -> None:
    costs = [operator.cost(**shape.args) for operator, shape in SHAPES]
    assert sum(cost.flops is not None for cost in costs) == 417
    assert sum(cost.written_bytes is not None for cost in costs) == 434


def test_medians_and_the_middle_shape_differ() -> None:
    """The page's headline is of the middle shape by index: of rms_norm 7 tokens of 1,280."""
    row, middle = (of(EVERY["rms_norm"], require_device) for of in (headline, median_headline))
    assert row.index == 28
    assert row.t_sol_ns["XPU-A"] < 0.01 * middle.t_sol_ns["XPU-A"]


def published(shared_data: Path) -> dict[str, Any]:
    found = json.loads((shared_data / "operators" / "catalogue.json").read_text("utf-8"))
    return {operator["name"]: operator for operator in found["operators"]}


def test_importance_regimes_intensities_and_medians_are_the_published(shared_data: Path) -> None:
    total = sum(operator.catalogue().importance for operator in EVERY.values())
    for name, wanted in published(shared_data).items():
        operator = EVERY[name]
        assert operator.catalogue().importance == wanted["importance"]
        assert operator.catalogue().importance / total == pytest.approx(wanted["importance_normalised"], abs=1e-6)
        assert regime_of(operator) == wanted["regime"]
        assert median_intensity(operator) == pytest.approx(wanted["ai_median"], abs=5e-4)
        fractions = [shape.published.sol_fraction("XPU-A") or 0.0 for shape in operator.catalogue().shapes]
        rounded = wanted["s_median_seed_pct"] / 100  # of times that the page had rounded
        assert upper_median(fractions) == pytest.approx(rounded, abs=1e-3)
        for shape, found in zip(operator.catalogue().shapes, wanted["shapes"], strict=True):
            assert shape.index == found["index"]
            assert shape.published.sol_fraction("XPU-A") == pytest.approx(found["s_exact"], rel=1e-3, abs=1e-6)


def test_the_least_work_is_that_of_the_revised_catalogue(shared_data: Path) -> None:
    """But for operators in `DIFFERENT`, which can do with less, or trade vector work for products."""
    for name, wanted in published(shared_data).items():
        for shape, found in zip(EVERY[name].catalogue().shapes, wanted["shapes"], strict=True):
            work, revised = EVERY[name].work(**shape.args), found["revised"]
            if ("products", name) not in DIFFERENT:
                assert work.matrix_flops == revised["w_tensor"], shape.label
            if ("bytes", name) not in DIFFERENT:
                assert work.moved_bytes == revised["q_min"], shape.label
            assert work.moved_bytes <= revised["q_min"], shape.label


def test_headline_rows_are_those_of_the_page(seeds: Path) -> None:
    rows = _rows(seeds, columns=6)
    for name, operator in EVERY.items():
        found = headline(operator, require_device)
        bounds = [_two_digits(found.t_sol_ns[platform]) for platform in PLATFORMS]
        wanted = [found.regime, _intensity(found.arithmetic_intensity or 0.0), *bounds, _deployed(found.t_prod_ns)]
        assert rows[name] == wanted


def test_s_of_every_shape_is_that_of_the_page(seeds: Path) -> None:
    """The page rounds both times before it divides."""
    text = _page(seeds)
    printed = re.findall(r"^\| ▶ \| (\w+) \| \d+ \| ([\d.]+%) \||^\| #(\d+) .*?\| ([\d.]+%) \|", text, re.MULTILINE)
    name, seen = "", 0
    for operator, median, index, fraction in printed:
        if operator:
            name = operator
            rounded = sorted(_rounded_fraction(shape) for shape in EVERY[name].catalogue().shapes)
            assert _percent(rounded[len(rounded) // 2]) == median
            continue
        shape = EVERY[name].catalogue().shape(int(index))
        assert shape is not None
        assert _percent(_rounded_fraction(shape)) == fraction, shape.label
        seen += 1
    assert seen == 440


def test_intensities_are_those_of_a_plain_division() -> None:
    operator = EVERY["unified_attention"]
    shape = operator.catalogue().shapes[0]
    assert arithmetic_intensity(operator, shape) == 21_895_577_600 / (102_245_524 + 85_196_800)


DIFFERENT = {
    ("products", "gated_delta_rule_update"): "in chunks its recurrence is products of matrices, which are quicker",
    ("products", "chunk_delta_rule_output"): "value heads of one query head share the product of q and k",
    ("bytes", "fused_qk_rmsnorm"): "in place, values are neither read nor written",
    ("bytes", "moe_align_block_size"): "of the data-dependent length only the least is sure",
}


def _rounded_fraction(shape: Any) -> float:
    bound, deployed = shape.published.t_sol_ns["XPU-A"] / 1000, shape.published.t_prod_ns["XPU-A"] / 1000
    return round(bound, 2) / round(deployed, 1)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def _intensity(value: float) -> str:
    return f"{value / 1000:.1f}k" if value >= 1000 else f"{value:.1f}"


def _two_digits(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms" if ns >= 1e6 else f"{ns / 1e3:.2f} us"


def _deployed(ns: float) -> str:
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 else f"{ns / 1e3:.0f} us"


def _page(seeds: Path) -> str:
    return next(seeds.glob("003_*.txt")).read_text("utf-8")


def _rows(seeds: Path, *, columns: int) -> dict[str, list[str]]:
    found = {}
    for line in _page(seeds).splitlines():
        cells = [cell.strip() for cell in line.strip("|\n").split("|") if cell.strip()]
        if len(cells) == columns and cells[0] in EVERY:
            found[cells[0]] = cells[1:]
    return found
