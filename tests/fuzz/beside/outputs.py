"""What is written over something else, for the campaign: nothing but a file of the same kind may change.

Each `open_…` uses a damaged sample as its command does; it gives no trace.
"""

import os
import shutil
import socket
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.bench.exchange.samples import result, run_of
from tests.kineto_files import kernel, write_file

import inferometer
from inferometer.bench.exchange import write_exchange
from inferometer.bench.results import RUN_FILE, encode_run
from inferometer.commands.options.pages import write_page
from inferometer.engines.webgpu.tune.tuned_file import Findings, write_findings
from inferometer.new_files import NewFile

Files = Mapping[str, bytes]

_FORMS = ("perfetto", "chrome", "csv", "parquet", "store", "html", "markdown", "results", "tuning")


@cache
def outputs() -> Sequence[Files]:
    """A trace, and what stands where something is written."""
    trace = write_file([kernel(f"k{i % 3}", str(100 + 3 * i), correlation=i) for i in range(20)])
    there = (b"", b"{}", b"<!doctype html><title>x</title>", b"name,value\n1,2\n", b"\0" * 64, b"#!/bin/sh\n")
    return [{"run/a.json": trace, "run/there": data} for data in there]


def open_output(path: Path, rng: Random) -> None:
    """Write over what is there, however it got there; nothing but a file of the same kind may have changed."""
    folder = path if path.is_dir() else path.parent
    trace = inferometer.open(folder / "a.json")
    there, aside = folder / "there", folder / "aside"
    aside.write_bytes(b"somebody's")
    kind = rng.choice(("file", "link", "pipe", "folder", "socket", "odd name"))
    if kind != "file" and there.is_dir() and not there.is_symlink():
        shutil.rmtree(there)
    elif kind != "file":
        there.unlink(missing_ok=True)
    if kind == "link":
        there.symlink_to(rng.choice(("aside", "/dev/null", "nowhere", "there")))
    elif kind == "pipe":
        os.mkfifo(there)
    elif kind == "folder":
        there.mkdir()
        (there / "mine.txt").write_text("mine")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(there))
    elif kind == "odd name":
        there = folder / rng.choice(("a\nb", "x" * 300, "\u202e", "no/where", "..", "a\0b", "=1+1"))
    before = _state_of(there)
    try:
        _write_over(there, trace, rng)
    finally:
        trace.close()
        assert aside.read_bytes() == b"somebody's"
        assert kind in ("file", "odd name") or _state_of(there) == before, f"{kind} was changed"
        assert not [each.name for each in folder.iterdir() if each.name.endswith((".part", ".old"))], "left-overs"


def _write_over(there: Path, trace: inferometer.Trace, rng: Random) -> None:
    """As the commands do that write stores, traces, tables, pages, results and what tuning found."""
    form, force = rng.choice(_FORMS), rng.random() < 0.8
    if form == "store":
        trace.save(there, force=force)
    elif form in ("html", "markdown"):
        write_page(str(there), "<!doctype html>" if form == "html" else "# A page", form, force=force)
    elif form == "results":
        with NewFile(there, force=force, kind=RUN_FILE) as place:
            place.write_bytes(encode_run(run_of(result())))
    elif form == "tuning":
        write_findings(there, Findings())
    else:
        inferometer.export(trace, there, to=form, force=force)


def open_dataset(path: Path, rng: Random) -> None:
    """Write results as a dataset over what is there; where it is damaged, it is no file of a dataset, or replaced."""
    folder = path if path.is_dir() else path.parent
    before = {each: _content_of(each) for each in folder.rglob("*") if each.is_symlink() or not each.is_dir()}
    written: list[Path] = []
    try:
        written = write_exchange(run_of(result(error=rng.random())), folder / "data", force=rng.random() < 0.8)
    finally:
        others = before.keys() - set(written)
        assert all(_content_of(each) == before[each] for each in others), "what isn't of the dataset was changed"
        assert not [each.name for each in folder.rglob(".*.part")], "left-overs"


@cache
def datasets() -> Sequence[Files]:
    with TemporaryDirectory() as folder:
        files = write_exchange(run_of(result()), Path(folder), force=False)
        found = {f"run/data/{file.relative_to(folder)}": file.read_bytes() for file in files}
    return [{**found, "run/aside": b"somebody's"}]


def _state_of(path: Path) -> object:
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(mode):
        return path.readlink()
    return stat.S_IFMT(mode), sorted(each.name for each in path.iterdir()) if stat.S_ISDIR(mode) else None


def _content_of(path: Path) -> object:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else _state_of(path)
