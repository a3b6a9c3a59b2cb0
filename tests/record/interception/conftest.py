"""Tests of the interception run both ways: by a dispatch mode, and by the observer where it can be built."""

from functools import partial
from typing import Any

import pytest

from inferometer.record.interception.observer.build import find_observer


@pytest.fixture(params=["mode", "observer"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which way the test's `Interception` sees ops."""
    chosen: str = request.param
    if chosen == "observer":
        observer = request.getfixturevalue("observer")
        real = request.module.Interception
        monkeypatch.setattr(request.module, "Interception", partial(real, observer=observer))
    return chosen


@pytest.fixture(scope="session")
def observer() -> Any:
    """The observer's module."""
    pytest.importorskip("torch", reason="torch isn't installed")
    found = find_observer()
    if found.module is None:
        pytest.skip(f"the observer can't be built here: {found.why}")
    return found.module
