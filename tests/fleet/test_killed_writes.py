"""A fleet whose writer is killed before each change of the disk in turn: the next run makes it whole, to the byte.

One process imports the package and forks for each kill; the digests are made beforehand, so that only writing is tried.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.fleet.digests import fleet_of, kernel

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, os, shutil, sys
from pathlib import Path

import numpy, polars
from inferometer.fleet.store import FleetWriter, source_rows

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "open"}
folder = Path(sys.argv[1])
packed = {file.name.partition(".")[0]: file.read_bytes() for file in Path(sys.argv[2]).iterdir()}
traces = sorted(packed)

def write(place, names, aside):
    rows = [{"path": name, "trace": name, "labels": "{}"} for name in names]
    with FleetWriter(place) as writer:
        for name in names:
            if not writer.has_digest(name):
                writer.keep(name, packed[name])
        writer.set_aside(aside, "no trace")
        writer.finish(source_rows([*rows, {"path": "x", "trace": aside, "reason": "no trace", "labels": "{}"}]))

def run(place, names, aside, last=0):
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
    try:
        write(place, names, aside)
        os._exit(0)
    finally:
        os._exit(70)

def content(place):
    return {str(file.relative_to(place)): file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file()}

old, new = folder / "old", folder / "new"
assert run(old, traces[:2], "a" * 64) == 0
assert run(new, traces[1:], "b" * 64) == 0
code, last = -9, 0
while code:
    last += 1
    place = folder / "killed"
    if last % 2:
        shutil.copytree(old, place)
    code = run(place, traces[1:], "b" * 64, last)
    again = run(place, traces[1:], "b" * 64)
    print(json.dumps([code, again, content(place) == content(new)]), flush=True)
    shutil.rmtree(place)
"""


def test_a_killed_writer_leaves_what_the_next_one_makes_whole(tmp_path: Path) -> None:
    made = fleet_of(tmp_path / "f.ifm", {name: {"kernels": [kernel(name, 5)]} for name in "xyz"})
    (packed := tmp_path / "packed").mkdir()
    for file in made.folder.glob("digests/*/*.parquet"):
        file.rename(packed / file.name)
    (work := tmp_path / "work").mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(work), str(packed)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.stderr == ""
    *killed, last = map(json.loads, ended.stdout.splitlines())
    assert last == [0, 0, True]
    assert len(killed) >= 20
    assert {tuple(each) for each in killed} == {(-9, 0, True)}
