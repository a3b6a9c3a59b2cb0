"""Processes of candidates for tests that ask what is made of an answer, not how the process is guarded."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from tests.bench.warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    """A Python that has loaded torch."""
    if find_spec("torch") is None:
        pytest.skip("torch isn't installed")
    with WarmPython() as python:
        yield python


@pytest.fixture(scope="module")
def warm(warm_python: WarmPython) -> Iterator[None]:
    """Processes of candidates are forked of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inferometer.bench.isolation.Supervised", warm_python.start)
        yield
