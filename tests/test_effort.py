"""What `make test` leaves out is there, and `make test-all` runs it."""

from pathlib import Path

import pytest
from tests.effort import LONG

TESTS = Path(__file__).parent


@pytest.mark.parametrize("pattern", LONG)
def test_each_pattern_stands_for_files_of_tests(pattern: str) -> None:
    assert [path for path in TESTS.rglob("test_*.py") if path.match(pattern)]

