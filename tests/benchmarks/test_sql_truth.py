"""What the gate holds answers against is right itself: the statistics by Python's own, ranges by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.sql_truth import main
from tests.nsys_files import GLOBAL_PID, GLOBAL_TID, call, export, kernel, kernels_by_sql, string, write_sqlite
from tools.make_nsys import Options, write_export


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(path: Path, *tables: str) -> dict[str, Any]:
        main(str(path), *tables)
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        return said

    return ask


def test_statistics_are_python_s_own(ask: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    truth = write_export(Options(kernels=1_000), path)
    said = ask(path, "kernels")
    columns = ("count", "total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
    wanted = {name: dict(zip(columns, numbers, strict=True)) for name, numbers in kernels_by_sql(path).items()}
    assert said["tables"]["kernels"] == {name: pytest.approx(row, rel=1e-14) for name, row in wanted.items()}
    assert said["launches"] == 1_000
    assert said["kernel_ns"] == sum(total for _, total in truth["kernels"].values())


def test_a_range_holds_launches_by_their_calls_and_the_innermost_owns_them(ask: Any, tmp_path: Path) -> None:
    work = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID, "bytes": 8, "copyKind": 1}
    path = write_sqlite(
        tmp_path / "run.sqlite",
        export(
            RUNTIME=[call(10, 5, correlationId=1), call(30, 5, correlationId=2), call(90, 5, correlationId=3)],
            KERNEL=[kernel(100, 20, correlationId=1), kernel(110, 40, correlationId=2)],
            MEMCPY=[{"start": 200, "end": 207, "correlationId": 3, **work}],
            SYNCHRONIZATION=[],
            NVTX_EVENTS=[
                {"start": 0, "end": 50, "globalTid": GLOBAL_TID, "text": "outer", "textId": None},
                {"start": 30, "end": 40, "globalTid": GLOBAL_TID, "text": None, "textId": string("step")},
            ],
        ),
    )
    said = ask(path, "spans", "devices", "calls")
    columns = ("instances", "host_total_ns", "launches", "summed_ns", "own_launches", "own_summed_ns")
    assert {name: tuple(row[column] for column in columns) for name, row in said["tables"]["spans"].items()} == {
        "outer": (1, 50, 2, 60, 1, 20),
        "step": (1, 10, 1, 40, 1, 40),
    }
    assert said["tables"]["devices"] == {"gpu:0": {"busy_ns": 57, "summed_ns": 67, "launches": 3, "window_ns": 107}}
    assert said["tables"]["calls"].keys() == {"cudaLaunchKernel"}
    assert said["rows"] == {"launches": 3, "calls": 3, "spans": 2}
