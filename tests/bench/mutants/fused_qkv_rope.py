"""Wrong and right kernels of `fused_qkv_rope`."""

from typing import Any

import torch
from tests.bench.mutants.shared import Kernel, bf16, fp8, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.fused_qkv_rope import reference

Three = tuple[Tensor, ...]


def kernel(
    qkv: Tensor, positions: Tensor, bias: Tensor | None = None, *, num_heads: int, num_kv_heads: int, head_dim: int,
    rope_dim: int, rope_base: float = 10000.0, turned: str = "qk", pairs: bool = False, back: bool = False,
    of: str = "rope", table: Kernel = Tensor.float, rounded: bool = True, heads_first: bool = False,
) -> Three:  # fmt: skip
    """Rotation as a complex product.

    `turned`: which parts; `pairs`: columns 2 i and 2 i + 1 turn together; `back`: the other way; `of`: the dimension in
    the exponent, `rope` or `head`; `table` rounds cosines and sines; `rounded`: the sum with the bias is;
    `heads_first`: a row is read as [d, heads].
    """
    packed = qkv.float() if bias is None else qkv.float() + bias.float()
    packed = packed.to(qkv.dtype).float() if rounded else packed
    split = [num_heads, num_kv_heads, num_kv_heads]
    rows = packed.unflatten(-1, (head_dim, -1)).mT if heads_first else packed.unflatten(-1, (-1, head_dim))
    half = rope_dim // 2
    size = rope_dim if of == "rope" else head_dim
    angle = positions.float()[:, None] * rope_base ** (-torch.arange(half).float() * 2 / size)
    cos, sin = table(angle.cos())[:, None], table(angle.sin())[:, None] * (-1 if back else 1)
    found = []
    for name, part in zip("qkv", rows.split(split, 1), strict=True):
        if name in turned:
            x = part[..., :rope_dim]
            one, other = (x[..., ::2], x[..., 1::2]) if pairs else (x[..., :half], x[..., half:])
            new = (one * cos - other * sin, other * cos + one * sin)
            part = torch.cat(
                [torch.stack(new, -1).flatten(-2) if pairs else torch.cat(new, -1), part[..., rope_dim:]], -1
            )
        found.append(part.to(qkv.dtype).contiguous())
    return tuple(found)


def faulty(**fault: Any) -> Kernel:
    def wrong(*tensors: Tensor, **settings: Any) -> Three:
        return kernel(*tensors, **{**settings, **fault})

    return wrong


WRONG: dict[str, Kernel] = {
    "overflow: sum of a pair in fp16": lambda x, *r, **s: tuple(y.clamp(-1e4, 1e4) for y in reference(x, *r, **s)),
    "zeros: position 0 as 1": lambda x, p, *b, **s: reference(x, p.clamp(min=1), *b, **s),
    "NaN: 0 for it in the result": lambda *x, **s: tuple(y.nan_to_num(0.0) for y in reference(*x, **s)),
    "identity: split without rotation": faulty(turned=""),
    "position: 0": lambda x, p, *b, **s: reference(x, torch.zeros_like(p), *b, **s),
    "position: one further": lambda x, p, *b, **s: reference(x, p + 1, *b, **s),
    "position: of the next token": lambda x, p, *b, **s: reference(x, shifted(p), *b, **s),
    "position: number of the token in the batch": lambda x, p, *b, **s: reference(
        x, torch.arange(len(p)).to(p.dtype), *b, **s
    ),
    "dropped term: bias": lambda x, p, *b, **s: reference(x, p, **s),
    "dropped term: bias after the rotation": lambda x, p, *b, head_dim, **s: (
        reference(x, p, head_dim=head_dim, **s)
        if not b
        else tuple(
            y + part
            for y, part in zip(
                reference(x, p, head_dim=head_dim, **s),
                b[0].view(-1, head_dim).split([s["num_heads"], s["num_kv_heads"], s["num_kv_heads"]]),
                strict=True,
            )
        )
    ),
    "swapped: pairs in place of halves": faulty(pairs=True),
    "swapped: turned back": faulty(back=True),
    "swapped: heads and columns": faulty(heads_first=True),
    "swapped: keys and values": lambda *x, **s: then(reference(*x, **s), lambda q, k, v: (q, v, k)),
    "swapped: heads off by one": lambda x, *r, head_dim, **s: reference(
        x.roll(head_dim, 1), *r, head_dim=head_dim, **s
    ),
    "missing part: keys not turned": faulty(turned="q"),
    "missing part: queries not turned": faulty(turned="k"),
    "missing part: half of the columns turned": lambda *x, rope_dim, **s: reference(
        *x, rope_dim=rope_dim // 4 * 2, **s
    ),
    "scale: values turned too": faulty(turned="qkv"),
    "scale: base of 10,000 always, or ten times": lambda *x, rope_base=1e4, **s: reference(
        *x, rope_base=1e5 if rope_base == 1e4 else 1e4, **s
    ),
    "scale: frequencies by the head's size": faulty(of="head"),
    "padding: columns beyond rope_dim are zero": lambda *x, rope_dim, **s: tuple(
        torch.cat([y[..., :rope_dim], torch.zeros_like(y[..., rope_dim:])], -1)
        for y in reference(*x, rope_dim=rope_dim, **s)
    ),
    "rounding: positions in bf16": lambda x, p, *b, **s: reference(x, bf16(p.float()), *b, **s),
    "rounding: input in fp8": lambda x, *r, **s: reference(fp8(x.float()).to(x.dtype), *r, **s),
}

RIGHT: dict[str, Kernel] = {
    "frequencies as powers": kernel,
    "sum with the bias not rounded": faulty(rounded=False),
    "angles in float64": lambda x, p, *b, **s: reference(x, p.double(), *b, **s),
    "cosines and sines in the dtype of the input": lambda x, *r, **s: kernel(
        x, *r, table=lambda y: y.to(x.dtype).float(), **s
    ),
}

ONLY_IN = dict.fromkeys(RIGHT, ("bf16", "fp16"))  # float32's tolerance is less than what an angle of thousands is off
INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
