"""What models are recognised by: parameters are counted from the dimensions by a formula of the test's own."""

import pytest

from inferometer.architectures.dimensions import Dimensions, known_dimensions, listed_dimensions
from inferometer.architectures.known import bundled_models, plain_name


def parameters(of: Dimensions) -> int:
    """All numbers of the model; published counts have the output projection apart where it isn't tied."""
    D, H, K, hd, V = of.hidden, of.heads, of.kv_heads, of.head_dim, of.vocab
    if of.latent is None:
        mixer = D * hd * (2 * H + 2 * K) + of.qkv_bias * hd * (H + 2 * K) + of.o_bias * D + of.head_norms * 2 * hd
    else:
        q, r, n, e, v = (getattr(of.latent, name) for name in ("query_rank", "rank", "nope", "rope", "value"))
        queries = D * H * (n + e) if q is None else D * q + q + q * H * (n + e)
        mixer = queries + D * (r + e) + r + r * H * (n + v) + H * v * D
    layer = mixer + of.norms * D + of.sinks * H
    dense = 3 * D * (of.intermediate or 0)
    if of.experts is None:
        return of.layers * (layer + dense) + D + V * D * (2 - of.tied)
    E, W, S = of.experts, of.expert_width or 0, of.shared_width or 0
    experts = D * E + E * of.router_bias + E * (3 * D * W + of.expert_bias * (2 * W + D)) + 3 * D * S
    return (
        of.layers * layer
        + of.dense_layers * dense
        + (of.layers - of.dense_layers) * experts
        + D
        + V * D * (2 - of.tied)
    )


@pytest.mark.parametrize("model", listed_dimensions(), ids=lambda model: model.name)
def test_dimensions_add_up_to_the_published_parameters(model: Dimensions) -> None:
    assert parameters(model) == model.parameters
    assert "config.json" in model.source


def test_no_model_is_listed_twice() -> None:
    names = [plain_name(name) for each in known_dimensions() for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    assert len(known_dimensions()) == len(listed_dimensions()) + len(bundled_models())
