"""The contract of `moe_count_and_sort` on ids that can be checked by eye."""

import pytest

from inferometer.operators.catalogue.moe_count_and_sort import reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


def test_slots_of_an_expert_keep_their_order_and_unknown_experts_are_left_out() -> None:
    ids = torch.tensor([[2, 0], [0, 2], [5, -1], [2, 1]], dtype=torch.int32)
    slots, counts, cumsum = reference(ids, num_experts=4)
    assert slots.tolist() == [1, 2, 7, 0, 3, 6]
    assert counts.tolist() == [2, 1, 3, 0]
    assert cumsum.tolist() == [0, 2, 3, 6, 6]
    assert {slots.dtype, counts.dtype, cumsum.dtype} == {torch.int32}
