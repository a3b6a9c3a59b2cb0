"""Arguments that make no tensors are reported, not computed with."""

from typing import Any

import pytest
from msgspec.structs import replace

from inferometer.bench.exchange.axes import bind, values_of
from inferometer.errors import InputError
from inferometer.operators import operators

PAGED = {"num_seqs": 2, "ctx_len": 5, "num_query_heads": 2, "num_kv_heads": 1, "head_size": 8, "block_size": 4}
MOE = {"token_count": 1, "num_experts": 4, "top_k": 2}


def test_every_operator_of_ours_declares_its_axes() -> None:
    assert [name for name, each in operators().items() if each.axes is None] == []


def test_an_operator_without_axes_is_refused_and_the_hint_says_what_to_declare() -> None:
    with pytest.raises(InputError, match="rms_norm: it declares no axes of its tensors") as caught:
        bind(replace(operators()["rms_norm"], axes=None), {"token_count": 5, "hidden_size": 8})
    assert caught.value.hint == "Give its Operator `axes`: inferometer.operators.axes has an explanation."


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("rms_norm", {"token_count": 5}, "argument hidden_size is missing"),
        ("rms_norm", {"token_count": "5", "hidden_size": 8}, "argument token_count: Expected `int`, got `str`"),
        ("rms_norm", {"token_count": 5, "hidden_size": True}, "argument hidden_size: Expected `int`, got `bool`"),
        ("rms_norm", {"token_count": 5, "hidden_size": -1}, "axis H: expected a size, found -1"),
        ("rms_norm", {"token_count": 5, "hidden_size": 8, "eps": "small"}, "argument eps: Expected `float`"),
        ("silu_and_mul", {"shape": []}, "its arguments give no tensors: axis W: shape has no entry -1: it has 0"),
        ("silu_and_mul", {"shape": [3, "x"]}, "argument shape: Expected `int`"),
        (
            "reshape_and_cache",
            {"shape": [3], "block_size": 4},
            "its arguments give no tensors: axis h: shape has no entry 1: it has 1",
        ),
        (
            "paged_attention_decode",
            {**PAGED, "block_size": 0},
            "its arguments give no tensors: axis NB: integer division or modulo by zero",
        ),
        (
            "paged_attention_decode",
            {**PAGED, "num_seqs": 1 << 60},
            "its arguments give no tensors: keys: expected at most 16,777,216 entries, found 1,152,921,504,606,846,976",
        ),
    ],
)
def test_wrong_arguments_are_named(name: str, args: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"{name}: {reason}"):
        bind(operators()[name], args)


def test_more_sequences_than_states_are_refused() -> None:
    args = dict(operators()["gated_delta_rule_update"].tiny[0]) | {"state_count": 2}
    with pytest.raises(InputError, match="no tensors: initial_state_indices: 3 sequences expected a row each of 2"):
        values_of(operators()["gated_delta_rule_update"], args)


def test_defaults_count_where_an_argument_is_not_given() -> None:
    assert bind(operators()["block_scaled_mm"], {"m": 3, "n": 200, "k": 256}).sizes["N"] == 2
