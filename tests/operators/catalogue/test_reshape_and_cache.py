"""Slots of reshape_and_cache: negative ones are skipped, the rest of a cache stays."""

import pytest

from inferometer.operators.catalogue.reshape_and_cache import OPERATOR, reference


def test_any_negative_slot_is_skipped() -> None:
    torch = pytest.importorskip("torch")
    new = torch.arange(1.0, 5.0, dtype=torch.bfloat16).reshape(4, 1, 1)
    cache = torch.full((2, 3, 1, 1), -1.0, dtype=torch.bfloat16)
    keys, values = reference(new, 10 * new, cache, 10 * cache, torch.tensor([4, -1, 0, -6]))
    assert keys.flatten().tolist() == [3, -1, -1, -1, 1, -1]
    assert values.flatten().tolist() == [30, -10, -10, -10, 10, -10]


def test_inputs_give_no_slot_twice_and_pad_as_many_tokens_as_asked() -> None:
    pytest.importorskip("torch")
    slots = OPERATOR.inputs(**OPERATOR.tiny[2], seed=5)["slot_mapping"].tolist()
    kept = [slot for slot in slots if slot >= 0]
    assert slots.count(-1) == 30
    assert len(set(kept)) == len(kept) == 99
    assert max(kept) < 38 * 4
