"""Unusual inputs: as many tokens and keys as usual, right for every reference, and rows apart hold the same values."""

import pytest

from inferometer.bench.variants import lay_apart, spread, vary
from inferometer.operators import operators, require_operator


@pytest.mark.parametrize(("length", "count"), [(256, 2), (256, 16), (7, 3), (2, 5), (8192, 255)])
def test_lengths_add_up_and_differ(length: int, count: int) -> None:
    found = spread(length, count)
    assert (sum(found), len(found)) == (length * count, count)
    assert min(found) >= 1
    assert len(set(found)) > 1


def test_equal_lengths_are_mixed_and_unequal_ones_stay() -> None:
    attention = require_operator("unified_attention")
    shape = next(shape for shape in attention.catalogue().shapes if len(shape.args["seq_lens"]) > 1)
    (found,) = vary(attention, shape.args)
    assert found[0] == "mixed"
    assert sum(found[1]["seq_lens"]) == sum(shape.args["seq_lens"])
    assert list(vary(attention, {**shape.args, "seq_lens": [3, 5]})) == []
    assert list(vary(attention, {**shape.args, "seq_lens": [300]})) == []


def test_experts_get_far_from_equal_shares() -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    sort = require_operator("moe_count_and_sort")
    args = {"token_count": 512, "num_experts": 64, "top_k": 4}
    ((kind, skewed),) = vary(sort, args)
    most = [int(sort.inputs(**given, seed=3)["topk_ids"].flatten().bincount().max()) for given in (args, skewed)]
    assert kind == "skewed"
    assert most[1] > 1.5 * most[0]


def test_decodes_get_lengths_each() -> None:
    kinds = {
        name: [kind for kind, _ in vary(each, each.catalogue().shapes[-1].args)] for name, each in operators().items()
    }
    assert kinds["mla_decode_attention"] == kinds["paged_attention_decode"] == ["mixed"]
    assert kinds["rms_norm"] == []


@pytest.mark.parametrize("name", list(operators()))
def test_every_reference_answers_unusual_inputs(name: str) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator = require_operator(name)
    for args in operator.tiny:
        for _kind, given in vary(operator, args):
            found = operator.answer(operator.inputs(**given, seed=1), given)
            assert set(found) == set(operator.outputs)


def test_rows_apart_hold_the_same_values_with_nan_between() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    dense = {"x": torch.rand(3, 5), "ids": torch.arange(6).view(2, 3), "one": torch.rand(4)}
    found = lay_apart(dense)
    assert torch.equal(found["x"], dense["x"])
    assert found["x"].stride() == (13, 1)
    assert torch.as_strided(found["x"], (3, 13), (13, 1))[:, 5:].isnan().all()
    assert found["ids"] is dense["ids"]
    assert found["one"] is dense["one"]
