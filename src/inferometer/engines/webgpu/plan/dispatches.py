"""From a step and its chosen kernel to dispatches: bindings by their names in the kernel, constants, grids, costs.

A function for each operator knows its operands; a kernel gets those of them that it declares, so that variants may
differ in what they bind. T rows of a pass, N and K rows and columns of a matrix.
"""

from collections.abc import Callable, Iterator, Mapping

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.webgpu.model_spec import Experts, ModelSpec
from inferometer.engines.webgpu.plan import costs
from inferometer.engines.webgpu.plan.layout import MatrixPart
from inferometer.engines.webgpu.plan.matrix_grids import (
    MOST_GROUPS,
    columns,
    cut_parts,
    matrix_grid,
    most_columns,
    rows_of_bias,
)
from inferometer.engines.webgpu.plan.step_context import StepContext
from inferometer.engines.webgpu.program import Binding, Dispatch, Extent, Grid
from inferometer.errors import FormatError

_TILED_ATTENTION = ("attention_tiled", "attention_tiled_subgroups")
_QUERIES_OF_A_TILE = 16
_ACTIVATIONS = {"silu": 0, "gelu_tanh": 1}


def _gather(ctx: StepContext) -> Iterator[Dispatch]:
    spec = ctx.layout.spec
    table = ctx.layout.matrix(ctx.weights())
    arrays = {"tokens": ctx.layout.words("tokens"), "seen": ctx.layout.words("seen"), "out": ctx.write(0, table.k)}
    for part in table.parts:
        constants = {
            "K": table.k,
            "WEIGHTS": part.weights.code,
            "ROW0": part.first,
            "ROWS": part.rows,
            "SCALE": spec.embed_scale,
        }
        yield ctx.dispatch(
            ctx.chosen.choice.kernel,
            {**arrays, "table": part.binding},
            constants,
            (ctx.many_rows(), 1, 1),
            costs.gather(spec, part.first, part.rows, part.row_bytes),
            f"[T] of [{part.rows},{table.k}]",
        )


def _norm(ctx: StepContext) -> Iterator[Dispatch]:
    """`rms_norm`, and with the residual `add_rms_norm` and `norm_add_norm`."""
    spec, adds, twice = ctx.layout.spec, ctx.step.op != "rms_norm", ctx.step.op == "norm_add_norm"
    width = ctx.widths[ctx.step.inputs[0]]
    arrays = {"x": ctx.read(-1, width), "weight": ctx.vector(-1, width)}
    if adds:
        arrays["residual"] = ctx.read(0)
    if twice:
        arrays["post"] = ctx.vector(0, width)
    arrays["out"] = ctx.write(-1, width)
    yield ctx.dispatch(
        ctx.chosen.choice.kernel,
        arrays,
        {"D": width, "EPS": spec.eps, "OFFSET": spec.norm_offset},
        (ctx.many_rows(), 1, 1),
        costs.norm(width, residual=adds, post=twice),
        f"[T,{width}]",
    )


def _linear(ctx: StepContext) -> Iterator[Dispatch]:
    """`linear` of one row and its fused forms, `matmul` of many; a matrix in parts has a dispatch (or two) for each."""
    spec, kernel, op = ctx.layout.spec, ctx.chosen.choice.kernel, ctx.step.op
    matrix, bias = ctx.layout.matrix(ctx.matrices()), ctx.extra()
    adds, normed = op == "linear_add", op == "norm_linear"
    x = ctx.read(-1, matrix.k)
    out = ctx.read(0, matrix.n) if adds else ctx.write(0, matrix.n)
    is_last_row = ctx.phase == "head"
    one_row = op != "matmul"
    rows = "T" if not one_row else "1"
    for part in cut_parts(matrix.parts, most_columns(ctx, kernel)):
        here = ctx.layout.unused() if bias is None else rows_of_bias(bias, part)
        arrays = {"x": x, "weight": part.binding, "bias": here, "out": out}
        if normed:
            arrays["norm"] = ctx.vector(0, matrix.k)
        constants = {
            "EPS": spec.eps,
            "OFFSET": spec.norm_offset,
            "ADD": adds,
            "K": matrix.k,
            "N": part.rows,
            "WEIGHTS": part.weights.code,
            "HAS_BIAS": bias is not None,
            "OUT0": part.first,
            "STRIDE": matrix.n,
            "LAST_ROW": is_last_row,
        }
        shapes = f"[{rows},{matrix.k}] x [{part.rows},{matrix.k}]"
        if ctx.chosen.choice.then is not None:
            yield from _split_linear(ctx, arrays, constants, part, matrix.k, shapes)
            continue
        cost = costs.linear(
            part.rows, matrix.k, part.row_bytes, bias=bias is not None, one_row=one_row, add=adds, norm=normed
        )
        yield ctx.dispatch(kernel, arrays, constants, matrix_grid(ctx, kernel, part.rows), cost, shapes)


