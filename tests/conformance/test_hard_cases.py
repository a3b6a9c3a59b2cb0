"""Every operator has a hard case of each kind or says why not, and our own kernels get all of them right."""

import importlib

import pytest

from inferometer.bench.hard_inputs import MOST_BYTES
from inferometer.operators import operators
from inferometer.operators.hard_cases import KINDS

NAMES = list(operators())
OTHERS = {"offset", "ties", "masked", "one expert"}


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_declared_or_left_out_with_a_reason(name: str) -> None:
    hard = operators()[name].hard
    found = {case.kind for case in hard.cases}
    assert found <= set(KINDS) | OTHERS
    assert found | set(hard.left_out) >= set(KINDS)
    assert not found & set(hard.left_out)
    assert all(len(reason) > 10 for reason in hard.left_out.values())
    assert len({case.name for case in hard.cases}) == len(hard.cases)
    assert all(case.name and case.wanted and ": " not in case.name for case in hard.cases)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_and_plain_torch_agree_on_them(name: str) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    from inferometer.backends.torch.catalogue import load_kernel
    from inferometer.bench.comparison import compare_outputs

    operator, kernel = operators()[name], load_kernel(name)
    for shape in operator.tiny:
        for case in operator.hard.cases:
            tensors, args = operator.hard.draw(case, operator.inputs, operator.hard.few(shape), seed=3, device="cpu")
            wanted = operator.answer(tensors, args)
            copies = [tensor.clone() for tensor in tensors.values()]
            try:
                found = kernel(*copies, **operator.settings_of(args))
            except (IndexError, RuntimeError, ValueError):
                assert case.may_raise
                continue
            checks = compare_outputs(operator, found, wanted, shape, tensors, case.left_open)
            assert [f"{case.name}: {check.reason}" for check in checks if check.reason] == []


@pytest.mark.parametrize("name", NAMES)
def test_they_are_tiny_whatever_the_shape(name: str) -> None:
    """Sizes that a kernel is made for stay; only weights may be large, and then the cases don't run."""
    operator = operators()[name]
    for shape in operator.catalogue().shapes:
        few = operator.hard.few(shape.args)
        assert set(few) == set(shape.args)
        cut = operator.cost(**few).read_bytes
        assert cut <= MOST_BYTES or operator.axes is None or "moe" in operator.axes.op_type
        assert cut <= operator.cost(**shape.args).read_bytes


@pytest.mark.parametrize("name", NAMES)
def test_usual_inputs_stay_as_they_were_drawn(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    operator = operators()[name]
    drawn = operator.inputs(**operator.tiny[0], seed=5)
    before = {each: tensor.clone() for each, tensor in drawn.items()}
    for case in operator.hard.cases:
        if not case.args:
            changed = case.change(drawn, operator.tiny[0])
            assert all(torch.equal(drawn[each].float(), before[each].float()) for each in drawn), case.name
            assert all(changed[each].dtype == drawn[each].dtype for each in changed), case.name


def test_modules_of_shared_cases_are_no_operators() -> None:
    for name in ("hard_norms", "hard_attention", "hard_routing"):
        assert not hasattr(importlib.import_module(f"inferometer.operators.catalogue.{name}"), "OPERATOR")
