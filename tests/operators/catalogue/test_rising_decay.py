"""The gated delta rule in chunks where exp of a positive difference is 0 instead, as in Atrex-Bench's references.

Of what the contract allows, a log decay added up, both are the same to the bit; of anything else they aren't.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.operators.agreement import as_float64, check_agrees
from tests.operators.second import chunk_delta_rule_output, chunk_gated_delta_rule_state

from inferometer.operators import require_operator

HALVES: dict[str, Callable[..., Any]] = {
    "chunk_delta_rule_output": chunk_delta_rule_output.second,
    "chunk_gated_delta_rule_state": chunk_gated_delta_rule_state.second,
}
CASES = [(name, place) for name in HALVES for place in range(len(require_operator(name).tiny))]
_EXP = np.exp


def safe_exp(x: Any) -> Any:
    return np.where(np.asarray(x) > 0, 0.0, _EXP(x))


def answers(name: str, tensors: dict[str, Any], settings: dict[str, Any]) -> tuple[Any, ...]:
    found = HALVES[name](**{key: as_float64(tensor) for key, tensor in tensors.items()}, **settings)
    return found if isinstance(found, tuple) else (found,)


def drawn(name: str, place: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator = require_operator(name)
    args = dict(operator.tiny[place])
    return operator, operator.inputs(**args, seed=11), operator.settings_of(args)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_the_log_decay_of_drawn_inputs_never_rises_within_a_chunk(name: str, place: int) -> None:
    _, tensors, settings = drawn(name, place)
    assert (tensors["g"] <= 0).all()
    for chunk in tensors["g"].split(settings["chunk_size"], 1):
        assert (chunk.diff(dim=1) <= 0).all()


@pytest.mark.parametrize(("name", "place"), CASES)
def test_zeros_for_positive_differences_change_no_answer(
    name: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, tensors, settings = drawn(name, place)
    plain = answers(name, tensors, settings)
    with monkeypatch.context() as patched:
        patched.setattr(np, "exp", safe_exp)
        zeroed = answers(name, tensors, settings)
    assert [each.tobytes() for each in zeroed] == [each.tobytes() for each in plain]
    check_agrees(operator, operator.answer(tensors, settings), dict(zip(operator.outputs, zeroed, strict=True)))


@pytest.mark.parametrize("name", HALVES)
def test_where_the_decay_rises_the_two_contracts_differ(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, tensors, settings = drawn(name, 1)
    tensors["g"] = -tensors["g"]
    plain = answers(name, tensors, settings)
    monkeypatch.setattr(np, "exp", safe_exp)
    assert any(not np.allclose(one, other) for one, other in zip(plain, answers(name, tensors, settings), strict=True))
