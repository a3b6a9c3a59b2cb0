"""On real traces every row of a kernel table tells its kernel, at any width of the screen, and no line is too long."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

import inferometer
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.findings.first_look import first_look
from inferometer.names import canonical_name, decode
from inferometer.reports.screen.screen import Detail
from inferometer.reports.terminal import render_terminal

WIDTHS = (80, 120, 200)
TRACES = (
    *("h100_qwen1.5-0.5b", "h100_vit", "mi300_qwen1.5-0.5b", "mi300_sglang_qwen3-8b_decode", "mi300_resnet_ddp"),
    *("mi300_vllm_gpt-oss_decode", "a100_nccl", "a100_idle_64", "rank0_sampled", "v100_graph_branches"),
)
FIRST_LOOKS = TRACES[:6]
_GAP = re.compile(r" {2,}")


@pytest.fixture(scope="module", params=TRACES)
def kernels(request: pytest.FixtureRequest, shared_data: Path) -> KernelTable:
    return kernel_table(inferometer.open(shared_data / "traces" / "kineto" / f"{request.param}.json.gz"))


def names_in(text: str) -> list[str]:
    """The first column of the last table of the text."""
    rows = text[text.rindex("\n──") :].partition("\n\n")[0].splitlines()[2:]
    return [_GAP.split(row)[0] for row in rows if not row.startswith("Too narrow for: ")]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_row_of_the_kernel_table_tells_its_kernel(
    kernels: KernelTable, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = render_terminal(kernels, is_terminal=False)
    names = names_in(text)
    assert len(names) == kernels.frame.height
    assert len({*names}) == len(names)
    assert max(map(cell_len, text.splitlines())) <= width
    assert not [name for name in names if "_Z" in name]
    for kernel, name in zip(kernels.frame["kernel"], names, strict=True):
        told = decode(kernel).short_name.replace("*", "×") if decode(kernel).is_known else canonical_name(kernel)
        beginning, cut, _ = name.partition("…")
        if cut:
            assert told.startswith(beginning) or beginning.startswith(f"{told} [")
        else:
            assert name == told or name.startswith((f"{told} [", f"{told} #"))
        assert width == 80 or not cut


def test_asked_for_all_the_names_are_those_of_the_file(kernels: KernelTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = render_terminal(kernels, is_terminal=False, detail=Detail(raw=True)).splitlines()
    assert [name for name in kernels.frame["kernel"] if not any(line.endswith(f"  {name}") for line in lines)] == []


@pytest.mark.parametrize("name", FIRST_LOOKS)
def test_the_first_screen_fits_and_says_no_more_than_asked_for(
    name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = first_look(inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz"))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        text = render_terminal(found, is_terminal=False)
        assert max(map(cell_len, text.splitlines())) <= width
        assert not re.search(r"^info:|Read only", text, re.MULTILINE)
        for title in (finding.title for finding in found.findings.causes[:5]):
            assert all(word in text for word in title.split())
        names = names_in(text.partition("\n• ")[0])
        assert len({*names}) == len(names) == found.summary.kernels.frame.height
