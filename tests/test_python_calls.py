"""How often Python is called for each further launch or event: a count, so it is the same on any machine.

Analyses are over whole columns, and readers over batches. A loop over launches that slips into one of them costs
several calls for each launch, and a step more in a reader one for each event.
"""

import contextlib
import io
import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Final

import polars as pl
import pytest
from tests.formats.native.library_at_hand import needs_library
from tests.generated_traces import generated_trace
from tools.kineto_maker import Options

from inferometer.commands.main import main
from inferometer.formats.native.library import VARIABLE

STEPS: Final = (30, 60)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of the same model, one of twice as many steps."""
    folder = tmp_path_factory.mktemp("files")
    short, long = (folder / f"{steps}.json" for steps in STEPS)
    for steps, file in zip(STEPS, (short, long), strict=True):
        file.write_bytes(generated_trace(Options(steps=steps, layers=4, lean=True))[0])
    return short, long


@pytest.fixture(scope="module")
def stores(files: tuple[Path, Path]) -> tuple[Path, Path]:
    """The same, imported."""
    short, long = (file.with_suffix(".ifm") for file in files)
    for file, store in zip(files, (short, long), strict=True):
        run("import", file, "-o", store)
    return short, long


def run(*words: object) -> None:
    """A command, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert not ended.value.code, words


def calls_of(*words: object) -> int:
    """How many functions, Python's or C's, a command calls from Python."""
    calls = 0

    def count(frame: FrameType, event: str, given: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        run(*words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def rows_of(store: Path, table: str) -> int:
    return int(pl.scan_parquet(store / f"{table}*.parquet").select(pl.len()).collect().item())


@pytest.mark.parametrize(
    "command",
    ["summary", "kernels", "groups", "launches", "tree", "steps", "findings", "roofline", "timeline", "compare"],
)
def test_an_analysis_calls_python_no_oftener_for_more_launches(command: str, stores: tuple[Path, Path]) -> None:
    words = [(command, store, *([store] if command == "compare" else [])) for store in stores]
    run(*words[0])  # what is made once, such as decoded names
    few, many = (calls_of(*each) for each in words)
    launches = rows_of(stores[1], "launches") - rows_of(stores[0], "launches")
    assert launches > 2_000
    assert few > 10_000
    assert (many - few) / launches < 2


def test_a_launch_more_in_a_report_costs_a_few_calls(stores: tuple[Path, Path], tmp_path: Path) -> None:
    words = [("report", store, "-o", tmp_path / f"{store.stem}.html") for store in stores]
    few, many = (calls_of(*each) for each in words)
    assert (many - few) / (rows_of(stores[1], "launches") - rows_of(stores[0], "launches")) < 8


KERNELS, IMPORT = ("kernels",), ("import", "-o", "{out}", "--force")


@pytest.mark.parametrize(("command", "most"), [(KERNELS, 0.48), (IMPORT, 2.58)], ids=["kernels", "import"])
def test_an_event_more_calls_python_as_often_as_it_did(
    command: tuple[str, ...],
    most: float,
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some 10 % above what was counted: 0.43 where kernels alone are read, 2.34 for all of an event."""
    monkeypatch.setenv(VARIABLE, "0")
    assert 0.3 < calls_of_an_event(command, files, tmp_path) < most


@needs_library
@pytest.mark.parametrize("command", [KERNELS, IMPORT], ids=["kernels", "import"])
def test_an_event_that_the_library_reads_hardly_calls_python(
    command: tuple[str, ...], files: tuple[Path, Path], tmp_path: Path
) -> None:
    """0.016 and 0.007 were counted: of what is unusual, and of batches."""
    assert calls_of_an_event(command, files, tmp_path) < 0.05


def calls_of_an_event(command: tuple[str, ...], files: tuple[Path, Path], tmp_path: Path) -> float:
    """How many calls an event more in a file takes."""
    words = [[*(word.format(out=tmp_path / "out.ifm") for word in command), file] for file in files]
    run(*words[0])
    few, many = (calls_of(*each) for each in words)
    events = [len(json.loads(file.read_bytes())["traceEvents"]) for file in files]
    return (many - few) / (events[1] - events[0])
