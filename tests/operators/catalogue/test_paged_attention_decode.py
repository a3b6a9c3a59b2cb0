"""What the tables and lengths of paged decode attention leave out is never looked at."""

import pytest

from inferometer.operators.catalogue.paged_attention_decode import OPERATOR, reference

ARGS = OPERATOR.tiny[2]  # lengths from 0 on, blocks of 8


def test_neither_spare_blocks_nor_the_rest_of_the_last_block_matter() -> None:
    torch = pytest.importorskip("torch")
    tensors = OPERATOR.inputs(**ARGS, seed=1)
    wanted = reference(*tensors.values())
    used = torch.zeros(tensors["v_cache"].shape[0], 8, dtype=torch.bool)  # by block and token
    for row, keys in zip(tensors["block_tables"], ARGS["ctx_lens"], strict=True):
        for j in range(keys):
            used[row[j // 8], j % 8] = True
    tensors["k_cache"].movedim(3, 1)[~used] = float("nan")
    tensors["v_cache"].movedim(3, 1)[~used] = float("nan")
    assert torch.equal(reference(*tensors.values()), wanted)


def test_a_sequence_without_keys_gives_zeros() -> None:
    torch = pytest.importorskip("torch")
    out = reference(*OPERATOR.inputs(**ARGS, seed=1).values())
    assert ARGS["ctx_lens"][2] == 0
    assert torch.equal(out[2], torch.zeros_like(out[2]))
    assert out[3].abs().min() > 0
