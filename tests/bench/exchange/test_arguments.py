"""Arguments that make no tensors are reported, not computed with."""

from typing import Any

import pytest

from inferometer.bench.exchange.axes import bind, read_sizes, values_of
from inferometer.bench.exchange.expressions import evaluate
from inferometer.errors import InputError
from inferometer.operators import operators

PAGED = {"num_seqs": 2, "ctx_len": 5, "num_query_heads": 2, "num_kv_heads": 1, "head_size": 8, "block_size": 4}
MOE = {"token_count": 1, "num_experts": 4, "top_k": 2}


def test_every_operator_has_its_axes_and_nothing_else_has() -> None:
    assert set(read_sizes()) == set(operators())


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("rms_norm", {"token_count": 5}, "argument hidden_size is missing"),
        ("rms_norm", {"token_count": "5", "hidden_size": 8}, "argument token_count: Expected `int`, got `str`"),
        ("rms_norm", {"token_count": 5, "hidden_size": True}, "argument hidden_size: Expected `int`, got `bool`"),
        ("rms_norm", {"token_count": 5, "hidden_size": -1}, "axis H: expected a size, found -1"),
        ("rms_norm", {"token_count": 5, "hidden_size": 8, "eps": "small"}, "argument eps: Expected `float`"),
        ("silu_and_mul", {"shape": []}, r"its arguments give no tensors: last\(shape\)"),
        ("silu_and_mul", {"shape": [3, "x"]}, "argument shape: Expected `int`"),
        ("reshape_and_cache", {"shape": [3], "block_size": 4}, r"its arguments give no tensors: shape\[1\]"),
        ("paged_attention_decode", {**PAGED, "block_size": 0}, "its arguments give no tensors"),
        (
            "paged_attention_decode",
            {**PAGED, "num_seqs": 1 << 60},
            "its arguments give no tensors: .*: expected at most 16,777,216 entries",
        ),
    ],
)
def test_wrong_arguments_are_named(name: str, args: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"{name}: {reason}"):
        bind(operators()[name], args)


def test_more_sequences_than_states_are_refused() -> None:
    args = dict(operators()["gated_delta_rule_update"].tiny[0]) | {"state_count": 2}
    with pytest.raises(InputError, match="3 sequences expected a row each of 2"):
        values_of(operators()["gated_delta_rule_update"], args)


def test_defaults_count_where_an_argument_is_not_given() -> None:
    assert bind(operators()["block_scaled_mm"], {"m": 3, "n": 200, "k": 256}).sizes["N"] == 2


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ceil(a, 4)", 3),
        ("none or [a] * 2", [9, 9]),
        ("empty or [a] * 2", []),
        ("sum(list) + len(list) // 2", 7),
        ("list[1] - a", -7),
        ("None", None),
    ],
)
def test_expressions(expression: str, value: object) -> None:
    assert evaluate(expression, {"a": 9, "none": None, "empty": [], "list": [4, 2]}) == value


@pytest.mark.parametrize("expression", ["a.b", "-a", "a ** a", "unknown(a)", "lambda: a", "b"])
def test_nothing_else_is_an_expression(expression: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        evaluate(expression, {"a": 9})
