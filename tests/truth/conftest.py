"""The tests of one capture run one after the other in one process, since reading it as plain rows takes seconds."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
PARAMETERS = ("file", "name", "path")


def capture_of(item: pytest.Item) -> str:
    """The name of the capture that a test is about; none of other tests."""
    values = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((str(values[name]) for name in PARAMETERS if name in values), "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and (name := capture_of(item)):
            item.add_marker(pytest.mark.xdist_group(name))
