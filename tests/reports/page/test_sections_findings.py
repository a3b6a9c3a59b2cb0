"""What to look at first, of one run and of two: what both share is reported once."""

from pathlib import Path

from tests.traces import trace_of
from tools.kineto_maker import Options, write_trace

import inferometer
from inferometer import Trace
from inferometer.reports.page.blocks import Beside, Block, Folds, Points, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import findings


def lists(base: Trace, candidate: Trace | None = None) -> dict[str, list[str]]:
    block = findings.SECTION.build(PageData(base, candidate))
    assert isinstance(block, Block)
    parts = [*block.parts, *(part for each in block.parts if isinstance(each, Folds) for part in each.folds[0].parts)]
    found = {part.title: part for part in parts if isinstance(part, Points)}
    for part in parts:
        if isinstance(part, Beside):
            cells = [(head, cell) for row in part.rows for head, cell in zip(part.heads, row, strict=True)]
            found |= {head: cell for head, cell in cells if isinstance(cell, Points)}
    return {title: [point.text for point in part.points] for title, part in found.items()}


def busy(kernel: str) -> Trace:
    return trace_of([{"kernel": kernel, "start_ns": 0, "dur_ns": 90}, {"kernel": "rest", "start_ns": 90, "dur_ns": 10}])


def test_of_one_run_there_is_one_list() -> None:
    assert lists(busy("gemm")) == {"": ["gemm takes 90.0 % of the kernel time in 1 launch."]}


def test_what_two_runs_share_is_said_once() -> None:
    assert lists(trace_of(), trace_of()) == {"Both runs": ["No kernels in the file."]}


def test_what_one_run_has_alone_stands_under_it() -> None:
    found = lists(busy("gemm"), trace_of())
    assert found == {
        "Base": ["gemm takes 90.0 % of the kernel time in 1 launch."],
        "Candidate": ["No kernels in the file."],
    }


def test_runs_without_anything_say_so_each() -> None:
    quiet = trace_of([{"kernel": "gemm", "start_ns": 0, "dur_ns": 90}])
    assert lists(quiet, quiet) == {}
    block = findings.SECTION.build(PageData(quiet, quiet))
    assert isinstance(block, Block)
    (told,) = [part.text for part in block.parts if isinstance(part, Words)]
    assert told.startswith("Each run: ")
    assert "looked at 1 launch on 1 device: nothing is above their thresholds." in told


def test_a_finding_that_another_explains_names_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        write_trace(Options(fault="sync-points"), file)
    block = findings.SECTION.build(PageData(inferometer.open(path)))
    assert isinstance(block, Block)
    points = [point for part in block.parts if isinstance(part, Points) for point in part.points]
    causes = [line.removeprefix("Explained by: ") for point in points for line in point.detail if "Explained" in line]
    assert causes
    assert set(causes) <= {point.text for point in points}
