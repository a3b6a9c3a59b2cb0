"""`inferometer leaderboard` as users meet it."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run, run_apart

from inferometer.operators import operators


def test_the_page_is_written_with_the_command_that_makes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.html"
    code, said, err = run("leaderboard", "-o", out, "--hardware", "H100 SXM", capsys=capsys)
    assert (code, err) == (0, "")
    assert said.startswith(f"{out}: ")
    html = out.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert "Made with: inferometer leaderboard -o mine.html --hardware &#39;H100 SXM&#39; --to html" in html
    assert str(tmp_path) not in html


def test_json_alone_is_the_data_and_makes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run("leaderboard", "--json", "--hardware", "H20", capsys=capsys)
    data = json.loads(said)
    assert (code, data["operators"]) == (0, len(operators()))
    assert [device["device"] for device in data["devices"]] == ["XPU-A", "H20"]
    assert [*tmp_path.iterdir()] == []


def test_json_with_a_page_says_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.md"
    data = json.loads(run("leaderboard", "-o", out, "--title", "My *page*", "--json", capsys=capsys)[1])
    assert data["page"] == {"path": str(out), "to": "markdown", "bytes": out.stat().st_size, "left_out": []}
    assert out.read_text("utf-8").splitlines()[0] == "# My \\*page\\*"


def test_standard_output_is_the_page_and_nothing_else() -> None:
    done = run_apart("leaderboard", "-o", "-", "--to", "markdown")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"# Operators of LLM inference")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "page.pdf"], 2, "page.pdf: expected a name in .html, .htm, .md, .markdown, or the form with --to"),
        (["-o", "there.html"], 3, "there.html: already exists"),
        (["-o", "nowhere/page.html"], 3, "nowhere: no such folder"),
        (["-o", "-", "--json"], 2, "--json needs -o OUT"),
        (["-o", "page.html", "--hardware", "Abacus 3000"], 3, 'unknown device "Abacus 3000"'),
        (["--json", "--hardware", "H100"], 3, "may be several devices"),
        (
            [word for name in ("H100 SXM", "H100 PCIe", "B200", "MI300X", "L40S") for word in ("--hardware", name)],
            2,
            "at most 4 have room",
        ),
    ],
)
def test_what_can_t_be_done_is_refused(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.html").write_text("mine", "utf-8")
    found, out, err = run("leaderboard", *words, capsys=capsys)
    assert (found, out) == (code, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]
    assert Path("there.html").read_text("utf-8") == "mine"


def test_force_replaces_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.md"
    out.write_text("# old", "utf-8")
    assert run("leaderboard", "-o", out, "--force", capsys=capsys)[0] == 0
    assert not out.read_text("utf-8").startswith("# old")
