"""Every operator of the catalogue: its figures, its reference against a second one, its inputs, its bounds.

The second implementation is `tests/operators/second/NAME.py`: `second(*tensors, **settings)` in float64 numpy, and
`eager(*tensors, **settings)`, the plain torch whose FLOPs the published formula counts, or `COUNTED_OTHERWISE`: why
there is none. `BYTES_OTHERWISE` says why the published bytes are not those of inputs and outputs.
"""

import importlib
from typing import Any

import pytest
from tests.operators.agreement import as_float64, check_agrees
from tests.operators.flop_counting import count_flops

from inferometer.hardware.known import require_device
from inferometer.operators import operators
from inferometer.operators.bounds import bounds_of

NAMES = list(operators())
TINY = [(name, place) for name in NAMES for place in range(len(operators()[name].tiny))]


def second_of(name: str) -> Any:
    return importlib.import_module(f"tests.operators.second.{name}")


@pytest.mark.parametrize("name", NAMES)
def test_published_work_and_bytes_follow_from_the_shape(name: str) -> None:
    operator = operators()[name]
    for shape in operator.catalogue().shapes:
        own, found = operator.cost(**shape.args), shape.published
        assert own.flops in (None, found.flops), shape.label
        assert own.read_bytes == found.read_bytes, shape.label
        assert own.written_bytes in (None, found.written_bytes), shape.label


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_is_never_above_the_deployed_kernel(name: str) -> None:
    operator, device = operators()[name], require_device("XPU-A")
    for shape in operator.catalogue().shapes:
        bounds = bounds_of(operator.work(**shape.args), device)
        assert bounds.bound_ns is not None
        assert bounds.bound_ns <= shape.published.t_prod_ns["XPU-A"], (shape.label, bounds)


@pytest.mark.parametrize("name", NAMES)
def test_the_least_work_is_not_above_the_published(name: str) -> None:
    operator = operators()[name]
    for shape in operator.catalogue().shapes:
        work, cost = operator.work(**shape.args), operator.published_cost(shape)
        assert cost.written_bytes is not None
        assert work.moved_bytes <= cost.read_bytes + cost.written_bytes, shape.label


@pytest.mark.parametrize(("name", "place"), TINY)
def test_the_reference_agrees_with_a_second_implementation(name: str, place: int) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator = operators()[name]
    args = dict(operator.tiny[place])
    tensors = operator.inputs(**args, seed=7)
    kept = {key: tensor.clone() for key, tensor in tensors.items()}
    found = operator.answer(tensors, args)
    for key, tensor in tensors.items():
        assert tensor.dtype == kept[key].dtype
        assert as_float64(tensor).tobytes() == as_float64(kept[key]).tobytes(), f"{key} was changed"
    wanted = second_of(name).second(*map(as_float64, tensors.values()), **operator.settings_of(args))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    check_agrees(operator, found, dict(zip(operator.outputs, wanted, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_inputs_follow_from_the_seed(name: str) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator = operators()[name]
    one, again, other = (operator.inputs(**operator.tiny[-1], seed=seed) for seed in (1, 1, 2))
    assert all(as_float64(one[key]).tobytes() == as_float64(again[key]).tobytes() for key in one)
    assert any(as_float64(one[key]).tobytes() != as_float64(other[key]).tobytes() for key in one)


@pytest.mark.parametrize(("name", "place"), TINY)
def test_an_eager_run_has_the_flops_and_bytes_of_the_formula(name: str, place: int) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator, second = operators()[name], second_of(name)
    args = dict(operator.tiny[place])
    tensors = operator.inputs(**args, seed=3)
    cost, found = operator.cost(**args), operator.answer(tensors, args)
    if not hasattr(second, "BYTES_OTHERWISE"):
        assert sum(tensor.nbytes for tensor in tensors.values()) == cost.read_bytes
        assert cost.written_bytes in (None, sum(tensor.nbytes for tensor in found.values()))
    if hasattr(second, "COUNTED_OTHERWISE"):
        pytest.skip(second.COUNTED_OTHERWISE)
    counted = count_flops(lambda: second.eager(*tensors.values(), **operator.settings_of(args)))
    assert counted == cost.flops
