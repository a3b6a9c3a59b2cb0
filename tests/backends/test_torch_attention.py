"""Attention and its caches in plain PyTorch: what the operators' tiny shapes don't show."""

from typing import Any

import pytest

from inferometer.backends.torch.catalogue import load_kernel
from inferometer.bench.comparison import compare_outputs
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")

HEADS = {"num_query_heads": 8, "num_kv_heads": 2, "head_size": 64, "block_size": 16}
LATENT = {"batch_size": 1, "nhead": 16, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


def wrong(name: str, args: dict[str, Any], seed: int = 1) -> list[str]:
    """What is wrong with the kernel's outputs, in words."""
    operator = operators()[name]
    tensors = operator.inputs(**args, seed=seed)
    wanted = operator.answer(tensors, args)
    found = load_kernel(name)(*tensors.values(), **operator.settings_of(args))
    return [f"{check.output}: {check.reason}" for check in compare_outputs(operator, found, wanted) if check.reason]


@pytest.mark.parametrize(
    ("keys", "queries"),
    [
        ([700, 1, 256, 999, 33], [1, 1, 256, 17, 33]),
        ([64, 64, 64], [64, 64, 64]),  # every row of the table is full
        ([64, 64, 64], [64, 63, 64]),
        ([100], [100]),
        ([112], [5]),
        ([40, 30, 20], [3, 0, 2]),
    ],
    ids=["mixed", "full", "nearly full", "one", "piece of a prompt", "without queries"],
)
def test_queries_of_any_batch_see_the_keys_before_them(keys: list[int], queries: list[int]) -> None:
    assert wrong("unified_attention", {**HEADS, "seq_lens": keys, "query_lens": queries}) == []


def test_packed_sequences_may_be_empty() -> None:
    args = {"num_heads": 2, "head_dim": 72, "seq_lens": [5, 0, 40], "key_lens": [9, 4, 3]}
    assert wrong("attention_forward", args) == []


def test_sequences_without_keys_give_zeros() -> None:
    args = {**HEADS, "num_seqs": 3, "ctx_len": 20, "ctx_lens": [0, 20, 0]}
    assert wrong("paged_attention_decode", args) == []


def test_latent_attention_does_not_round_its_scores() -> None:
    """Scores in bf16 make errors of 0.6 to 1.2 times the tolerance, those of float32 0.3."""
    operator, args = operators()["mla_decode_attention"], {**LATENT, "ctx_len": 256}
    tensors = operator.inputs(**args, seed=1)
    found = load_kernel(operator.name)(*tensors.values(), **operator.settings_of(args))
    (check,) = compare_outputs(operator, found, operator.answer(tensors, args))
    assert check.error is not None
    assert check.tolerance is not None
    assert check.error < 0.5 * check.tolerance


@pytest.mark.parametrize("padded", [0, 1, 40, 63])
@pytest.mark.parametrize("spare", [0, 1])
def test_padding_writes_nothing_whether_or_not_the_last_slot_is_taken(padded: int, spare: int) -> None:
    args = {"shape": [63, 2, 8], "block_size": 9, "padded_tokens": padded, "spare_blocks": spare}
    for seed in range(6):
        assert wrong("reshape_and_cache", args, seed) == []


def test_caches_side_by_side_are_updated_in_place() -> None:
    """As engines lay them out: each block has its keys, then its values, so slots aren't evenly apart."""
    both = torch.zeros(5, 2, 4, 3, 8, dtype=torch.bfloat16)
    key, value = torch.randn(2, 4, 3, 8).to(torch.bfloat16)
    slots = torch.tensor([19, -1, 6, -7])
    wanted = operators()["reshape_and_cache"].reference(key, value, both[:, 0], both[:, 1], slots)
    load_kernel("reshape_and_cache")(key, value, both[:, 0], both[:, 1], slots)
    assert torch.equal(both, torch.stack(wanted, 1))


@pytest.mark.parametrize("tokens", [1, 7])
def test_split_heads_are_new_tensors(tokens: int) -> None:
    args = {"num_heads": 2, "num_kv_heads": 1, "head_dim": 16, "rope_dim": 16}
    operator = operators()["fused_qkv_rope"]
    tensors = operator.inputs(**args, total_tokens=tokens, seed=1)
    for output in load_kernel("fused_qkv_rope")(*tensors.values(), **operator.settings_of(args)):
        assert output.untyped_storage().data_ptr() != tensors["qkv"].untyped_storage().data_ptr()
