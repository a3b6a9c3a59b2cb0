"""What tests of analyses share."""

from collections.abc import Iterator

import pytest

from inferometer.analyses import batches, intervals


@pytest.fixture(scope="module", params=["whole", "batches"])
def both_sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Columns in one batch, and in batches of three rows, as long ones are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "batches":
            patch.setattr(batches, "AT_ONCE", 3)
            patch.setattr(intervals, "_MANY", 1)
        yield