def _split_linear(
    ctx: StepContext,
    arrays: Mapping[str, Binding],
    constants: Mapping[str, float],
    part: MatrixPart,
    k: int,
    shapes: str,
) -> Iterator[Dispatch]:
    """Columns in parts of K, then their sums."""
    n = part.rows
    kernel, then = ctx.chosen.choice.kernels
    splits = ctx.chosen.constant(kernel, "SPLITS")
    arrays = {**arrays, "partials": ctx.layout.activation("linear_parts", splits * n)}
    grid = (-(-n // columns(ctx, kernel)), splits, 1)
    yield ctx.dispatch(kernel, arrays, constants, grid, costs.split_linear(n, k, part.row_bytes, splits), shapes)
    cost = costs.sum_splits(n, splits, bias=bool(constants["HAS_BIAS"]), add=bool(constants["ADD"]))
    op = read_kernel(then).op
    grid = (-(-n // columns(ctx, then)), 1, 1)
    yield ctx.dispatch(then, arrays, constants, grid, cost, f"[{splits},{n}]", op=op)


def _gate_up(ctx: StepContext) -> Iterator[Dispatch]:
    spec, kernel, normed = ctx.layout.spec, ctx.chosen.choice.kernel, ctx.step.op == "norm_gate_up"
    gate, up = ctx.layout.alike(ctx.matrices())
    if (gate.n, gate.k) != (up.n, up.k):
        raise FormatError(
            f"{ctx.place}: expected two matrices of one shape, found {gate.n} x {gate.k}, {up.n} x {up.k}"
        )
    x, out = ctx.read(0, gate.k), ctx.write(0, gate.n)
    most = most_columns(ctx, kernel)
    for of_gate, of_up in zip(cut_parts(gate.parts, most), cut_parts(up.parts, most), strict=True):
        n = of_gate.rows
        arrays = {"x": x, "gate": of_gate.binding, "up": of_up.binding, "out": out}
        if normed:
            arrays["norm"] = ctx.vector(0, gate.k)
        shape = {"K": gate.k, "N": n, "OUT0": of_gate.first, "STRIDE": gate.n}
        of_norm = {"EPS": spec.eps, "OFFSET": spec.norm_offset}
        yield ctx.dispatch(
            kernel,
            arrays,
            {**shape, **of_norm, "ACTIVATION": _ACTIVATIONS[spec.activation], "WEIGHTS": of_gate.weights.code},
            matrix_grid(ctx, kernel, n),
            costs.gate_up(spec, n, gate.k, of_gate.row_bytes, norm=normed),
            f"[{_rows(ctx)},{gate.k}] x 2 [{n},{gate.k}]",
        )


def _gated_activation(ctx: StepContext) -> Iterator[Dispatch]:
    spec, kernel = ctx.layout.spec, ctx.chosen.choice.kernel
    n = ctx.widths[ctx.step.inputs[0]] // 2
    arrays = {"x": ctx.read(0), "out": ctx.write(0, n)}
    constants = {"N": n, "ACTIVATION": _ACTIVATIONS[spec.activation]}
    grid = (-(-n // ctx.chosen.constant(kernel, "THREADS")), ctx.many_rows(), 1)
    yield ctx.dispatch(kernel, arrays, constants, grid, costs.gated_activation(spec, n), f"[{_rows(ctx)},2*{n}]")


def _moe_route(ctx: StepContext) -> Iterator[Dispatch]:
    experts, scores = _experts(ctx), ctx.widths[ctx.step.inputs[0]]
    arrays = {"scores": ctx.read(0), "out": ctx.write(0, 2 * experts.each)}
    constants = {
        "EXPERTS": experts.count,
        "EACH": experts.each,
        "STRIDE": scores,
        "RENORMALIZE": experts.renormalize,
    }
    cost = costs.moe_route(experts, scores)
    shapes = f"[T,{experts.count}] to [T,{experts.each}]"
    yield ctx.dispatch(ctx.chosen.choice.kernel, arrays, constants, (ctx.many_rows(), 1, 1), cost, shapes)


def _expert_gate_up(ctx: StepContext) -> Iterator[Dispatch]:
    spec, experts, kernel = ctx.layout.spec, _experts(ctx), ctx.chosen.choice.kernel
    gate, up = (ctx.layout.experts(_layer(ctx), name) for name in ("gate", "up"))
    arrays = {"x": ctx.read(0, gate.k), "routes": ctx.read(1), "out": ctx.write(0, experts.each * experts.size)}
    grid = (-(-experts.size // columns(ctx, kernel)), experts.each, ctx.many_rows())
    for of_gate, of_up in zip(gate.parts, up.parts, strict=True):
        part = _experts_of(of_gate, experts.size)
        constants = {**_expert_constants(ctx, part), "K": gate.k, "N": experts.size}
        yield ctx.dispatch(
            kernel,
            {**arrays, "gate": of_gate.binding, "up": of_up.binding},
            {**constants, "ACTIVATION": _ACTIVATIONS[spec.activation]},
            grid,
            costs.expert_gate_up(spec, experts, part, of_gate.row_bytes),
            f"[{_rows(ctx)},{gate.k}] x {experts.each} of {len(part)} 2 [{experts.size},{gate.k}]",
        )


def _expert_down(ctx: StepContext) -> Iterator[Dispatch]:
    spec, experts, kernel = ctx.layout.spec, _experts(ctx), ctx.chosen.choice.kernel
    down = ctx.layout.experts(_layer(ctx), "down")
    arrays = {"x": ctx.read(0, experts.each * down.k), "routes": ctx.read(1), "out": ctx.write(0, spec.hidden)}
    grid = (-(-spec.hidden // columns(ctx, kernel)), ctx.many_rows(), 1)
    for each in down.parts:
        part = _experts_of(each, spec.hidden)
        yield ctx.dispatch(
            kernel,
            {**arrays, "weight": each.binding},
            {**_expert_constants(ctx, part), "K": down.k, "N": spec.hidden, "ADD": part.start > 0},
            grid,
            costs.expert_down(spec, experts, part, each.row_bytes),
            f"[{_rows(ctx)},{experts.each},{down.k}] x {experts.each} of {len(part)} [{spec.hidden},{down.k}]",
        )


def _shared_expert_add(ctx: StepContext) -> Iterator[Dispatch]:
    n, kernel, scores = ctx.layout.spec.hidden, ctx.chosen.choice.kernel, ctx.widths[ctx.step.inputs[2]]
    arrays = {"x": ctx.read(0, n), "shared_out": ctx.read(1, n), "scores": ctx.read(2)}
    constants = {"N": n, "STRIDE": scores, "COLUMN": scores - 1}
    grid = (-(-n // ctx.chosen.constant(kernel, "THREADS")), ctx.many_rows(), 1)
    yield ctx.dispatch(kernel, arrays, constants, grid, costs.shared_expert_add(n), f"[{_rows(ctx)},{n}]")


def _rope(ctx: StepContext) -> Iterator[Dispatch]:
    spec, layer = ctx.layout.spec, _layer(ctx)
    heads = spec.heads + 2 * spec.kv_heads
    keys, values = ctx.layout.key_values(layer)
    norms = ctx.extra()
    arrays = {
        "qkv": ctx.read(0, heads * spec.head_dim),
        "angles": ctx.layout.angles(layer),
        "head_norms": ctx.layout.unused() if norms is None else norms,
        "q": ctx.write(0, spec.heads * spec.head_dim),
        "k": keys,
        "v": values,
    }
    constants = {
        "HEADS": spec.heads,
        "KV_HEADS": spec.kv_heads,
        "DH": spec.head_dim,
        "HAS_NORMS": norms is not None,
        "EPS": spec.eps,
        "OFFSET": spec.norm_offset,
        "CACHE": ctx.layout.cache.code,
    }
    shapes = f"[T,{spec.heads}+2*{spec.kv_heads},{spec.head_dim}]"
    grid = (heads, ctx.many_rows(), 1)
    yield ctx.dispatch(ctx.chosen.choice.kernel, arrays, constants, grid, costs.rope(spec, ctx.layout.cache), shapes)


def _attention(ctx: StepContext) -> Iterator[Dispatch]:
    spec, layer, kernel = ctx.layout.spec, _layer(ctx), ctx.chosen.choice.kernel
    keys, values = ctx.layout.key_values(layer)
    width = spec.heads * spec.head_dim
    window = spec.windows[layer]
    if window is not None and window >= ctx.layout.capacity:
        window = None  # no position is ever beyond it
    arrays = {"q": ctx.read(0, width), "k": keys, "v": values, "out": ctx.write(0, width)}
    constants: dict[str, float] = {
        "HEADS": spec.heads,
        "KV_HEADS": spec.kv_heads,
        "DH": spec.head_dim,
        "SCALE": spec.attention_scale,
        "WINDOW": window or 0,
        "SOFTCAP": spec.attention_softcap or 0.0,
        "CACHE": ctx.layout.cache.code,
    }
    cache = ctx.layout.cache
    seen = "KV" if window is None else f"min(KV,{window})"
    shapes = f"[{_rows(ctx)},{spec.heads},{spec.head_dim}] x 2 [{seen},{spec.kv_heads},{spec.head_dim}]"
    if ctx.chosen.choice.then is None:
        grid: Grid = _tile_grid(spec) if kernel in _TILED_ATTENTION else (spec.heads, ctx.many_rows(), 1)
        yield ctx.dispatch(kernel, arrays, constants, grid, costs.attention(spec, cache, window), shapes)
        return
    chunk = ctx.chosen.constant(kernel, "CHUNK")
    chunks = -(-min(ctx.layout.capacity, window or ctx.layout.capacity) // chunk)
    constants |= {"CHUNK": chunk, "MAX_CHUNKS": chunks}
    arrays["partials"] = ctx.layout.activation("attention_parts", spec.heads * chunks * (spec.head_dim + 2))
    grid = (spec.kv_heads, Extent("kv", per=chunk, most=window), 1)
    yield ctx.dispatch(kernel, arrays, constants, grid, costs.attention(spec, cache, window, chunk=chunk), shapes)
    then = ctx.chosen.choice.then
    cost, op = costs.merge(spec, window, chunk), read_kernel(then).op
    shapes = f"[{spec.heads},{seen}/{chunk},{spec.head_dim + 2}]"
    yield ctx.dispatch(then, arrays, constants, (spec.heads, 1, 1), cost, shapes, op=op)


def _tile_grid(spec: ModelSpec) -> Grid:
    """A workgroup has the tokens whose heads on one kv head fill a tile; of more heads than that, one token a block."""
    of_group = spec.heads // spec.kv_heads
    heads = min(of_group, _QUERIES_OF_A_TILE)
    return (spec.kv_heads * -(-of_group // heads), Extent("tokens", per=_QUERIES_OF_A_TILE // heads), 1)


def _soft_cap(ctx: StepContext) -> Iterator[Dispatch]:
    spec, kernel = ctx.layout.spec, ctx.chosen.choice.kernel
    width = ctx.widths[ctx.step.inputs[0]]
    groups = min(-(-width // ctx.chosen.constant(kernel, "THREADS")), MOST_GROUPS)
    constants = {"N": width, "SOFTCAP": spec.logit_softcap or 0.0}
    yield ctx.dispatch(kernel, {"x": ctx.read(0)}, constants, (groups, 1, 1), costs.soft_cap(width), f"[{width}]")


def _argmax(ctx: StepContext) -> Iterator[Dispatch]:
    spec, kernel = ctx.layout.spec, ctx.chosen.choice.kernel
    groups = ctx.chosen.constant(kernel, "GROUPS")
    arrays = {
        "logits": ctx.read(0, spec.vocab),
        "seen": ctx.layout.words("seen"),
        "sampling": ctx.layout.words("sampling"),
        "partials": ctx.write(0, 2 * groups),
    }
    constants = {"V": spec.vocab, "GROUPS": groups}
    cost = costs.argmax(spec, groups)
    yield ctx.dispatch(kernel, arrays, constants, (groups, 1, 1), cost, f"[{spec.vocab}]")


def _sample(ctx: StepContext) -> Iterator[Dispatch]:
    spec = ctx.layout.spec
    groups = ctx.widths[ctx.step.inputs[1]] // 2
    arrays = {
        "tokens": ctx.layout.words("tokens"),
        "sampling": ctx.layout.words("sampling"),
        "logits": ctx.read(0, spec.vocab),
        "seen": ctx.layout.words("seen"),
        "partials": ctx.read(1),
    }
    constants = {"V": spec.vocab, "GROUPS": groups}
    yield ctx.dispatch(ctx.chosen.choice.kernel, arrays, constants, (1, 1, 1), costs.sample(groups), f"[{groups},2]")


DISPATCHES: Mapping[str, Callable[[StepContext], Iterator[Dispatch]]] = {
    "gather": _gather,
    "rms_norm": _norm,
    "add_rms_norm": _norm,
    "norm_add_norm": _norm,
    "linear": _linear,
    "linear_add": _linear,
    "norm_linear": _linear,
    "matmul": _linear,
    "gate_up": _gate_up,
    "norm_gate_up": _gate_up,
    "gated_activation": _gated_activation,
    "moe_route": _moe_route,
    "expert_gate_up": _expert_gate_up,
    "expert_down": _expert_down,
    "shared_expert_add": _shared_expert_add,
    "rope": _rope,
    "attention": _attention,
    "soft_cap": _soft_cap,
    "argmax": _argmax,
    "sample": _sample,
}


def _rows(ctx: StepContext) -> str:
    """Rows of a step of the layers, for people."""
    return "1" if ctx.phase == "decode" else "T"


def _experts(ctx: StepContext) -> Experts:
    if ctx.layout.spec.experts is None:
        raise FormatError(f"{ctx.place}: expected a model with experts, found {ctx.layout.spec.name}")
    return ctx.layout.spec.experts


def _experts_of(part: MatrixPart, rows: int) -> range:
    """The experts in a part of their matrices, of so many rows each."""
    return range(part.first // rows, (part.first + part.rows) // rows)


def _expert_constants(ctx: StepContext, part: range) -> Mapping[str, float]:
    return {
        "EACH": _experts(ctx).each,
        "EXPERT0": part.start,
        "EXPERTS": len(part),
        "WEIGHTS": ctx.layout.expert_weights.code,
    }


def _layer(ctx: StepContext) -> int:
    if ctx.layer is None:
        raise FormatError(f"{ctx.place}: {ctx.step.op} belongs into a layer: it has a KV cache for each")
    return ctx.layer
