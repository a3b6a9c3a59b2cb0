"""FP8 of rows: values by the definition of e4m3, to a neighbour at most; nothing overflows."""

import numpy as np
import pytest
from tests.operators.agreement import as_float64
from tests.operators.second.fp8_dynamic_per_token_quant import LARGEST, rounded, second

from inferometer.operators.catalogue.fp8_dynamic_per_token_quant import inputs, reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


@pytest.mark.parametrize("fp8_dtype", LARGEST)
def test_rounding_by_the_definition_is_that_of_torch(fp8_dtype: str) -> None:
    halves = np.arange(-1000, 1000) / 2
    values = np.concatenate([halves[abs(halves) <= LARGEST[fp8_dtype]], halves / 2**14])
    cast = torch.tensor(values).to(getattr(torch, fp8_dtype.replace("fp8", "float8")))
    np.testing.assert_array_equal(as_float64(cast), rounded(values, fp8_dtype))


@pytest.mark.parametrize("fp8_dtype", LARGEST)
def test_all_but_a_few_values_are_the_nearest_and_none_is_beyond_a_neighbour(fp8_dtype: str) -> None:
    x = inputs(token_count=40, hidden_size=512, seed=1)["x"]
    found = as_float64(reference(x, fp8_dtype=fp8_dtype)[0])
    wanted = second(as_float64(x), fp8_dtype=fp8_dtype)[0]
    assert (found == wanted).mean() > 0.999
    assert (abs(found - wanted) <= 0.126 * abs(wanted)).all()


@pytest.mark.parametrize("fp8_dtype", LARGEST)
def test_the_largest_magnitude_of_a_row_becomes_the_largest_of_the_type(fp8_dtype: str) -> None:
    x = inputs(token_count=500, hidden_size=65, zero_rows=3, seed=2)["x"]
    q = as_float64(reference(x, fp8_dtype=fp8_dtype)[0])
    assert np.isfinite(q).all()
    assert set(abs(q).max(1)[:-3]) == {LARGEST[fp8_dtype]}
    assert not q[-3:].any()
