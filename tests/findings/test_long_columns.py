"""What is found in long traces, whose columns are looked at batch by batch and kept lean, is what is found in short."""

from pathlib import Path
from typing import Any

import pytest
from tests.long_columns import FILES, make_long

import inferometer
from inferometer.findings.first_look import first_look


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
    make_long(monkeypatch)
    assert told(path) == short
