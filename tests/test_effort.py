"""What `make test` leaves out is there: each pattern of the list stands for tests."""

from fnmatch import fnmatchcase

import pytest
from tests.effort import LONG


@pytest.fixture(scope="module")
def tests(request: pytest.FixtureRequest) -> list[str]:
    return [item.nodeid for item in request.session.items]


def test_each_pattern_stands_for_tests(tests: list[str], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--quick") or pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("needs all tests to be collected")
    assert [pattern for pattern in LONG if not any(fnmatchcase(test, pattern) for test in tests)] == []
