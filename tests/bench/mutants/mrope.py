"""Wrong and right kernels of `mrope`."""

from collections.abc import Sequence
from typing import Any

import torch
from tests.bench.mutants.shared import Kernel, bf16, fp8, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.mrope import reference

Two = tuple[Tensor, ...]


def kernel(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *, head_size: int, rotary_dim: int, mrope_section: Sequence[int],
    mrope_interleaved: bool = False, is_neox_style: bool = True, parts: str = "qk", table: Kernel = Tensor.float,
    strict: bool = True,
) -> Two:  # fmt: skip
    """Columns gathered with the one that they turn with; `strict`: an interleaved axis ends where its section does."""
    R = rotary_dim // 2
    t, h, w = mrope_section
    if mrope_interleaved:
        axes = [i % 3 if not strict or i <= 3 * mrope_section[i % 3] else 0 for i in range(R)]
    else:
        axes = [0] * t + [1] * h + [2] * w
    cos, sin = (table(torch.stack([x[axis, :, i] for i, axis in enumerate(axes)], 1)) for x in (cos, sin))
    wide = [i % R for i in range(rotary_dim)] if is_neox_style else [i // 2 for i in range(rotary_dim)]
    step = R if is_neox_style else 1
    partner = [(i + step) if (i // step) % 2 == 0 else (i - step) for i in range(rotary_dim)]
    sign = torch.tensor([-1.0 if p > i else 1.0 for i, p in enumerate(partner)])
    found = []
    for name, x in (("q", q), ("k", k)):
        heads = x.float().unflatten(1, (-1, head_size))
        if name in parts:
            turning = heads[..., :rotary_dim]
            turned = turning * cos[:, None, wide] + sign * turning[..., partner] * sin[:, None, wide]
            heads = torch.cat([turned, heads[..., rotary_dim:]], -1)
        found.append(heads.flatten(1).to(x.dtype))
    return tuple(found)


def faulty(**fault: Any) -> Kernel:
    def wrong(*tensors: Tensor, **settings: Any) -> Two:
        return kernel(*tensors, **{**settings, **fault})

    return wrong


def one_axis(axis: int) -> Kernel:
    """All frequencies of one axis."""

    def wrong(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, **settings: Any) -> Two:
        return reference(q, k, cos[axis].expand_as(cos), sin[axis].expand_as(sin), **settings)

    return wrong


def turned_sections(by: int) -> Kernel:
    def wrong(*x: Tensor, mrope_section: Sequence[int], **settings: Any) -> Two:
        return kernel(*x, mrope_section=[*mrope_section[by:], *mrope_section[:by]], **settings)

    return wrong


WRONG: dict[str, Kernel] = {
    "overflow: heads in fp16": lambda q, k, *x, **s: reference(q.half().to(q.dtype), k.half().to(k.dtype), *x, **s),
    "zeros: tangent in place of sine": lambda q, k, c, s, **o: reference(q, k, c, (s / c.where(c != 1, 0.0)) * c, **o),
    "NaN: 0 for it in the result": lambda *x, **s: tuple(y.nan_to_num(0.0) for y in reference(*x, **s)),
    "NaN: in all of its head": lambda q, *x, head_size, **s: then(
        reference(q, *x, head_size=head_size, **s),
        lambda one, other: (one + 0 * q.unflatten(1, (-1, head_size)).sum(-1).repeat_interleave(head_size, 1), other),
    ),
    "position: all of time": one_axis(0),
    "position: all of height": one_axis(1),
    "position: all of width": one_axis(2),
    "position: axes off by one": lambda q, k, c, s, **o: reference(q, k, shifted(c), shifted(s), **o),
    "position: of the next token": lambda q, k, c, s, **o: reference(q, k, shifted(c, dim=1), shifted(s, dim=1), **o),
    "position: sections a frequency late": lambda *x, mrope_section, **o: kernel(
        *x, mrope_section=[mrope_section[0] + 1, mrope_section[1] - 1, mrope_section[2]], **o
    ),
    "position: sections off by one": turned_sections(1),
    "swapped: interleaved and in sections": lambda *x, mrope_interleaved, **o: kernel(
        *x, mrope_interleaved=not mrope_interleaved, **o
    ),
    "swapped: pairs and halves": lambda *x, is_neox_style, **o: kernel(*x, is_neox_style=not is_neox_style, **o),
    "swapped: turned back": lambda q, k, c, s, **o: reference(q, k, c, -s, **o),
    "swapped: cosine and sine": lambda q, k, c, s, **o: reference(q, k, s, c, **o),
    "swapped: height and width": lambda q, k, c, s, **o: reference(q, k, c[[0, 2, 1]], s[[0, 2, 1]], **o),
    "missing part: keys not turned": faulty(parts="q"),
    "missing part: queries not turned": faulty(parts="k"),
    "missing part: last frequency": lambda q, k, c, s, **o: reference(
        q,
        k,
        torch.cat([c[..., :-1], torch.ones_like(c[..., :1])], -1),
        torch.cat([s[..., :-1], torch.zeros_like(s[..., :1])], -1),
        **o,
    ),
    "missing part: last head": lambda q, k, c, s, *, head_size, **o: then(
        reference(q, k, c, s, head_size=head_size, **o),
        lambda a, b: (torch.cat([a[:, :-head_size], q[:, -head_size:]], 1), b),
    ),
    "padding: columns beyond rotary_dim are zero": lambda *x, head_size, rotary_dim, **o: tuple(
        (y.unflatten(1, (-1, head_size)) * (torch.arange(head_size) < rotary_dim)).flatten(1)
        for y in reference(*x, head_size=head_size, rotary_dim=rotary_dim, **o)
    ),
    "padding: interleaved beyond the sections": faulty(strict=False),
    "rounding: input in fp8": lambda q, k, c, s, **o: reference(
        fp8(q.float()).to(q.dtype), fp8(k.float()).to(k.dtype), c, s, **o
    ),
    "rounding: cosines and sines in fp8": lambda q, k, c, s, **o: reference(q, k, fp8(c), fp8(s), **o),
}

RIGHT: dict[str, Kernel] = {
    "columns gathered with their partners": kernel,
    "cosines and sines in bf16": faulty(table=bf16),
    "in float64": lambda q, k, c, s, **o: reference(q, k, c.double(), s.double(), **o),
}

ONLY_IN = {"cosines and sines in bf16": ("bf16",)}
HARMLESS = {f"overflow: {name} in fp16": "11 bits are enough for what is rounded to 8" for name in ("cos", "sin")}
INAPPLICABLE = {
    "mask": "no mask",
    "expert": "no experts",
    "scale": "a rotation has no scale; wrong frequencies are under `position`",
    "dropped term": "no term to drop: cosine and sine are under `swapped`",
}
