"""Whole commands, killed before each change of the disk in turn: what they replace is never lost.

One process imports the package and forks for each kill. After some kills the command runs again: it leaves nothing of
the killed one. What a recorded program itself writes is killed elsewhere (tests/record/test_journal_processes.py).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD, NEW = "samples/nsys.sqlite.gz", "samples/decode.json.gz"
PROGRAM = [sys.executable, "-c", "pass"]
COMMANDS = {
    "import": (["import", OLD, "-o", "OUT"], ["import", NEW, "-o", "OUT", "--force"]),
    "report": (["report", OLD, "-o", "OUT.html"], ["report", NEW, "-o", "OUT.html", "--force"]),
    "export of a file": (
        ["export", OLD, "--to", "csv", "--table", "launches", "-o", "OUT.csv"],
        ["export", NEW, "--to", "csv", "--table", "launches", "-o", "OUT.csv", "--force"],
    ),
    "export of a folder": (
        ["export", OLD, "--to", "parquet", "-o", "OUT"],
        ["export", NEW, "--to", "parquet", "-o", "OUT", "--force"],
    ),
    "record": (["import", OLD, "-o", "OUT.ifm"], ["record", "-o", "OUT.ifm", "--force", "--", *PROGRAM]),
}

SCRIPT = """
import hashlib, json, os, shutil, sys
from pathlib import Path

import inferometer.formats.opening, inferometer.reports.export, inferometer.trace.store_writer, numpy, polars
from inferometer.commands.main import main
from inferometer.new_files import clear_left

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "open"}
folder, before, command = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])

def run(words, place, last=0):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = 0
    def kill(event, args):
        nonlocal seen
        if event in CHANGES and str(place) in str(args[0]):
            seen += 1
            if seen == last:
                os.kill(os.getpid(), 9)
    sys.addaudithook(kill)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1), os.dup2(quiet, 2)
    sys.argv = ["inferometer", *(word.replace("OUT", str(place / "out")) for word in words)]
    code = 70
    try:
        code = main() or 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        os._exit(code)

def content(place):
    files = [place / out] if (place / out).is_file() else sorted((place / out).rglob("*"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}

old, new = folder / "old", folder / "new"
old.mkdir()
assert run(before, old) == 0
(out,) = (path.name for path in old.iterdir())
shutil.copytree(old, new)
assert run(command, new) == 0
code, last = -9, 0
while code:
    last += 1
    place = folder / str(last)
    shutil.copytree(old, place)
    code = run(command, place, last)
    clear_left(place / out)
    is_old, is_new = content(place) == content(old), sorted(content(place)) == sorted(content(new))
    opens = is_old or not out.endswith(".ifm") or run(["summary", str(place / out)], folder / "nowhere") == 0
    again = run(command, place) if last % 4 == 0 else 0
    left = sorted(path.name for path in place.iterdir()) if last % 4 == 0 else [out]
    print(json.dumps([code, is_old or is_new and opens, again, left == [out]]), flush=True)
    shutil.rmtree(place)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_leaves_the_old_or_the_new_output_whole(name: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *map(json.dumps, COMMANDS[name])],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.stderr == ""
    *killed, last = map(json.loads, ended.stdout.splitlines())
    assert last == [0, True, 0, True]
    assert len(killed) >= 4
    assert {tuple(each) for each in killed} == {(-9, True, 0, True)}
