"""`inferometer report` as users meet it."""

import json
import os
from pathlib import Path

import pytest
from tests.commands.test_command_line import run, run_apart
from tests.kineto_files import call, kernel, write_file

EVENTS = [call(ts="90", correlation=1), *(kernel("gemm", str(100 + 20 * i), "10", correlation=i) for i in range(1, 9))]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def test_the_page_is_written_and_its_size_said(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace_file.with_name("run.html")
    code, said, err = run("report", trace_file, "-o", out, capsys=capsys)
    assert (code, err) == (0, "")
    assert said.startswith(f"{out}: ")
    assert said.endswith(" kB\n")
    html = out.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert "<title>trace.json</title>" in html


def test_json_says_what_is_in_it_and_what_is_lacking(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace_file.with_name("run.html")
    data = json.loads(run("report", trace_file, "-o", out, "--json", capsys=capsys)[1])
    assert (data["path"], data["to"], data["bytes"]) == (str(out), "html", out.stat().st_size)
    assert {"facts", "findings", "losses", "kernels", "notes"} <= set(data["sections"])
    assert set(data["lacking"]) & set(data["sections"]) == set()
    assert data["left_out"] == []


def test_with_a_candidate_the_page_compares(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = trace_file.with_name("slow.json")
    other.write_bytes(write_file(EVENTS[:-1]))
    out = trace_file.with_name("run.html")
    code, said, _ = run("report", trace_file, other, "-o", out, "--json", capsys=capsys)
    sections = json.loads(said)["sections"]
    assert (code, sections[:2]) == (0, ["facts", "verdict"])
    assert {"kernels", "timeline", "compared_kernels"} <= set(sections)
    assert len(sections) == len(set(sections))
    assert "<title>slow.json compared with trace.json</title>" in out.read_text("utf-8")


@pytest.mark.parametrize(("name", "options"), [("run.md", ()), ("run.txt", ("--to", "markdown"))])
def test_markdown_by_name_or_by_word(
    trace_file: Path, name: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = trace_file.with_name(name)
    code, _, _ = run("report", trace_file, "-o", out, "--title", "My *run*", *options, capsys=capsys)
    assert (code, out.read_text("utf-8").splitlines()[0]) == (0, "# My \\*run\\*")


def test_standard_output_is_the_page_and_nothing_else(trace_file: Path) -> None:
    done = run_apart("report", trace_file, "-o", "-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"<!doctype html>")
    assert done.stdout.endswith(b"</html>")
    done = run_apart("report", "-", "-o", "-", "--to", "markdown", stdin=trace_file.read_bytes())
    assert done.stdout.startswith(b"# -\n")


def test_a_file_whose_name_is_no_text_has_its_page(trace_file: Path) -> None:
    name = os.fsencode(trace_file.parent) + b"/\xff<b>.json"
    os.rename(trace_file, name)  # noqa: PTH104 - pathlib takes no bytes
    done = run_apart("report", os.fsdecode(name), "-o", trace_file.with_name("run.html"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert "<b>" not in trace_file.with_name("run.html").read_text("utf-8").split("<script>")[0]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "run.pdf"], 2, "run.pdf: expected a name in .html, .htm, .md, .markdown, or the form with --to"),
        (["-o", "-", "--json"], 2, "--json needs -o OUT"),
        (["-o", "there.html"], 3, "there.html: already exists"),
        (["-o", "nowhere/run.html"], 3, "nowhere: no such folder"),
        (["--hardware", "Abacus 3000", "-o", "run.html"], 3, 'unknown device "Abacus 3000"'),
        (["--bandwidth", "100", "-o", "run.html"], 2, "need --model-config"),
    ],
)
def test_what_can_t_be_done_is_refused_before_reading(
    words: list[str],
    code: int,
    message: str,
    trace_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(trace_file.parent)
    Path("there.html").write_text("mine", "utf-8")
    found, out, err = run("report", trace_file, *words, capsys=capsys)
    assert (found, out) == (code, "")
    assert message in err
    assert Path("there.html").read_text("utf-8") == "mine"
    assert not Path("run.html").exists()


def test_force_replaces_a_page(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = trace_file.with_name("run.md")
    out.write_text("# old", "utf-8")
    assert run("report", trace_file, "-o", out, "--force", capsys=capsys)[0] == 0
    assert "old" not in out.read_text("utf-8")
