"""What text for people is like in every command: how wide, how quiet, and what --full, --raw and -v ask for."""

import csv
import io
import json
import re
from itertools import takewhile
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.commands.test_command_line import EVENTS, run
from tests.kineto_files import COMPACT, kernel, write_file

MANGLED = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIiEESt5arrayIPcLm1EEEEviT0_T1_"
READABLE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, "
SHORT = "fill int32 v4"


@pytest.fixture
def mangled(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([kernel(MANGLED, "100", "10", correlation=1)]))
    return path


def widest(text: str) -> int:
    return max(map(cell_len, text.splitlines()))


@pytest.mark.parametrize(("columns", "width"), [(None, 120), ("72", 72), ("200", 200), ("0", 120), ("x", 120)])
@pytest.mark.parametrize(
    "command", ["summary", "kernels", "launches", "calls", "findings", "timeline", "groups", "tree"]
)
def test_a_pipe_is_as_wide_as_columns_says_or_120(
    command: str,
    columns: str | None,
    width: int,
    mangled: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(command, mangled, capsys=capsys)
    assert code == 0
    assert widest(out) <= width


def test_the_short_name_comes_first_and_the_whole_on_demand(mangled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def row(*words: str) -> str:
        lines = run(*words, mangled, capsys=capsys)[1].splitlines()
        return lines[next(i for i, line in enumerate(lines) if line.startswith("───") and "Name" in lines[i - 1]) + 1]

    for command in ("kernels", "summary"):
        assert row(command).startswith(f"{SHORT}  ")
        assert f"  {READABLE}" in row(command, "--full")
        assert row(command, "--raw").endswith(f"  {MANGLED}")


def test_files_for_programs_have_the_whole_name(mangled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(run("kernels", mangled, "--json", capsys=capsys)[1])["rows"]
    assert rows[0]["kernel"].startswith(READABLE)
    assert rows[0]["short"] == SHORT
    for form in ("--csv", "--tsv", "--markdown"):
        assert "FillFunctor" in run("kernels", mangled, form, capsys=capsys)[1]


def test_what_changes_nothing_is_said_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    whole = write_file(EVENTS, COMPACT)
    path.write_bytes(whole[whole.index(b"[") :].removesuffix(b"]}"))  # an array without its closing bracket
    _, quiet, _ = run("kernels", path, capsys=capsys)
    _, told, _ = run("kernels", path, "-v", capsys=capsys)
    assert "info: " not in quiet
    assert "Read only" not in quiet
    assert told.startswith(quiet)
    assert "info: " in told
    assert "Read only" in told
    for form in ("--csv", "--tsv"):
        assert "info: " not in run("kernels", path, form, capsys=capsys)[2]
        assert "info: " in run("kernels", path, form, "-v", capsys=capsys)[2]


def test_kernels_without_an_op_are_decoded_next_to_ops(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a graph's replay no op is known: rows of the roofline are kernels, which other tables decode."""
    file = shared_data / "traces/kineto/mi300_vllm_gpt-oss_decode.json.gz"
    matmul = "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"
    norm = "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI"
    monkeypatch.setenv("COLUMNS", "120")
    shown = run("roofline", file, capsys=capsys)[1]
    assert "  moe matmul bf16×mxfp4 16x128x256  " in shown
    assert "  ck rmsnorm2d fwd bf16  " in shown
    assert not {"_matmul_ogs", "_ZN7ck_tile"} & {word[:11] for word in shown.split()}
    whole = run("roofline", file, "--full", capsys=capsys)[1]
    assert f"  {matmul}  " in whole
    assert "  void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<" in whole
    raw = run("roofline", file, "--raw", capsys=capsys)[1]
    assert f"  {norm}" in raw
    rows = json.loads(run("roofline", file, "--json", capsys=capsys)[1])["rows"]
    assert matmul in {row["kernel"] for row in rows}
    assert any(row["kernel"] and row["kernel"].startswith(norm) for row in rows)
    table = csv.DictReader(io.StringIO(run("roofline", file, "--csv", capsys=capsys)[1]))
    assert matmul in {row["kernel"] for row in table}


@pytest.mark.parametrize("name", ["h100_qwen1.5-0.5b", "mi300_vllm_gpt-oss_decode", "triton_example"])
def test_what_a_table_calls_a_kernel_finds_it(
    name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each name on the screen, without the part in brackets that tells it from others, is found by `--match`."""
    monkeypatch.setenv("COLUMNS", "200")
    file = shared_data / f"traces/kineto/{name}.json.gz"
    shown = run("kernels", file, capsys=capsys)[1].splitlines()[3:]
    labels = [re.split(r"  +| \[", line)[0] for line in takewhile(bool, shown)]
    assert labels
    rows = json.loads(run("kernels", file, "--json", capsys=capsys)[1])["rows"]
    for label, row in zip(labels, rows, strict=False):
        found = json.loads(run("kernels", file, "--json", "--match", re.escape(label), capsys=capsys)[1])
        assert row["kernel"] in {each["kernel"] for each in found["rows"]}, label
    tree = run("tree", file, "--match", re.escape(labels[0]), "--min-share", "0", capsys=capsys)[1]
    assert labels[0] in tree
