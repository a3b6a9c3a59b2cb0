"""The feed-forward part of one layer of a transformers model: dense, or experts behind a router.

T tokens of all sequences, E experts, k of them a token, N = T k rows for all experts, n for one, H hidden size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inferometer.engines import arms
from inferometer.engines.hf.weight_reading import Linear, Reader
from inferometer.engines.paths import scope


class FeedForward:
    """A dense feed-forward part."""

    def __init__(self, reader: Reader, module: Any) -> None:
        self.gate, self.up, self.down = (reader.linear(module, f"{name}_proj") for name in ("gate", "up", "down"))
        self.activation = reader.activation()

    def __call__(self, x: Any) -> Any:
        """Like `x` [..., H]."""
        return self.down(arms.call(self.activation, self.gate(x), self.up(x)))


class Mixture:
    """A router, its experts, and one that all tokens pass where there is one."""

    def __init__(self, reader: Reader, module: Any) -> None:
        self.gate = reader.linear(module, "gate")
        owner = module.gate if hasattr(module.gate, "top_k") else module
        self.each = int(owner.top_k)
        self.renormalize = bool(getattr(owner, "norm_topk_prob", True))  # Mixtral's has no such field and does
        self.experts = Experts(reader, module.experts)
        shared = getattr(module, "shared_expert", None)
        self.shared = None if shared is None else FeedForward(reader, shared)
        self.shared_gate = None if shared is None else reader.linear(module, "shared_expert_gate")

    def __call__(self, x_BTH: Any) -> Any:
        """Like `x_BTH`."""
        import torch

        x_TH = x_BTH.reshape(-1, x_BTH.shape[-1])
        logits_TE = self.gate(x_TH)
        weights_Tk, experts_Tk = arms.call("moe_route", logits_TE, k=self.each, renormalize=self.renormalize)
        with scope("experts"):
            out_TH = self.experts(x_TH, weights_Tk, experts_Tk)
        if self.shared is not None and self.shared_gate is not None:
            with scope("shared_expert"):
                shared_TH = self.shared(x_TH)
            out_TH = out_TH + torch.sigmoid(self.shared_gate(x_TH)) * shared_TH
        return out_TH.view_as(x_BTH)


class Experts:
    """The experts of a layer: each takes the tokens that were routed to it."""

    def __init__(self, reader: Reader, module: Any) -> None:
        self._experts = list(_experts(reader, module))

    def __call__(self, x_TH: Any, weights_Tk: Any, experts_Tk: Any) -> Any:
        """Like `x_TH`: the weighted sum over a token's experts, in their order."""
        import torch

        out_TH = torch.zeros_like(x_TH)
        with scope("dispatch"):
            chosen = experts_Tk.flatten()
            order = chosen.argsort(stable=True)
            counts = chosen.bincount(minlength=len(self._experts)).tolist()  # the one wait for the device
            tokens = order // experts_Tk.shape[1]
            x_NH, weight_N1 = x_TH[tokens], weights_Tk.flatten()[order, None].to(x_TH.dtype)
        for expert, *parts in zip(
            self._experts, tokens.split(counts), x_NH.split(counts), weight_N1.split(counts), strict=True
        ):
            tokens_n, x_nH, weight_n1 = parts
            if len(tokens_n):
                out_nH = expert(x_nH)
                with scope("combine"):
                    out_TH.index_add_(0, tokens_n, out_nH * weight_n1)
        return out_TH


@dataclass(frozen=True)
class Expert:
    """`inner` is gate and up, or one projection that gives both, gate first."""

    inner: tuple[Linear, ...]
    activation: str
    down: Linear

    def __call__(self, x: Any) -> Any:
        """Like `x` [n, H]."""
        gate, up = self.inner[0](x).chunk(2, -1) if len(self.inner) == 1 else (part(x) for part in self.inner)
        return self.down(arms.call(self.activation, gate, up))


def _experts(reader: Reader, module: Any) -> Iterator[Expert]:
    activation = reader.activation()
    if hasattr(module, "gate_up_proj"):  # since transformers 5 the weights of all are one
        weights = zip(reader.take(module.gate_up_proj), reader.take(module.down_proj), strict=True)
        for both, down in weights:
            yield Expert((Linear("gate_up_proj", both, None),), activation, Linear("down_proj", down, None))
        return
    for each in module:
        names = ("w1", "w3", "w2") if hasattr(each, "w1") else ("gate_proj", "up_proj", "down_proj")
        gate, up, down = (reader.linear(each, name) for name in names)
        yield Expert((gate, up), activation, down)
