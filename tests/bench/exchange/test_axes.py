"""What operators declare of their tensors, against tensors as they are drawn and answered."""

from math import prod
from typing import Any

import pytest
from tests.bench.exchange.samples import every_shape

from inferometer.bench.exchange.axes import bind, values_of
from inferometer.operators import operators
from inferometer.operators.operator import Operator

torch = pytest.importorskip("torch", reason="torch isn't installed")

_LARGEST = 3_000_000  # elements of inputs that a test draws


def small_shapes(operator: Operator) -> list[dict[str, Any]]:
    """The tiny ones, and the first two published ones that are small."""
    published = [dict(shape.args) for shape in operator.catalogue().shapes]
    small = [args for args in published if elements(operator, args) < _LARGEST]
    return [*(dict(args) for args in operator.tiny), *small[:2]]


def elements(operator: Operator, args: dict[str, Any]) -> int:
    """Of all inputs."""
    bound = bind(operator, args)
    return sum(prod(size or 0 for size in bound.shape(tensor)) for tensor in bound.inputs.values())


def facts(tensors: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    """Names in order, dtypes and shapes."""
    return [(name, str(each.dtype).removeprefix("torch."), tuple(each.shape)) for name, each in tensors.items()]


@pytest.mark.parametrize("name", list(operators()))
def test_inputs_have_the_axes_that_are_declared(name: str) -> None:
    operator = operators()[name]
    for args in small_shapes(operator):
        bound = bind(operator, args)
        drawn = facts(operator.inputs(**args, seed=1))
        assert [(key, each.dtype, bound.shape(each)) for key, each in bound.inputs.items()] == drawn


@pytest.mark.parametrize("name", list(operators()))
def test_the_reference_takes_our_integers_and_gives_the_outputs_that_are_declared(name: str) -> None:
    operator = operators()[name]
    for args in operator.tiny:
        drawn, integers = operator.inputs(**args, seed=1), values_of(operator, args)
        assert set(integers) == {key for key, each in drawn.items() if not each.dtype.is_floating_point}
        own = {key: torch.from_numpy(each) for key, each in integers.items()}
        assert set(facts(own)) <= set(facts(drawn))
        bound = bind(operator, args)
        for (key, dtype, shape), each in zip(
            facts(operator.answer({**drawn, **own}, args)), bound.outputs.values(), strict=True
        ):
            assert dtype == each.dtype, key
            known = bound.shape(each)
            assert tuple(size if size is not None else found for size, found in zip(known, shape, strict=True)) == shape


@pytest.mark.parametrize("name", list(operators()))
def test_lengths_and_offsets_are_those_that_are_drawn(name: str) -> None:
    operator = operators()[name]
    for args in operator.tiny:
        drawn, integers = operator.inputs(**args, seed=1), values_of(operator, args)
        for key in set(integers) & {"cu_seqlens_q", "cu_seqlens_k", "seqused_k", "seq_lens"}:
            assert drawn[key].tolist() == integers[key].tolist()


@pytest.mark.parametrize("name", list(operators()))
def test_every_published_shape_has_sizes(name: str) -> None:
    operator = operators()[name]
    for _, args in every_shape(operator):
        sizes = bind(operator, args).sizes
        unknown = {axis for axis, size in sizes.items() if size is None}
        assert unknown == ({"P", "B"} if name == "moe_align_block_size" else set())


def test_pages_are_scattered_experts_differ_and_padded_tokens_have_no_slot() -> None:
    paged = values_of(operators()["unified_attention"], operators()["unified_attention"].tiny[0])["block_table"]
    used = [*paged[0, :1], *paged[1, :4], *paged[2, :3]]
    assert len(set(used)) == len(used)
    assert used != sorted(used)
    ids = values_of(operators()["fused_moe"], operators()["fused_moe"].tiny[1])["topk_ids"]
    assert all(len(set(row)) == len(row) for row in ids.tolist())
    args = {"shape": [9, 1, 8], "block_size": 4, "padded_tokens": 3}
    slots = values_of(operators()["reshape_and_cache"], args)["slot_mapping"].tolist()
    assert slots.count(-1) == 3
    assert len(set(slots)) == 7
