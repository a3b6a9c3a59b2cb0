"""Parts of a decoder that several families share: embedding, attention, feed-forward, experts, the output.

The order of the calls is that in which they run. A norm's role says its place: `input_norm` before attention,
`post_attention_norm` on what attention gives, `pre_ffn_norm` and `post_ffn_norm` around the feed-forward part.
"""

from collections.abc import Callable, Iterator

from inferometer.architectures import calls
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.model import Mixture, Model

Part = Callable[[Model, ModelStep, int], Iterator[OperatorCall]]  # of one layer


def pre_norm_decoder(model: Model, step: ModelStep, attention: Part) -> Iterator[OperatorCall]:
    """A whole step where a norm comes before each of the two halves of a layer (Llama and most that came after it)."""
    yield embedding(model, step)
    for layer in range(model.layers):
        yield calls.rms_norm(step, "input_norm", layer, model.hidden)
        yield from attention(model, step, layer)
        yield residual(model, step, "attention_residual", layer)
        yield calls.rms_norm(step, "pre_ffn_norm", layer, model.hidden)
        yield from feed_forward(model, step, layer)
        yield residual(model, step, "ffn_residual", layer)
    yield from output(model, step)


def sandwich_decoder(model: Model, step: ModelStep, attention: Part) -> Iterator[OperatorCall]:
    """A whole step where norms come before and after each half, and embeddings are scaled by the root of `hidden`."""
    yield embedding(model, step)
    yield calls.elementwise(step, "scale", "embedding_scale", None, model.hidden, inputs=1, flops=1)
    for layer in range(model.layers):
        yield calls.rms_norm(step, "input_norm", layer, model.hidden)
        yield from attention(model, step, layer)
        yield calls.rms_norm(step, "post_attention_norm", layer, model.hidden)
        yield residual(model, step, "attention_residual", layer)
        yield calls.rms_norm(step, "pre_ffn_norm", layer, model.hidden)
        yield from feed_forward(model, step, layer)
        yield calls.rms_norm(step, "post_ffn_norm", layer, model.hidden)
        yield residual(model, step, "ffn_residual", layer)
    yield from output(model, step)


def grouped_query_attention(
    model: Model, step: ModelStep, layer: int, *, head_norms: bool = False
) -> Iterator[OperatorCall]:
    """Queries in groups that share a key and a value head; some families have a norm over each query and key head."""
    hidden, head_dim = model.hidden, model.head_dim
    queries, keys = model.heads * head_dim, model.kv_heads * head_dim
    for role, width in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
        yield calls.matmul(step, role, layer, width, hidden, bias=model.qkv_bias)
    if head_norms:
        yield calls.rms_norm(step, "q_norm", layer, head_dim, heads=model.heads)
        yield calls.rms_norm(step, "k_norm", layer, head_dim, heads=model.kv_heads)
    yield calls.rope(step, "q_rope", layer, heads=model.heads, width=head_dim)
    yield calls.rope(step, "k_rope", layer, heads=model.kv_heads, width=head_dim)
    yield calls.kv_write(step, layer, 2 * keys)
    yield calls.attention(
        step,
        layer,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=head_dim,
        window=model.window(layer),
        softcap=model.attention_softcap,
    )
    yield calls.matmul(step, "o_proj", layer, hidden, queries, bias=model.o_bias)


def feed_forward(model: Model, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    """The second half of a layer: experts where the layer has them, else one gated layer."""
    if model.mixture is not None and layer in model.mixture.layers:
        yield from _experts(model, model.mixture, step, layer)
    elif model.intermediate is not None:
        yield from gated(model, step, layer, "ffn", model.intermediate)


def gated(model: Model, step: ModelStep, layer: int, prefix: str, width: int) -> Iterator[OperatorCall]:
    """Two projections up, the function of one times the other, and one down."""
    bias = model.ffn_bias and prefix == "ffn"
    yield calls.matmul(step, f"{prefix}_gate", layer, width, model.hidden, bias=bias)
    yield calls.matmul(step, f"{prefix}_up", layer, width, model.hidden, bias=bias)
    yield calls.activation(step, f"{prefix}_activation", layer, width, model.activation)
    yield calls.matmul(step, f"{prefix}_down", layer, model.hidden, width, bias=bias)


def embedding(model: Model, step: ModelStep) -> OperatorCall:
    """The rows of the tokens' embeddings."""
    return calls.gather(step, "embedding", table_rows=model.vocab, width=model.hidden)


def residual(model: Model, step: ModelStep, role: str, layer: int) -> OperatorCall:
    """The sum of what went around a part of a layer and what came out of it."""
    return calls.elementwise(step, "add", role, layer, model.hidden, inputs=2, flops=1)


def output(model: Model, step: ModelStep) -> Iterator[OperatorCall]:
    """The last norm, over all rows as the reference implementation has it, the logits, and the choice of a token."""
    yield calls.rms_norm(step, "final_norm", None, model.hidden)
    yield calls.matmul(step, "lm_head", None, model.vocab, model.hidden, rows=step.logit_rows)
    if model.logit_softcap:  # a divide, a tanh, a multiply
        rows = step.logit_rows
        yield calls.elementwise(step, "scale", "logit_softcap", None, model.vocab, inputs=1, flops=3, rows=rows)
    yield calls.sampling(step, model.vocab)


def _experts(model: Model, mixture: Mixture, step: ModelStep, layer: int) -> Iterator[OperatorCall]:
    """A router, each token through its experts, their weighted sum, and the shared expert where there is one."""
    hidden, width, each = model.hidden, mixture.width, mixture.each
    yield calls.matmul(step, "router", layer, mixture.experts, hidden)
    yield calls.moe_routing(step, layer, mixture)
    yield calls.grouped_matmul(step, "expert_gate", layer, width, hidden, mixture, shared_input=True)
    yield calls.grouped_matmul(step, "expert_up", layer, width, hidden, mixture, shared_input=True)
    yield calls.activation(step, "expert_activation", layer, width, model.activation, each=each)
    yield calls.grouped_matmul(step, "expert_down", layer, hidden, width, mixture, shared_input=False)
    yield calls.combine_experts(step, layer, hidden, each=each)
    if mixture.shared_width is None:
        return
    yield from gated(model, step, layer, "shared_expert", mixture.shared_width)
    if mixture.shared_gate:  # the sigmoid of one number per token is too little to count
        yield calls.matmul(step, "shared_expert_router", layer, 1, hidden)
        yield calls.elementwise(step, "scale", "shared_expert_scale", layer, hidden, inputs=1, flops=1)
    yield residual(model, step, "shared_expert_add", layer)
