"""A fleet's page in a browser: under any filter its tables have the numbers that the command gives for those traces."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.fleet.digests import fleet_of, kernel, op, steps
from tests.reports.page.accessibility import grave_violations
from tests.reports.page.browser import Tab, find_chromium

import inferometer
from inferometer.fleet.opening import Fleet, open_fleet
from inferometer.fleet.questions.importance import fleet_importance
from inferometer.fleet.questions.models import fleet_models
from inferometer.fleet.questions.outliers import fleet_outliers
from inferometer.fleet.questions.overview import fleet_overview
from inferometer.fleet.questions.savings import fleet_savings
from inferometer.fleet.questions.times import What, fleet_times
from inferometer.reports.fleet.cells import find_cells
from inferometer.reports.fleet.page import build_blocks, render_fleet, render_fleet_text
from inferometer.reports.page.blocks import Block

Row = Mapping[str, Any]
Answer = Callable[[Fleet], list[Row]]
EVIL = "<img src=x onerror=hacked=1>"
DAY_NS = 86_400 * 10**9
FIRST_NS = 1_748_736_000 * 10**9  # 2025-06-01
FILTERS = (
    {"gpu": EVIL},
    {"engine": "vLLM", "version": "0.10"},
    {"model": "a", "version": "0.9", "date": "2025-06-01"},
)
TIMES = {
    "Time": "share",
    "Total Time": "total_ns",
    "GPU-hours": "gpu_hours",
    "Launches": "launches",
    "Traces": "traces",
}


def rows_of(result: Any) -> list[Row]:
    """The rows of `--json`."""
    rows: list[Row] = json.loads(json.dumps(inferometer.json_of(result)))["rows"]
    return rows


def times(fleet: Fleet, what: What) -> list[Row]:
    return rows_of(fleet_times(fleet, what))


NUMBERS: Mapping[str, tuple[Answer, Mapping[str, str]]] = {
    "by-model": (
        lambda fleet: rows_of(fleet_overview(fleet, by="model")),
        {
            "Traces": "traces",
            "GPU-hours held": "held_gpu_hours",
            "Busy": "busy_share",
            "Kernels": "kernel_ns",
            "Launch-bound": "launch_bound_share",
            "GPU-hours above bound": "above_gpu_hours",
            "Above bound": "above_share",
            "Findings": "findings",
        },
    ),
    "models": (
        lambda fleet: rows_of(fleet_models(fleet)),
        {"Split over": "tensor_parallel", "Traces": "traces", "GPU-hours held": "held_gpu_hours", "Ops": "op_ns"},
    ),
    **{what: (partial(times, what=what), TIMES) for what in get_args(What)},
    "importance": (
        lambda fleet: rows_of(fleet_importance(fleet)),
        {"By time": "time_weight", "By GPU-hours": "gpu_hours_weight", "Total Time": "total_ns", "Traces": "traces"},
    ),
    "savings": (
        lambda fleet: rows_of(fleet_savings(fleet)),
        {"Saves": "share", "GPU-hours": "saved_gpu_hours", "Total Time": "total_ns", "Traces": "traces"},
    ),
    "outliers": (
        lambda fleet: rows_of(fleet_outliers(fleet)),
        {"Of usual": "ratio", "Deviations": "distance", "Step": "step_ns", "Usual": "usual_ns", "Alike": "alike"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Forty traces of two models, GPUs, versions and days, one of a CPU, one slow; what they hold differs in each."""
    traces: dict[str, Any] = {}
    for n in range(40):
        model, gpu = "ab"[n % 2], ("H100", EVIL)[n // 2 % 2]
        version, day = ("0.9", "0.10")[n // 4 % 2], n // 8 % 2
        given = steps(1e6 * (1 + n / 1000) * (9 if n == 13 else 1), model=model, version=version)
        given["about"] = {
            "gpu": gpu, "held_ns": 10**9 + n, "busy_ns": 10**8 * (n + 1), "kernel_ns": 7 * n, "op_ns": 50 + n,
            "modelled_ns": 30 + n, "stepped_ns": 100, "launch_bound_ns": n, "began_ns": FIRST_NS + day * DAY_NS,
            "bound_ns": 1.5 * n if n % 3 else None, "above_ns": 2.5 * n if n % 3 else None, "gpus": int(n != 7),
        }  # fmt: skip
        given["kernels"] = [
            kernel("gemm_<b>", 1_000 + n, 3), kernel(f"own_{n % 5}", 10 * n + 1),
            {**kernel("uncounted", 17, 1), "count": None if n == 3 else 1, "family": "norm"},
        ]  # fmt: skip
        given["ops"] = [op("aten::mm", 900 + n, f"[[{n % 3},8],[8,4]]", family="gemm"), op(None, 5 * n, kernel="k")]
        given["classes"] = [
            {"phase": "decode", "class": "gemm", "total_ns": 5 + n},
            {"phase": None, "class": "x", "total_ns": n},
        ]
        given["findings"] = [{"rule": "r", "severity": "high", "title": "t"}] * (n % 2)
        traces[f"t{n:02}"] = given
    return fleet_of(tmp_path_factory.mktemp("fleet") / "f.ifm", {**traces, "none": {"reason": f"no trace {EVIL}"}})


@pytest.fixture(scope="module")
def blocks(fleet: Fleet) -> list[Block]:
    return build_blocks(fleet)


@pytest.fixture(scope="module")
def page(blocks: list[Block], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(render_fleet(blocks, title="f.ifm").html, "utf-8")
    return path


@pytest.fixture
def opened(tab: Tab, page: Path) -> Iterator[Tab]:
    tab.open(page)
    yield tab
    assert tab.problems == []
    assert tab.requests == [page.as_uri()]
    assert tab.run("typeof hacked") == "undefined"


_ROWS = """(grid) => {
  const heads = grid ? [...grid.querySelectorAll('thead th')].map(head => head.textContent) : [];
  const number = (cell) => Number((cell.dataset.value ?? cell.textContent).replaceAll(',', ''));
  const text = (cell) => cell.querySelector('.long code, .label')?.textContent ?? cell.textContent;
  const value = (cell) => cell.classList.contains('n') ? (cell.textContent === '-' ? null : number(cell)) : text(cell);
  const rows = grid ? [...grid.querySelectorAll('tr.row')] : [];
  return rows.map(row => Object.fromEntries([...row.cells].map((cell, n) => [heads[n], value(cell)])));
}"""


def choose(tab: Tab, wanted: Mapping[str, str]) -> None:
    for select in tab.run("[...document.querySelectorAll('.filters .choose')].map(l => l.textContent.split('all')[0])"):
        value = json.dumps(wanted.get(select.lower(), "all"))
        label = f"[...document.querySelectorAll('.filters .choose')].find(l => l.textContent.startsWith('{select}'))"
        tab.run(
            f"(s => {{ s.value = [...s.options].find(o => o.textContent === {value}).value; s.onchange(); }})"
            f"({label}.querySelector('select'))"
        )


def shown(tab: Tab, name: str) -> list[dict[str, Any]]:
    """The rows of a table as it is seen, by the title of the column: exact numbers, and texts."""
    place = f"document.querySelector('.filtered[data-name=\"{name}\"] .grid:not([hidden] *)')"
    found: list[dict[str, Any]] = tab.run(f"({_ROWS})({place})")
    return found


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")
class TestInABrowser:
    @pytest.mark.parametrize("only", FILTERS, ids="-".join)
    def test_a_filter_has_the_numbers_of_the_command(self, opened: Tab, fleet: Fleet, only: dict[str, str]) -> None:
        choose(opened, only)
        asked = open_fleet(fleet.folder, only)
        status = opened.run("document.querySelector('.filters output').textContent")
        assert status == f"{asked.traces.height} of 40 traces"
        for name, (answer, columns) in NUMBERS.items():
            if name == "outliers" and "date" in only:
                continue  # they are compared with those of all dates, as the page says
            rows, said = shown(opened, name), answer(asked)
            assert len(rows) == len(said), name
            for title, column in columns.items():
                found = sorted(row[title] for row in rows if row.get(title) is not None)
                known = sorted(row[column] for row in said if row[column] is not None)
                assert found == pytest.approx(known, rel=1e-12), (name, title)

    def test_names_stand_with_their_numbers(self, opened: Tab, fleet: Fleet) -> None:
        choose(opened, {"gpu": EVIL, "model": "b"})
        rows = rows_of(fleet_times(open_fleet(fleet.folder, {"gpu": EVIL, "model": "b"}), "kernels"))
        assert {row["Name"]: row["Total Time"] for row in shown(opened, "kernels")} == {
            row["kernel"]: row["total_ns"] for row in rows
        }

    def test_a_phase_chooses_rows_and_leaves_shares(self, opened: Tab, fleet: Fleet) -> None:
        choose(opened, {"phase": "decode", "model": "a"})
        rows = rows_of(fleet_times(open_fleet(fleet.folder, {"model": "a"}), "classes"))
        (decode,) = [row for row in rows if row["phase"] == "decode"]
        (found,) = shown(opened, "classes")
        assert (found["Time"], found["Total Time"]) == (decode["share"], decode["total_ns"])

    def test_all_traces_are_back_with_one_press(self, opened: Tab) -> None:
        before = shown(opened, "kernels")
        choose(opened, {"model": "a"})
        assert shown(opened, "kernels") != before
        opened.run("document.querySelector('.filters > button').click()")
        assert shown(opened, "kernels") == before
        assert opened.run("document.querySelector('.filters output').textContent") == "40 traces"

    def test_what_is_chosen_stands_in_the_address(self, tab: Tab, page: Path) -> None:
        tab.open(page)
        choose(tab, {"model": "a", "version": "0.10"})
        assert tab.run("location.hash") == "#filters?model=a&version=0.10"
        rows = shown(tab, "kernels")
        tab.requests.clear()
        tab.call("Page.reload")
        tab.wait("document.readyState === 'complete' && document.querySelector('.filters output') !== null")
        assert tab.run("document.querySelector('.filters output').textContent") == "10 of 40 traces"
        assert shown(tab, "kernels") == rows

    def test_a_filtered_table_is_sorted_searched_and_saved(self, opened: Tab) -> None:
        choose(opened, {"model": "a"})
        place = "document.querySelector('.filtered[data-name=kernels] .grid:not([hidden] *)')"
        opened.run(f"(i => {{ i.value = 'own_'; i.oninput(); }})({place}.querySelector('input'))")
        assert opened.run(f"{place}.querySelector('output').textContent") == "5 of 7 rows"
        opened.run(f"[...{place}.querySelectorAll('thead button')].find(b => b.textContent === 'Name').click()")
        names = f"[...{place}.querySelectorAll('tr.row:not([hidden])')].map(r => r.cells[0].textContent)"
        assert opened.run(names) == [f"own_{n}" for n in range(5)]
        assert opened.run(f"{place}.querySelector('.csv') !== null")

    def test_what_has_no_room_is_one_row(self, tab: Tab, fleet: Fleet, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr("inferometer.reports.fleet.sums.MOST_THINGS", 3)
        monkeypatch.setattr("inferometer.reports.fleet.cells.MOST", 6)
        assert find_cells(fleet).left_out == ("version", "date")
        path = tmp_path / "page.html"
        path.write_text(render_fleet(build_blocks(fleet), title="f").html, "utf-8")
        tab.open(path)
        choose(tab, {"model": "a"})
        asked = fleet_times(open_fleet(fleet.folder, {"model": "a"}), "kernels")
        rest = "document.querySelector('.filtered[data-name=kernels] tr.rest')"
        heads = f"[...{rest}.closest('table').querySelectorAll('thead th')]"
        at = tab.run(f"{heads}.findIndex(head => head.textContent === 'Total Time')")
        left = int(tab.run(f"{rest}.cells[{at}].dataset.value"))
        assert sum(row["Total Time"] for row in shown(tab, "kernels")) + left == asked.total_ns
        assert tab.run(f"{rest}.cells[0].textContent") == "up to 4 more rows, which the page leaves out"
        said = tab.run("document.querySelector('#filters .warning').textContent")
        assert said == "No filter by version and date: with them there would be too many combinations."

    def test_axe_finds_nothing_grave_with_a_filter(self, opened: Tab, page: Path) -> None:
        opened.open(page, width=390, mobile=True)
        assert opened.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        choose(opened, {"model": "a", "gpu": EVIL})
        assert grave_violations(opened) == []


def test_the_page_is_of_all_traces_without_a_script(blocks: list[Block]) -> None:
    text = render_fleet_text(blocks, title="f.ifm")
    assert "**Traces**: 40." in text
    assert "Filters" not in text
    for title in ("Kernels", "Outliers", "Changes over versions", "Importance", "Savings", "Set aside"):
        assert f"## {title}" in text


def test_a_fleet_of_nothing_has_a_page(tmp_path: Path) -> None:
    empty = fleet_of(tmp_path / "f.ifm", {"none": {"reason": "no trace"}})
    assert "no trace" in render_fleet(build_blocks(empty), title="f.ifm").html
