"""Random inputs as production has them: scales of trained models, scattered pages, experts of unequal popularity.

All numbers come from one generator of the device, so the same seed gives the same tensors there; another device or
version of torch may give others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inferometer.operators.catalogue.pieces import pieces

if TYPE_CHECKING:
    from torch import Tensor

SKEW = 0.5
"""A router's first choice is an expert with a chance of 1 / rank^SKEW, ranks shuffled: of 8 out of 128, the busiest
expert gets about five times its fair share. Chosen, not measured: trained routers lie on both sides of it."""


class Draws:
    """Tensors drawn one after another from `seed`, on `device`."""

    def __init__(self, seed: int, device: str = "cpu") -> None:
        import torch

        self.device = device
        self._generator = torch.Generator(device).manual_seed(seed)

    def normal(self, *shape: int, dtype: str = "bf16", scale: float = 1.0, mean: float = 0.0) -> "Tensor":
        """Normally distributed."""
        return self._filled(shape, dtype, lambda part: part.normal_(mean, scale, generator=self._generator))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: str = "fp32") -> "Tensor":
        """Evenly between `low` and `high`."""
        return self._filled(shape, dtype, lambda part: part.uniform_(low, high, generator=self._generator))

    def fp8(self, *shape: int, dtype: str = "fp8_e4m3fn", scale: float = 0.25) -> "Tensor":
        """Normal values that use the range of the type: `scale` of its largest value is four standard deviations."""
        import torch

        most = torch.finfo(torch_dtype(dtype)).max
        return self._filled(
            shape,
            dtype,
            lambda part: part.normal_(0, most * scale / 4, generator=self._generator).clamp_(-most, most),
        )

    def integers(self, *shape: int, high: int, low: int = 0, dtype: str = "int32") -> "Tensor":
        """Evenly from `low` to below `high`."""
        import torch

        return torch.randint(low, high, shape, generator=self._generator, device=self.device, dtype=torch_dtype(dtype))

    def activations(self, tokens: int, hidden_size: int) -> "Tensor":
        """bf16 rows whose scales differ by 20 times, with one channel of 64 about ten times the others: outliers."""
        x_TH = self.normal(tokens, hidden_size)
        scale_T1 = self.uniform(tokens, 1, low=0.2, high=4.0).to(x_TH.dtype)
        factor_H = (1.0 + 9.0 * (self.uniform(hidden_size) < 1 / 64)).to(x_TH.dtype)
        for part in pieces(tokens, hidden_size):
            x_TH[part] *= scale_T1[part]
            x_TH[part] *= factor_H
        return x_TH

    def permutation(self, count: int, dtype: str = "int32") -> "Tensor":
        """The numbers below `count` in random order."""
        import torch

        return torch.randperm(count, generator=self._generator, device=self.device).to(torch_dtype(dtype))

    def norm_weight(self, size: int, dtype: str = "bf16") -> "Tensor":
        """As trained norms have it: around 1, not equal to it."""
        return self.normal(size, dtype=dtype, scale=0.1, mean=1.0)

    def logits(self, tokens: int, experts: int, dtype: str = "fp32", *, skew: float = SKEW) -> "Tensor":
        """Router logits of `tokens` rows: Gumbel noise, with experts of unequal popularity."""
        import torch

        rank = self.permutation(experts, "int64") + 1
        noise = -torch.log(-torch.log(self.uniform(tokens, experts, low=1e-7, high=1 - 1e-7)))
        return (noise - skew * torch.log(rank.float())).to(torch_dtype(dtype))

    def routing(self, tokens: int, experts: int, top_k: int, *, skew: float = SKEW) -> "tuple[Tensor, Tensor]":
        """Weights fp32 [tokens, top_k], which add up to 1, and different expert ids int32, as a router gives them."""
        import torch

        weights, ids = torch.topk(torch.softmax(self.logits(tokens, experts, skew=skew), -1), top_k, -1)
        return weights / weights.sum(-1, keepdim=True), ids.to(torch.int32)

    def pages(self, blocks_of: Sequence[int], *, spare: int = 0) -> "tuple[Tensor, int]":
        """A block table int32 [sequences, most blocks], scattered over a pool, and the pool's blocks.

        Entries beyond a sequence's own blocks are 0, as engines leave them.
        """
        import torch

        pool = sum(blocks_of) + spare
        scattered = self.permutation(pool)
        table = torch.zeros(len(blocks_of), max(blocks_of, default=0), dtype=torch.int32, device=self.device)
        at = 0
        for row, blocks in enumerate(blocks_of):
            table[row, :blocks] = scattered[at : at + blocks]
            at += blocks
        return table, pool

    def _filled(self, shape: Sequence[int], dtype: str, fill: Any) -> "Tensor":
        """Values of `fill` in fp32, converted piece by piece."""
        import torch

        out = torch.empty(shape, dtype=torch_dtype(dtype), device=self.device)
        flat = out.view(-1)
        for part in pieces(flat.numel(), 1):  # fp32 and the dtype asked for lie side by side only briefly
            flat[part] = fill(torch.empty(part.stop - part.start, device=self.device)).to(out.dtype)
        return out


def torch_dtype(name: str) -> Any:
    """The torch dtype of a short name: `bf16`, `fp8_e4m3fn`, `int32`."""
    import torch

    short = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"}
    return getattr(torch, short.get(name, name.replace("fp8", "float8")))


def largest_of(fp8_dtype: str) -> float:
    """The largest value of the type: 240 of e4m3fnuz, 448 of e4m3fn."""
    import torch

    return float(torch.finfo(torch_dtype(fp8_dtype)).max)


def offsets(lengths: "Sequence[int]", device: str = "cpu") -> "Tensor":
    """Where each of sequences that lie one after another begins, and where the last ends: int32 [sequences + 1]."""
    import torch

    ends = torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0)
    return ends.to(device=device, dtype=torch.int32)
