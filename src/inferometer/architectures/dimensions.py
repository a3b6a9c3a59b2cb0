"""The dimensions by which a model is recognised: of the bundled models, and of others that `dimensions.json` has.

The file has what decides the sizes of matrices, as the published `config.json` says, with its source and the number of
parameters that the publisher gives: a test counts them from the dimensions. Left out is what calls aren't made of:
none of these can be run from here.
"""

from functools import cache

import msgspec

from inferometer.architectures.known import bundled_models
from inferometer.architectures.model import Latent, Model


class Dimensions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of one model, named as in `Model`; `aliases` have the same.

    Attributes:
        intermediate: Width of a dense feed-forward layer; None where every layer has experts.
        experts: Routed experts of a layer; None without. `expert_width` is the intermediate width of one.
        shared_width: That of the experts which every token passes, together.
        dense_layers: The first so many layers have no experts.
        norms: Norms of a layer that are as wide as `hidden`; `head_norms`: queries and keys have one each.
        sinks: Attention has a learned number for each head.
    """

    name: str
    source: str
    parameters: int
    layers: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int | None = None
    experts: int | None = None
    expert_width: int | None = None
    shared_width: int | None = None
    dense_layers: int = 0
    latent: Latent | None = None
    tied: bool = False
    norms: int = 2
    head_norms: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    sinks: bool = False
    aliases: tuple[str, ...] = ()


@cache
def known_dimensions() -> tuple[Dimensions, ...]:
    """All that we have, by name."""
    own = [_of(bundled.model, bundled.parameters, bundled.aliases) for bundled in bundled_models()]
    return tuple(sorted((*own, *listed_dimensions()), key=lambda each: each.name.lower()))


def listed_dimensions() -> tuple[Dimensions, ...]:
    """Those of `dimensions.json` alone."""
    from importlib.resources import files

    text = (files("inferometer.architectures") / "dimensions.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Dimensions, ...])


def _of(model: Model, parameters: int, aliases: tuple[str, ...]) -> Dimensions:
    mixture = model.mixture
    return Dimensions(
        name=model.name,
        source=model.source,
        parameters=parameters,
        layers=model.layers,
        hidden=model.hidden,
        vocab=model.vocab,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        intermediate=model.intermediate,
        experts=mixture.experts if mixture else None,
        expert_width=mixture.width if mixture else None,
        shared_width=mixture.shared_width if mixture else None,
        dense_layers=0 if mixture is None else model.layers - len(mixture.layers),
        latent=model.latent,
        tied=model.tied_embeddings,
        qkv_bias=model.qkv_bias,
        aliases=aliases,
    )
