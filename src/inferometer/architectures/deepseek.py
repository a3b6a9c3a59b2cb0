"""DeepSeek V2 and V3 (and R1): latent attention, experts with shared ones after a few dense layers.

Source: arXiv:2405.04434 (V2), arXiv:2412.19437 (V3), their published `config.json`.

Keys and values are cached as one latent vector a position, with one key part that has positions. Attention over
them comes in two forms, which `shape["absorbed"]` tells apart:

- a step of one token a sequence (decode) is **absorbed**: the up-projection of keys goes into the queries, that of
  values comes after attention, and all heads read the latents themselves, as one key and value head;
- a step of several (prefill) is **not**: keys and values of every visible position are made from the latents by
  `kv_b_proj`, those of the context again, and attention has as many key heads as query heads.

Left out: the modules that predict further tokens (`num_nextn_predict_layers`), which the model itself doesn't need.
"""

from collections.abc import Iterator

import msgspec

from inferometer.architectures import calls
from inferometer.architectures.architecture import Architecture
from inferometer.architectures.blocks import pre_norm_decoder
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config, read_decoder, read_mixture
from inferometer.architectures.model import Latent, Mixture, Model


def _read(config: Config) -> Model:
    latent = Latent(
        rank=config.integer("kv_lora_rank"),
        query_rank=config.optional_integer("q_lora_rank"),
        nope=config.integer("qk_nope_head_dim"),
        rope=config.integer("qk_rope_head_dim"),
        value=config.integer("v_head_dim"),
    )
    model = read_decoder(config, tied=False, head_dim=latent.nope + latent.rope)
    mixture = _read_mixture(config, model) if config.optional_integer("n_routed_experts") else None
    return msgspec.structs.replace(model, latent=latent, mixture=mixture)


def _read_mixture(config: Config, model: Model) -> Mixture | None:
    """The layers from `first_k_dense_replace` have experts; the shared ones are as one, as wide as all of them."""
    first, every = config.integer("first_k_dense_replace", least=0), config.optional_integer("moe_layer_freq") or 1
    layers = [layer for layer in range(first, model.layers) if layer % every == 0]
    mixture = read_mixture(config, experts="n_routed_experts", width="moe_intermediate_size", layers=layers)
    if mixture is None:
        return None
    shared = config.optional_integer("n_shared_experts", least=0)
    return msgspec.structs.replace(
        mixture,
        shared_width=shared * mixture.width if shared else None,
        router_bias=model.architecture == "deepseek_v3",
    )


def _calls(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    return pre_norm_decoder(model, step, _latent_attention)


def _latent_attention(model: Model, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    latent = model.latent
    if latent is None:
        raise ValueError(f"{model.name}: a {model.architecture} model without latent attention")
    yield from _queries(model, latent, step, layer)
    yield calls.matmul(step, "kv_a_proj", layer, latent.cached_width, model.hidden, bias=model.qkv_bias)
    yield calls.rms_norm(step, "kv_a_norm", layer, latent.rank)
    yield calls.rope(step, "q_rope", layer, heads=model.heads, width=latent.rope)
    yield calls.rope(step, "k_rope", layer, heads=1, width=latent.rope)
    yield calls.kv_write(step, layer, latent.cached_width)
    yield from (_absorbed if step.tokens == 1 else _expanded)(model.heads, latent, step, layer)
    yield calls.matmul(step, "o_proj", layer, model.hidden, model.heads * latent.value, bias=model.o_bias)


def _queries(model: Model, latent: Latent, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    width = model.heads * model.head_dim
    if latent.query_rank is None:
        yield calls.matmul(step, "q_proj", layer, width, model.hidden)
        return
    yield calls.matmul(step, "q_a_proj", layer, latent.query_rank, model.hidden, bias=model.qkv_bias)
    yield calls.rms_norm(step, "q_a_norm", layer, latent.query_rank)
    yield calls.matmul(step, "q_b_proj", layer, width, latent.query_rank)


def _absorbed(heads: int, latent: Latent, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    """Queries go into the latents' space, and what attention gives comes out of it; the cache is read as it is."""
    yield calls.head_matmul(step, "q_absorb", layer, latent.rank, latent.nope, heads=heads)
    cached = step.cached(step.batch * (step.context + step.tokens) * latent.cached_width)
    yield _attention(step, layer, heads, latent.cached_width, latent.rank, cached, absorbed=True)
    yield calls.head_matmul(step, "v_absorb", layer, latent.value, latent.rank, heads=heads)


def _expanded(heads: int, latent: Latent, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    """Keys and values are made of all latents; the part of the keys with positions stays one for all heads."""
    positions, width = step.batch * (step.context + step.tokens), heads * (latent.nope + latent.value)
    expansion = calls.matmul(step, "kv_b_proj", layer, width, latent.rank, rows=positions)
    yield msgspec.structs.replace(expansion, read_bytes=step.cached(positions * latent.rank))
    expanded = step.activations(positions * width) + step.cached(positions * latent.rope)
    yield _attention(step, layer, heads, latent.nope + latent.rope, latent.value, expanded, absorbed=False)


def _attention(
    step: ModelStep, layer: int, heads: int, key: int, value: int, kv_bytes: int, *, absorbed: bool
) -> OperatorCall:
    """As `calls.attention`, with values of another width than keys: 2 FLOPs an element of either."""
    pairs, kv = calls.visible_pairs(step.tokens, step.context, None), step.context + step.tokens
    widths = {"heads": heads, "kv_heads": 1 if absorbed else heads, "head_dim": key, "value_dim": value}
    return OperatorCall(
        "attention",
        "attention",
        layer,
        {"batch": step.batch, "tokens": step.tokens, **widths, "kv": kv, "pairs": pairs, "absorbed": int(absorbed)},
        flops=step.batch * pairs * heads * 2 * (key + value),
        weight_bytes=0,
        read_bytes=step.activations(step.rows * heads * key) + kv_bytes,
        written_bytes=step.activations(step.rows * heads * value),
    )


ARCHITECTURE = Architecture(name="deepseek", model_types=("deepseek_v2", "deepseek_v3"), read=_read, calls=_calls)
