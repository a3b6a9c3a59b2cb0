"""The contract of `moe_align_block_size` on ids that can be checked by eye."""

import pytest

from inferometer.operators.catalogue.moe_align_block_size import reference

torch = pytest.importorskip("torch", reason="torch isn't installed")


def test_slots_keep_their_order_and_the_last_block_of_an_expert_is_filled_with_their_number() -> None:
    ids = torch.tensor([[3, 1], [1, 3], [3, -1], [1, 4]], dtype=torch.int32)
    entries, experts, length = reference(ids, block_size=2, num_experts=4)
    assert entries.tolist() == [1, 2, 6, 8, 0, 3, 4, 8]
    assert experts.tolist() == [1, 1, 3, 3]
    assert length.tolist() == [8]
    assert {entries.dtype, experts.dtype, length.dtype} == {torch.int32}


def test_no_known_expert_leaves_nothing() -> None:
    entries, experts, length = reference(torch.full((2, 2), -1, dtype=torch.int32), block_size=4, num_experts=3)
    assert (entries.tolist(), experts.tolist(), length.tolist()) == ([], [], [0])
    assert {entries.dtype, experts.dtype, length.dtype} == {torch.int32}
