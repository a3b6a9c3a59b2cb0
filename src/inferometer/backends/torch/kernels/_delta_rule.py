"""Sequences in chunks, and the walk through the maps of chunks: what two kernels of the gated delta rule share.

In a chunk (arXiv:2412.06464, section 3) all that its tokens change is linear in the state before it, so a chunk is a
map of its state: h -> M h + b. B sequences, T tokens of each, H heads, N chunks of C tokens, K key size, V value size,
Y = B H maps for each place of a chunk, X what a token has per head.
"""

import torch
from torch import Tensor

_JOINED_FLOPS = 1.5e8
"""What joining two neighbours takes at most: 5 us, as a launch, at 30 TFLOP/s in float32. Estimated, not measured."""

_FEW = 16  # maps: joining takes four launches or so


def in_chunks(x_BTHX: Tensor, chunk_size: int) -> Tensor:
    """Copy to [N, B, H, C, X]; what the last chunk lacks is 0."""
    B, T, H, X = x_BTHX.shape
    whole, rest = divmod(T, chunk_size)
    out = x_BTHX.new_empty(whole + (rest > 0), B, H, chunk_size, X)
    out_BNCHX = out.permute(1, 0, 3, 2, 4)
    out_BNCHX[:, :whole] = x_BTHX[:, : T - rest].unflatten(1, (whole, chunk_size))
    if rest:
        out_BNCHX[:, -1, :rest] = x_BTHX[:, T - rest :]
        out_BNCHX[:, -1, rest:] = 0
    return out


def walk(map_NYKK: Tensor, states: Tensor) -> None:
    """Fill `states` [N + 1, Y, K, V], which holds the first state and then what each map adds, with the states.

    Neighbouring maps are joined to one, (M2 M1, M2 b1 + b2), while that is cheaper than the launches that it saves.
    """
    N, Y, K, _ = map_NYKK.shape
    if N < _FEW or 2 * Y * K * K * (K + states.shape[3]) > _JOINED_FLOPS:
        for n in range(N):
            states[n + 1].baddbmm_(map_NYKK[n], states[n])
        return
    even = N - N % 2
    first_NYKK, second_NYKK = map_NYKK[0:even:2], map_NYKK[1:even:2]
    odd = states[1:even:2]
    joined = torch.cat([states[:1], (second_NYKK @ odd).add_(states[2 : even + 1 : 2])])
    walk(second_NYKK @ first_NYKK, joined)
    states[0 : even + 1 : 2] = joined
    odd += first_NYKK @ joined[:-1]
    if N % 2:
        states[N].baddbmm_(map_NYKK[-1], states[N - 1])
