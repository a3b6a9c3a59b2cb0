"""Every command on what other engines write: it answers, or says what the file is and which command helps."""

from pathlib import Path

import pytest
from tests.commands.test_command_line import run

SAMPLES = Path(__file__).parents[2] / "samples" / "engines"
FILES = ("llama.log", "llama_bench.csv", "llama_bench.json", "llama_bench.md", "onnxruntime.json.gz")
LAUNCHES = {"onnxruntime.json.gz"}
STEPS = {"llama.log", "llama_bench.json", "onnxruntime.json.gz"}
OF_LAUNCHES = ("launches", "timeline", "roofline", "groups", "tree", "kernels")
REFUSED = {  # what of the message helps
    "steps": "expected steps of an engine, found none recorded",
    "counters": "Nsight Compute writes them",
    "memory": "_dump_snapshot",
    "watch": "expected steps",
}
TIMED = {"steps": STEPS, "watch": LAUNCHES}  # files that have what a command needs
Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["summary", "findings", *OF_LAUNCHES])
def test_a_command_answers_or_says_what_the_file_is(command: str, name: str, capsys: Printed) -> None:
    code, out, _ = run(command, SAMPLES / name, capsys=capsys)
    assert code == 0
    words = " ".join(out.split())
    if command in OF_LAUNCHES and name not in LAUNCHES:
        assert "in the file." in words
        helps = "A step is" if name == "llama.log" else "inferometer compare sets two such files side by side"
        assert helps in words


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", REFUSED)
def test_a_command_refuses_what_the_file_lacks_and_says_what_has_it(command: str, name: str, capsys: Printed) -> None:
    code, _, err = run(command, SAMPLES / name, capsys=capsys)
    if name in TIMED.get(command, ()):
        assert code == 0
        return
    assert code == 3
    assert REFUSED[command] in " ".join(err.split())


@pytest.mark.parametrize("name", FILES)
def test_a_file_compared_with_itself_is_no_regression(name: str, capsys: Printed) -> None:
    code, out, _ = run("compare", SAMPLES / name, SAMPLES / name, "--check", capsys=capsys)
    assert code == 0
    assert " slower of " not in out


def test_a_slower_test_fails_the_check_unless_that_much_is_accepted(tmp_path: Path, capsys: Printed) -> None:
    text = (SAMPLES / "llama_bench.json").read_text()
    base, slow = tmp_path / "base.json", tmp_path / "slow.json"
    steady = "[ 100000000, 101000000, 99000000, 100500000, 99500000 ]"
    lines = text.splitlines()
    for path, factor in ((base, 1), (slow, 2)):
        own = steady if factor == 1 else steady.replace("100", "200").replace("101", "202").replace("99", "198")
        path.write_text("\n".join(f'    "samples_ns": {own},' if "samples_ns" in line else line for line in lines))
    assert run("compare", base, slow, "--check", capsys=capsys)[0] == 1
    assert run("compare", base, slow, "--check", "--max-regression", "150", capsys=capsys)[0] == 0
    assert run("compare", slow, base, "--check", capsys=capsys)[0] == 0
    assert run("compare", base, slow, "--base-set", tmp_path, capsys=capsys)[0] == 2
