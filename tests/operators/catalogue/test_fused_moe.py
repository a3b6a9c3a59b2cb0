"""Experts named twice or not there; the least that tiles of tokens can be padded to."""

from math import ceil

import pytest

from inferometer.operators.catalogue.fused_moe import OPERATOR, expert_products, work
from inferometer.operators.work import Tile, active_experts


def test_an_expert_named_twice_counts_with_both_weights_and_an_unknown_one_not_at_all() -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    args = {"token_count": 2, "hidden_size": 8, "intermediate_size": 4, "num_experts": 3, "top_k": 2}
    hidden, w1, w2, *_ = OPERATOR.inputs(**args, seed=1).values()

    def run(weights: list[list[float]], ids: list[list[int]]) -> object:
        return OPERATOR.reference(hidden, w1, w2, torch.tensor(weights), torch.tensor(ids, dtype=torch.int32))

    twice = run([[0.25, 0.5], [0.75, 1.0]], [[1, 1], [-1, 3]])
    once = run([[0.75, 0.0], [0.0, 0.0]], [[1, 0], [0, 1]])
    torch.testing.assert_close(twice, once)


@pytest.mark.parametrize("tile", [8, 16])
def test_however_slots_fall_on_experts_no_fewer_tiles_are_needed(tile: int) -> None:
    for active in (1, 3, 8):
        for slots in range(active, 40 * active):
            flops = sum(product.padded(Tile(M=tile)) for product in expert_products(slots, active, 4, 2))
            assert flops == 6 * 4 * 2 * tile * max(active, ceil(slots / tile)), (slots, active)


def test_a_known_draw_takes_the_place_of_the_expected_one() -> None:
    args = {"token_count": 32, "hidden_size": 64, "intermediate_size": 16, "num_experts": 256, "top_k": 8}
    expected, known = work(**args), work(**args, experts_used=40)
    assert active_experts(32, 256, 8) == 164
    assert expected.read_bytes - known.read_bytes == (164 - 40) * 6 * 64 * 16
    assert expected.assumes
    assert not known.assumes
