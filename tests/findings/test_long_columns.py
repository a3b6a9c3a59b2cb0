"""What is found in long traces, whose columns are looked at batch by batch and kept lean, is what is found in short."""

from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.analyses import batches, intervals
from inferometer.findings.first_look import first_look
from inferometer.trace import lean

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "data" / "traces"
FILES = (
    *(ROOT / "samples" / name for name in ("decode.json.gz", "nsys.sqlite.gz", "h200/ncu_raw.csv.gz")),
    *sorted(REAL.glob("kineto/*nccl*")),
    *sorted(REAL.glob("kineto/v100_graph_branches*")),
    *sorted(REAL.glob("kineto/mi300_*qwen3*")),
)


def told(path: Path) -> Any:
    with inferometer.open(path) as trace:
        return rounded(first_look(trace, top=100).as_json())


def rounded(value: Any) -> Any:
    """Numbers to ten digits: sums of fractions depend on their order."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_length_makes_no_difference(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not path.exists():
        pytest.skip(f"needs {path}")
    short = told(path)
    monkeypatch.setattr(batches, "AT_ONCE", 50)
    monkeypatch.setattr(intervals, "_MANY", 1)
    monkeypatch.setattr(lean, "_AT_ONCE", 50)
    monkeypatch.setattr(lean, "_LARGE", 0)
    assert told(path) == short
