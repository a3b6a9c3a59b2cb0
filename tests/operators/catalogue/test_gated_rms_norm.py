"""The gate's kinds."""

import pytest

from inferometer.errors import UnknownName
from inferometer.operators.catalogue.gated_rms_norm import cost, work


def test_an_unknown_activation_is_refused() -> None:
    for ask in (cost, work):
        with pytest.raises(UnknownName, match="gelu"):
            ask(rows=1, hidden_size=8, activation="gelu")
