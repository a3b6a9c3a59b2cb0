"""What every test may use: the shared captures, and how hard property tests search."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.register_profile(
    "fuzz", deadline=None, print_blob=True, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real captures beside the repository; a test that needs it skips without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the captures in shared/data beside the repository")
    return SHARED_DATA
