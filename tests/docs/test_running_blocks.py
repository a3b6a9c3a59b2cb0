"""What makes the pages true: blocks are found, run and filled in, and a page that is wrong is noticed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.pages import PageError, find_blocks, refresh, run_on_terminal

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands in pages run on a pseudo-terminal")


def fenced(info: str, text: str = "") -> str:
    return f"```{info}\n{text}```\n"


def test_blocks_are_found_with_their_language_words_and_line() -> None:
    page = "# A\n\n" + fenced("sh", "inferometer formats\n") + "\n" + fenced("python no-run file=a/b.py")
    shell, python = find_blocks(page)
    assert (shell.language, shell.words, shell.line, shell.file) == ("sh", (), 4, None)
    assert shell.body == "inferometer formats\n"
    assert (python.language, python.words, python.file) == ("python", ("no-run", "file=a/b.py"), "a/b.py")


def test_a_console_block_gets_what_its_command_prints_and_keeps_nothing_old() -> None:
    page = "Before.\n" + fenced("console", "$ inferometer --version\nsomething old\n") + "After.\n"
    fresh = refresh(page, "page.md")
    assert "inferometer, version" in fresh
    assert "old" not in fresh
    assert (fresh.startswith("Before.\n```console\n$ "), fresh.endswith("```\nAfter.\n")) == (True, True)
    assert refresh(fresh, "page.md") == fresh


def test_python_blocks_share_names_and_their_output_goes_below() -> None:
    page = fenced("python", "a = 20\n") + fenced("python", "print(a + 1)\n") + fenced("text output", "old\n")
    assert refresh(page, "page.md").endswith(fenced("text output", "21\n"))


def test_a_written_file_is_there_for_later_commands_and_nowhere_else() -> None:
    trace = '[{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]\n'
    page = fenced("json file=new/trace.json", trace) + fenced("console", "$ inferometer kernels new/trace.json --csv\n")
    assert "100.0,2000,1," in refresh(page, "page.md")
    assert not (ROOT / "new").exists()


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("\n" + fenced("sh", "inferometer formats\ninferometer kernels nowhere.json\n"), "page.md:4: .* ended with 3"),
        (fenced("sh", "rm -rf samples\n"), "page.md:2: expected one of inferometer"),
        (fenced("console", "$ inferometer nonsense\n"), "ended with 2"),
    ],
)
def test_a_block_that_fails_names_its_page_and_line(page: str, message: str) -> None:
    with pytest.raises(PageError, match=f"(?s){message}"):
        refresh(page, "page.md")


def test_blocks_marked_no_run_are_left_alone() -> None:
    page = fenced("sh no-run", "rm -rf /\n") + fenced("python no-run", "1 / 0\n")
    assert refresh(page, "page.md") == page


def test_a_command_runs_on_a_terminal_of_the_width_asked_for(tmp_path: Path) -> None:
    look = f"{sys.executable} -c 'import os, sys; print(sys.stdout.isatty(), os.environ[\"COLUMNS\"])'"
    assert run_on_terminal(look, tmp_path, width=72) == ("True 72\n", 0)


def test_a_stale_page_is_named_and_only_written_without_check(tmp_path: Path) -> None:
    for folder in ("docs", "samples", "src", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "docs" / "reference" / "losses.md"
    good = page.read_text("utf-8")
    page.write_text(good + "More.\n", encoding="utf-8")
    command = [sys.executable, str(tmp_path / "docs" / "generate.py"), "docs/reference/losses.md"]
    checked = subprocess.run([*command, "--check"], check=False, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (1, "docs/reference/losses.md: is stale: run `make docs`\n")
    assert page.read_text("utf-8") == good + "More.\n"
    subprocess.run(command, check=True, capture_output=True)
    assert page.read_text("utf-8") == good
