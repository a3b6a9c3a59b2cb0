"""What commands print of the bundled samples at 80, 120 and 200 columns: pictures to review, and what holds in each."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.site_times import launch_sites
from inferometer.analyses.result import Result
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.findings.engine import Findings, find_findings
from inferometer.findings.first_look import first_look
from inferometer.reports.finding_list import render_findings
from inferometer.reports.screen.screen import Detail
from inferometer.reports.terminal import render_terminal
from inferometer.trace.trace import Trace

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
FILES = {
    "decode": "decode.json.gz",
    "nsys": "nsys.sqlite.gz",
    "webgpu": "webgpu.log.gz",
    "h200": "h200/kineto_eager.json.gz",
}
ASKED: dict[str, Callable[[Trace], Result]] = {
    "summary": first_look,
    "kernels": kernel_table,
    "launches": lambda trace: launch_sites(attribute(trace)),
    "findings": find_findings,
    "timeline": lambda trace: find_timeline(trace, width=50),
}
PICTURES = (
    *((command, "decode") for command in ASKED),
    *(("summary", "nsys"), ("summary", "webgpu"), ("kernels", "h200")),
)


@cache
def answer(command: str, sample: str) -> Result:
    name = FILES[sample]
    there = Path.cwd()
    os.chdir(SAMPLES)
    try:
        return ASKED[command](inferometer.open(name))
    finally:
        os.chdir(there)


def picture(command: str, sample: str, detail: Detail) -> str:
    found = answer(command, sample)
    if isinstance(found, Findings):
        return render_findings(found, is_terminal=False, detail=detail)
    return render_terminal(found, is_terminal=False, detail=detail)


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(("command", "sample"), PICTURES)
def test_a_picture(
    command: str,
    sample: str,
    width: int,
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = picture(command, sample, Detail())
    assert max(map(cell_len, text.splitlines())) <= width
    golden(f"screens/{command}-{sample}-{width}.txt", text)


@pytest.mark.parametrize(("command", "sample"), PICTURES)
def test_asked_for_all_no_name_is_cut_and_no_column_left_out(
    command: str, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = picture(command, sample, Detail(full=True))
    assert "Too narrow for" not in text
    assert "…" not in text
