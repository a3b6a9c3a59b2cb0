"""How a candidate is called, and what of that which it returns is its answer."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inferometer.bench.contracts import contract_of, made_of
from inferometer.bench.process.calling import BadCandidate, FunctionCall, ModelCall
from inferometer.bench.process.contract import BadAnswer, Contract
from inferometer.operators import operators, require_operator

torch: Any = pytest.importorskip("torch", reason="torch isn't installed")

X, W = torch.ones(2, 4), torch.full((4,), 3.0)
NORM = Contract("rms_norm", ("eps",), {}, ("out",))
ADD = Contract("fused_add_rms_norm", ("eps",), {}, ("out", "residual"), {"x": "out", "residual": "residual"})
DELTA = Contract("gated_delta_rule_update", (), {}, ("out", "final_state"), {"initial_state": "final_state"})
QUANT = Contract("fp8_dynamic_per_token_quant", (), {}, ("q", "scale"))
MADE = [("out", "float32", [2, 4])]


def call(function: Callable[..., Any], contract: Contract = NORM, tensors: dict[str, Any] | None = None) -> list[Any]:
    """Its outputs, in order."""
    given = {"x": X, "weight": W} if tensors is None else tensors
    return contract.in_order(FunctionCall(function, contract)(given, {"eps": 1.0, "token_count": 2}, MADE), given)


def call_model(model: type[Any], contract: Contract = NORM, args: dict[str, Any] | None = None) -> list[Any]:
    given = {"x": X, "weight": W}
    found = ModelCall(model, contract)(given, {"eps": 1.0, "hidden_size": 4} if args is None else args, MADE)
    return contract.in_order(found, given)


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_named_outputs_come_in_any_order(kind: Callable[..., Any]) -> None:
    assert QUANT.in_order(kind([("scale", W), ("q", X)]), {"x": X}) == [X, W]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"q": X}, "expected outputs called q, scale, found q"),
        ({"q": X, "scale": W, "more": W}, "expected outputs called q, scale, found q, scale, more"),
        ({"q": X, "scales": W}, "found q, scales"),
        ({}, "expected outputs called q, scale, found none"),
        ({0: X, "scale": W}, "keys that aren't texts"),
        (None, "expected q, scale, found None: this operator updates no input in place"),
    ],
)
def test_names_must_be_the_contract_s(found: Any, words: str) -> None:
    with pytest.raises(BadAnswer, match=words):
        QUANT.in_order(found, {"x": X})


def test_what_is_returned_computes_nothing_as_it_is_read() -> None:
    class Late(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise AssertionError

        def __iter__(self) -> Iterator[str]:
            raise AssertionError

    class LateTuple(tuple[Any, ...]):
        def __iter__(self) -> Iterator[Any]:
            raise AssertionError

    class LateList(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            raise AssertionError

    class LateName(str):
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = str.__hash__

    for late in (Late(q=X, scale=W), LateTuple((X, W)), LateList([X, W])):
        assert QUANT.in_order(late, {}) == [X, W]
    with pytest.raises(BadAnswer, match="aren't texts"):
        QUANT.in_order({LateName("q"): X, LateName("scale"): W}, {})


def test_updates_in_place_may_be_returned_or_not() -> None:
    given = {"x": X, "residual": W}
    assert ADD.in_order(None, given) == ADD.in_order((), given) == ADD.in_order((X, W), given) == [X, W]
    held = {"q": X, "initial_state": W}
    assert DELTA.in_order(X * 2, held)[1] is W
    assert DELTA.in_order((X, X), held) == [X, X]
    with pytest.raises(BadAnswer, match="expected out, found None: only initial_state may hold an output in place"):
        DELTA.in_order(None, held)


def test_functions_are_given_the_memory_of_outputs_that_they_name() -> None:
    def fills(x: Any, weight: Any, out: Any, eps: float) -> None:
        out.copy_(x * weight + eps)

    def returns(x: Any, weight: Any, eps: float, *, out: Any) -> Any:
        return out.copy_(x * weight + eps)

    assert torch.equal(call(fills)[0], X * W + 1)
    assert torch.equal(call(returns)[0], X * W + 1)


def test_memory_may_be_filled_next_to_an_update() -> None:
    def fills(x: Any, residual: Any, out: Any, eps: float) -> None:
        out.copy_(x + residual)
        residual.add_(x)

    held = W.expand(2, 4).clone()
    found = call(fills, ADD, {"x": X, "residual": held})
    assert found[1] is held
    assert torch.equal(found[0], X + W)


def test_memory_of_unknown_size_is_refused() -> None:
    def fills(x: Any, weight: Any, scale: Any, **_: Any) -> None: ...

    with pytest.raises(BadCandidate, match="memory of scale, whose size only the inputs' values tell"):
        call(fills, QUANT)


def test_models_get_tensors_by_name_or_in_order() -> None:
    class ByName:
        def forward(self, weight: Any, x: Any) -> Any:
            return {"out": x * weight}

    class InOrder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, eps: float) -> None:
            super().__init__()
            self.eps = eps

        def forward(self, a: Any, b: Any) -> Any:
            return a * b + self.eps

    class Mixed:
        def forward(self, b: Any, x: Any) -> Any:
            return x

    assert torch.equal(call_model(ByName)[0], X * W)
    assert torch.equal(call_model(InOrder)[0], X * W + 1)
    with pytest.raises(BadCandidate, match="forward takes b, x: expected x, weight"):
        call_model(Mixed)


def test_constructors_get_what_they_name() -> None:
    class Bare(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, weight: Any) -> Any:
            return x

    class Asks:
        def __init__(self, block: int) -> None: ...

    class Defaults:
        def __init__(self, top_k: int) -> None:
            self.top_k = top_k

        def forward(self, x: Any, weight: Any, eps: float) -> Any:
            return x * self.top_k + eps

    assert call_model(Bare) == [X]
    with pytest.raises(BadCandidate, match="its constructor asks for block: expected some of eps, hidden_size"):
        call_model(Asks)
    contract = Contract("rms_norm", ("eps", "top_k"), {"top_k": 5}, ("out",))
    assert torch.equal(call_model(Defaults, contract)[0], X * 5 + 1)


def test_an_object_is_kept_while_arguments_are_the_same() -> None:
    made = []

    class Counted:
        def __init__(self, eps: float) -> None:
            made.append(eps)

        def forward(self, x: Any, weight: Any) -> Any:
            return x

    model = ModelCall(Counted, NORM)
    for args in ({"eps": 1.0}, {"eps": 1.0}, {"eps": 2.0}):
        model({"x": X, "weight": W}, args, MADE)
    assert made == [1.0, 2.0]


@pytest.mark.parametrize("name", operators())
def test_memory_of_outputs_is_that_of_the_reference(name: str) -> None:
    operator = require_operator(name)
    assert Contract(**contract_of(operator)).outputs == operator.outputs
    args = operator.tiny[0]
    wanted = operator.answer(operator.inputs(**args, seed=1), args)
    made = {each: (dtype, shape) for each, dtype, shape in made_of(operator, args)}
    assert set(wanted) - set(made) <= {"sorted_token_ids", "expert_ids"}
    for each, found in made.items():
        assert found == (str(wanted[each].dtype).removeprefix("torch."), list(wanted[each].shape))
