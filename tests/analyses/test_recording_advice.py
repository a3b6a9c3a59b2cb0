"""Advice on what a file lacks fits the profiler that wrote it: on real files of AMD's and Nsight Compute's tools."""

from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.ncu_files import RAW

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def dispatches(shared_data: Path) -> Path:
    return shared_data / "traces" / "rocprof" / "mi350_600_dispatches.json.gz"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("calls",), ["--hip-trace", "PyTorch's profiler on ROCm"]),
        (("launches",), ["--hip-trace", "PyTorch's profiler on ROCm"]),
        (("launches", "--by", "module"), ["--hip-trace", "with_stack=True"]),
        (("launches", "--by", "span"), ["--marker-trace", "roctxRangePush"]),
        (("spans",), ["--marker-trace", "roctxRangePush"]),
    ],
)
def test_who_profiles_with_rocprof_is_told_its_own_options(
    words: tuple[str, ...], options: list[str], dispatches: Path, capsys: Capsys
) -> None:
    code, out, _ = run(words[0], dispatches, *words[1:], capsys=capsys)
    text = " ".join(out.split())
    assert code == 0
    assert [each for each in options if each not in text] == []
    if words[0] != "spans":  # which names all
        assert "nsys" not in text
        assert "Nsight" not in text


def test_launches_that_ran_alone_need_a_trace_of_the_program(capsys: Capsys) -> None:
    for command in ("launches", "calls"):
        code, out, _ = run(command, RAW, capsys=capsys)
        assert (code, "ran alone under a profiler" in out) == (0, True)
    _, out, _ = run("groups", RAW, capsys=capsys)
    text = " ".join(out.split())
    assert "Each launch of this file ran alone under Nsight Compute" in text
    assert "nsys profile --trace=cuda,nvtx" in text
    assert "Only sums" not in text
