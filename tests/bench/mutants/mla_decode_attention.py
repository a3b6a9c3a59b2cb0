"""Wrong and right kernels of `mla_decode_attention`."""

from tests.bench.mutants import attention
from tests.bench.mutants.attention import Attention
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.mla_decode_attention import reference


def kernel(attend: Attention, *, first: int = 0) -> Kernel:
    """`first`: the column where values begin."""

    def run(q: Tensor, cache: Tensor, lens: Tensor, *, kv_lora_rank: int) -> Tensor:
        out, start = q.new_zeros(*q.shape[:2], kv_lora_rank), 0
        for n, keys in enumerate(lens.tolist()):
            rows = cache[start : start + keys, 0][None]
            out[n] = attend(q[n][None], rows, rows[..., first : first + kv_lora_rank])[0].to(q.dtype)
            start += keys
        return out

    return run


def without_positions(q: Tensor, cache: Tensor, lens: Tensor, *, kv_lora_rank: int) -> Tensor:
    q = q.clone()
    q[..., kv_lora_rank:] = 0
    return reference(q, cache, lens, kv_lora_rank=kv_lora_rank)


def scaled_by_rank(q: Tensor, cache: Tensor, lens: Tensor, *, kv_lora_rank: int) -> Tensor:
    """R^-0.5 in place of (R + p)^-0.5."""
    return kernel(Attention(power=0.0))(q.float() * kv_lora_rank**-0.5, cache, lens, kv_lora_rank=kv_lora_rank).to(
        q.dtype
    )


def one_sequence(q: Tensor, cache: Tensor, lens: Tensor, *, kv_lora_rank: int) -> Tensor:
    """Every token sees the keys of all sequences."""
    many = len(lens)
    return reference(q, cache.repeat(many, 1, 1), lens.sum().repeat(many), kv_lora_rank=kv_lora_rank)


def swapped_parts(q: Tensor, cache: Tensor, lens: Tensor, *, kv_lora_rank: int) -> Tensor:
    """The columns with positions before the latent ones, in the cache alone."""
    p = cache.shape[2] - kv_lora_rank
    return reference(q, cache.roll(p, 2), lens, kv_lora_rank=kv_lora_rank)


WRONG: dict[str, Kernel] = {
    **{name: kernel(attend) for name, attend in attention.WRONG.items()},
    "scale: of the latent rank": scaled_by_rank,
    "mask: all sequences as one": one_sequence,
    "dropped term: positions": without_positions,
    "position: values begin at the positions' columns": lambda q, c, n, *, kv_lora_rank: kernel(
        Attention(), first=c.shape[2] - kv_lora_rank
    )(q, c, n, kv_lora_rank=kv_lora_rank),
    "position: rows of the cache off by one": lambda q, c, n, **s: reference(q, shifted(c), n, **s),
    "position: a sequence begins a key early": lambda q, c, n, **s: reference(q, shifted(c, -1), n, **s),
    "swapped: positions before the latent columns": swapped_parts,
    "swapped: heads of the queries": lambda q, c, n, **s: reference(shifted(q, dim=1), c, n, **s),
    "swapped: halves of the queries": lambda q, c, n, **s: reference(halves(q), c, n, **s),
    "swapped: sequences": lambda q, c, n, **s: reference(shifted(q), c, n, **s),
    "missing part: last eighth of a row": lambda q, c, n, **s: reference(cut(q, q.shape[2] // 8), c, n, **s),
    "rounding: queries in fp8": lambda q, c, n, **s: reference(fp8(q.float()).to(q.dtype), c, n, **s),
    "rounding: cache in fp8": lambda q, c, n, **s: reference(q, fp8(c.float()).to(c.dtype), n, **s),
}

RIGHT: dict[str, Kernel] = {name: kernel(attend) for name, attend in attention.RIGHT.items()}

INAPPLICABLE = {"identity": "no input has the output's shape", "expert": "no experts"}
