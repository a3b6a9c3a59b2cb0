"""The table that a user sent, read as it stands."""

from pathlib import Path

import pytest
from tests.traces import rows

import inferometer
from inferometer import Trace
from inferometer.formats.base import find_format
from inferometer.formats.source import Source

SEED = "000_2e06422ffebd552b.txt"


@pytest.fixture
def path(seeds: Path) -> Path:
    return seeds / SEED


@pytest.fixture
def trace(path: Path) -> Trace:
    return inferometer.open(path)


def test_its_content_finds_the_format(path: Path) -> None:
    assert find_format(Source(path)).name == "path-table"


def test_no_other_seed_is_taken_for_one(seeds: Path) -> None:
    sniff = find_format(Source(seeds / SEED)).sniff
    assert [path.name for path in sorted(seeds.iterdir()) if sniff(Source(path).head)] == [SEED]


def test_all_cells_are_read_and_nothing_is_mended(trace: Trace) -> None:
    assert trace.losses.seen == {"path_totals": 29, "call_paths": 15, "log": 1}
    assert len(trace.losses) == 0
    cells = rows(trace, "path_totals", "order", "backend", "host_ns")
    assert cells[:4] == [
        (0, "triton", 23_529_098_739),
        (1, "triton", 15_229_127_282),
        (2, "triton", 15_228_001_847),
        (3, "triton", 33_104),
    ]
    assert cells[15:18] == [
        (1, "non_triton", 23_885_352_948),
        (2, "non_triton", 15_719_125_696),
        (3, "non_triton", 15_717_982_730),
    ]


def test_the_tree_is_that_of_the_dotted_paths(trace: Trace) -> None:
    assert rows(trace, "call_paths", "depth") == [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 5, 1]
    assert rows(trace, "call_paths", "name")[:5] == [
        "chat_completion",
        "chat_completion",
        "generate",
        "softmax",
        "transformer_forward",
    ]
