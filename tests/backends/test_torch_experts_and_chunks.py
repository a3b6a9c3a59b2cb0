"""Plain PyTorch kernels where tiny shapes don't lead: ids that are nobody's, few rows, older torch, many chunks."""

from typing import Any

import pytest

from inferometer.backends.torch.catalogue import load_kernel
from inferometer.bench.comparison import compare_outputs
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")

STRAY = torch.tensor([[3, 1], [1, 3], [3, -1], [1, 4], [70_000, -5]], dtype=torch.int32)
MANY_CHUNKS = {"num_v_heads": 2, "key_dim": 16, "value_dim": 8, "state_count": 3}


def check(name: str, args: dict[str, Any], tensors: dict[str, Any]) -> None:
    """The kernel answers as the reference does."""
    operator = operators()[name]
    wanted = operator.answer(tensors, args)
    found = load_kernel(name)(*tensors.values(), **operator.settings_of(args))
    assert [each.reason for each in compare_outputs(operator, found, wanted)] == [None] * len(wanted)


@pytest.mark.parametrize("name", ["fused_moe", "fp8_blockscale_fused_moe"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_experts_that_are_nobodys_add_nothing_and_one_named_twice_counts_twice(name: str, place: int) -> None:
    args = dict(operators()[name].tiny[place])
    tensors = operators()[name].inputs(**args, seed=1)
    ids = tensors["topk_ids"]
    some = ids.clone()
    some.view(-1)[::3], some.view(-1)[1::5] = -1, args["num_experts"] + 3
    for each in (some, torch.full_like(ids, -1), ids[:, :1].expand_as(ids).contiguous()):
        check(name, args, {**tensors, "topk_ids": each})


def test_products_without_a_grouped_one_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.nn.functional, "grouped_mm", raising=False)  # as before torch 2.10
    for args in operators()["fused_moe"].tiny:
        check("fused_moe", dict(args), operators()["fused_moe"].inputs(**args, seed=1))


@pytest.mark.parametrize(("block_size", "num_experts"), [(4, 4), (1, 2), (4, 1)])
def test_aligned_slots_that_are_nobodys_are_cut_off(block_size: int, num_experts: int) -> None:
    args = {"block_size": block_size, "num_experts": num_experts}
    check("moe_align_block_size", args, {"topk_ids": STRAY})
    check("moe_align_block_size", args, {"topk_ids": torch.full((2, 2), -1, dtype=torch.int32)})


@pytest.mark.parametrize("num_experts", [300, 40_000])
@pytest.mark.parametrize("name", ["moe_align_block_size", "moe_count_and_sort"])
def test_experts_that_no_byte_counts_are_sorted(name: str, num_experts: int) -> None:
    ids = torch.tensor([[num_experts - 1, 255, 256], [0, num_experts - 1, 257]], dtype=torch.int32)
    check(name, {"block_size": 2, "num_experts": num_experts}, {"topk_ids": ids})


def test_sorted_slots_that_are_nobodys_come_last() -> None:
    wanted = operators()["moe_count_and_sort"].answer({"topk_ids": STRAY}, {"num_experts": 4})
    slots, counts, cumsum = load_kernel("moe_count_and_sort")(STRAY, num_experts=4)
    assert slots[: cumsum[-1]].tolist() == wanted["sorted_token_ids"].tolist()
    assert sorted(slots[cumsum[-1] :].tolist()) == [5, 7, 8, 9]
    assert torch.equal(counts, wanted["expert_token_counts"])
    assert torch.equal(cumsum, wanted["cumsum"])


def test_a_nan_stays_and_fills_its_place_among_the_largest() -> None:
    logits = torch.randn(3, 100, generator=torch.Generator().manual_seed(1))
    logits[0, 3], logits[1, :60], logits[2] = float("nan"), float("nan"), float("-inf")
    check("topk_filter", {"top_k": 50}, {"logits": logits})


@pytest.mark.parametrize("tokens", [64, 65, 133, 150])  # 16, 17, 34 and 38 chunks: pairs of maps, and one left over
def test_states_of_many_chunks_are_joined(tokens: int) -> None:
    args = {"batch_size": 2, "token_count": tokens, "num_k_heads": 1, "chunk_size": 4, **MANY_CHUNKS}
    check("chunk_gated_delta_rule_state", args, operators()["chunk_gated_delta_rule_state"].inputs(**args, seed=3))


@pytest.mark.parametrize("tokens", [130, 1_100])  # 3 and 18 chunks
def test_updates_of_many_chunks_are_joined(tokens: int) -> None:
    args = {"batch_size": 2, "token_count": tokens, "num_q_heads": 1, **MANY_CHUNKS}
    check("gated_delta_rule_update", args, operators()["gated_delta_rule_update"].inputs(**args, seed=3))


@pytest.mark.parametrize("name", ["chunk_gated_delta_rule_state", "gated_delta_rule_update"])
def test_the_pool_of_states_is_updated_in_place(name: str) -> None:
    operator, args = operators()[name], operators()[name].tiny[1]
    tensors = operator.inputs(**args, seed=2)
    final = load_kernel(name)(*tensors.values(), **operator.settings_of(args))[-1]
    assert final.data_ptr() == tensors["initial_state"].data_ptr()
