"""Pages of ncu that are known exactly, in units and locales of any kind, against what is read of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.traces import counted, rows
from tools.make_ncu import Options, make_ncu

import inferometer

LOCALES = {"English": (".", ","), "German": (",", "."), "French": (",", "\u202f"), "Swiss": (".", "\u2019")}
PAGES = {
    f"{page}, {'scaled' if scaled else 'base'} units": Options(page=page, scaled=scaled)
    for page in ("raw", "details")
    for scaled in (True, False)
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_page_is_read_as_it_was_made(page: str, locale: str, seed: int, tmp_path: Path) -> None:
    point, thousands = LOCALES[locale]
    text, truth = make_ncu(replace(PAGES[page], point=point, thousands=thousands, seed=seed))
    path = tmp_path / "ncu.csv"
    path.write_text(text, "utf-8")
    trace = inferometer.open(path)
    values: list[dict[str, float | None]] = [{} for _ in truth.values]
    for launch, kernel, grid, metric, value, unit in rows(
        trace, "kernel_counters", "launch", "kernel", "grid", "metric", "value", "unit"
    ):
        values[launch][metric] = value
        assert kernel == truth.kernels[launch]
        assert tuple(grid) == truth.grids[launch]
        assert (unit or "") == truth.units[metric]
    expected = [{name: None if v is None else float(v) for name, (v, _) in each.items()} for each in truth.values]
    assert values == expected
    totals = {kernel: (count, ns) for kernel, count, ns in rows(trace, "totals", "kernel", "count", "total_ns")}
    assert totals == {kernel: (count, round(ns)) for kernel, (count, ns) in truth.sums.items()}
    assert trace.facts.processes[1].process == 8
    assert counted(trace) == {"profiled_alone": 20, "unreadable_row": 1}  # a line of the program among the rows


def test_the_details_are_as_fine_as_they_are_printed(tmp_path: Path) -> None:
    text, truth = make_ncu(Options(page="details"))
    path = tmp_path / "ncu.csv"
    path.write_text(text, "utf-8")
    blur = dict(rows(inferometer.open(path), "totals", "kernel", "resolution_ns"))
    name = "GPU Speed Of Light Throughput: Duration"
    for kernel, resolution_ns in blur.items():
        halves = [v[name][1] for k, v in zip(truth.kernels, truth.values, strict=True) if k == kernel]
        assert resolution_ns == pytest.approx(float(sum(halves)))
