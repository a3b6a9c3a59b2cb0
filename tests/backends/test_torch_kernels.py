"""Kernels in plain PyTorch: right at every tiny shape, dense or not; they change nothing and wait for nothing."""

import inspect
import re
from typing import Any

import pytest

from inferometer.backends.compile.compiler import IN_PARTS, LEFT_OUT
from inferometer.backends.torch.catalogue import KERNELS, load_kernel
from inferometer.bench.comparison import compare_outputs
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")

SEEDS = (1, 2)
SPARE = 5  # elements between the rows of a strided input: rows begin at odd places

WAITS = {
    "attention_forward": "of several sequences, in none of the published shapes, it needs the lengths",
    "fp8_blockscale_fused_moe": "experts without a token aren't converted from fp8",
    "moe_align_block_size": "the length of two outputs is a number on the device",
}
"""Kernels whose host needs a number from the device, and why."""

CASES = [
    pytest.param(name, args, id=f"{name}-{place}")
    for name in KERNELS
    if name in operators()
    for place, args in enumerate(operators()[name].tiny)
]


def draw(name: str, args: Any, seed: int) -> dict[str, Any]:
    tensors: dict[str, Any] = operators()[name].inputs(**args, seed=seed)
    return tensors


def run(name: str, args: Any, tensors: dict[str, Any]) -> list[Any]:
    """A kernel's outputs."""
    with torch.no_grad():
        found = load_kernel(name)(*tensors.values(), **operators()[name].settings_of(args))
    return list(found) if isinstance(found, tuple | list) else [found]


def wrong(name: str, found: list[Any], wanted: dict[str, Any]) -> list[str]:
    """What is wrong with each output, in words."""
    checks = compare_outputs(operators()[name], found, wanted)
    return [f"{check.output}: {check.reason}" for check in checks if not check.is_right]


def as_bytes(tensor: Any) -> Any:
    return tensor.contiguous().view(-1).view(torch.uint8)


def strided(tensor: Any) -> Any:
    """An equal view whose rows lie further apart, NaN between them; integers and vectors as they are."""
    if not tensor.dtype.is_floating_point or tensor.dim() < 2:
        return tensor
    *rows, width = tensor.shape
    wide = torch.full((*rows, width + SPARE), float("nan")).to(tensor.dtype)
    view = wide[..., :width]
    view.copy_(tensor)
    return view


@pytest.mark.parametrize(("name", "args"), CASES)
def test_answers_are_right_and_inputs_stay(name: str, args: Any) -> None:
    operator = operators()[name]
    for seed in SEEDS:
        tensors = draw(name, args, seed)
        before = {key: tensor.clone() for key, tensor in tensors.items()}
        assert wrong(name, run(name, args, tensors), operator.answer(before, args)) == []
        for key in set(tensors) - set(operator.updates):
            assert torch.equal(as_bytes(tensors[key]), as_bytes(before[key])), key


@pytest.mark.parametrize(("name", "args"), CASES)
def test_inputs_needn_t_be_dense(name: str, args: Any) -> None:
    tensors = draw(name, args, SEEDS[0])
    wanted = operators()[name].answer(tensors, args)
    assert wrong(name, run(name, args, {key: strided(tensor) for key, tensor in tensors.items()}), wanted) == []


def check_without_numbers(name: str, args: Any) -> None:
    """Tensors of the device `meta` have shapes and dtypes, but no numbers, and mix with no others."""
    tensors = draw(name, args, SEEDS[0])
    found = run(name, args, {key: tensor.to("meta") for key, tensor in tensors.items()})
    wanted = operators()[name].answer(tensors, args).values()
    assert [(out.shape, out.dtype) for out in found] == [(out.shape, out.dtype) for out in wanted]
    assert {out.device.type for out in found} == {"meta"}


@pytest.mark.parametrize(("name", "args"), [case for case in CASES if case.values[0] not in WAITS])
def test_no_number_is_waited_for_and_all_stays_on_the_device(name: str, args: Any) -> None:
    check_without_numbers(name, args)


@pytest.mark.parametrize("name", WAITS)
def test_what_waits_for_numbers_does_so_only_for_them(name: str) -> None:
    reasons = []
    for args in operators()[name].tiny:
        try:
            check_without_numbers(name, args)
        except (RuntimeError, NotImplementedError) as error:
            reasons.append(str(error))
    assert reasons
    assert all(re.search(r"item\(\) cannot be called on meta|Cannot copy out of meta", each) for each in reasons)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_called_as_its_operator_is(name: str) -> None:
    operator = operators()[name]
    named = inspect.signature(load_kernel(name)).parameters.values()
    settings = {each.name: each.default for each in named if each.kind is each.KEYWORD_ONLY}
    of_reference = inspect.signature(operator.reference).parameters.values()
    tensors = max((list(draw(name, args, SEEDS[0])) for args in operator.tiny), key=len)  # the last may be optional
    assert [each.name for each in named if each.kind is each.POSITIONAL_OR_KEYWORD] == tensors
    assert settings == {each.name: each.default for each in of_reference if each.kind is each.KEYWORD_ONLY}
    assert set(settings) == set(operator.settings)


@pytest.mark.parametrize("name", sorted(set(KERNELS) - LEFT_OUT))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_torch_compile_takes_it_as_one_graph_unless_it_waits(name: str) -> None:
    operator = operators()[name]
    tensors = draw(name, operator.tiny[0], SEEDS[0])
    wanted = operator.answer(tensors, operator.tiny[0])
    torch.compiler.reset()
    traced = torch.compile(load_kernel(name), backend="aot_eager", fullgraph=name not in IN_PARTS, dynamic=False)
    with torch.no_grad():
        found = traced(*tensors.values(), **operator.settings_of(operator.tiny[0]))
    assert wrong(name, list(found) if isinstance(found, tuple | list) else [found], wanted) == []


def test_what_is_compiled_in_parts_or_not_at_all_is_what_waits() -> None:
    assert set(WAITS) == IN_PARTS | LEFT_OUT


def test_every_operator_has_a_kernel() -> None:
    assert set(KERNELS) == set(operators())
