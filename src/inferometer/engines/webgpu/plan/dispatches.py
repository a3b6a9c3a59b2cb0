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


def _gather(c: StepContext) -> Iterator[Dispatch]:
    spec = c.layout.spec
    table = c.layout.matrix(c.weights())
    arrays = {"tokens": c.layout.words("tokens"), "seen": c.layout.words("seen"), "out": c.write(0, table.k)}
    for part in table.parts:
        constants = {
            "K": table.k,
            "WEIGHTS": part.weights.code,
            "ROW0": part.first,
            "ROWS": part.rows,
            "SCALE": spec.embed_scale,
        }
        yield c.dispatch(
            c.chosen.choice.kernel,
            {**arrays, "table": part.binding},
            constants,
            (c.many_rows(), 1, 1),
            costs.gather(spec, part.first, part.rows, part.row_bytes),
            f"[T] of [{part.rows},{table.k}]",
        )


def _norm(c: StepContext) -> Iterator[Dispatch]:
    """`rms_norm`, and with the residual `add_rms_norm` and `norm_add_norm`."""
    spec, adds, twice = c.layout.spec, c.step.op != "rms_norm", c.step.op == "norm_add_norm"
    width = c.widths[c.step.inputs[0]]
    arrays = {"x": c.read(-1, width), "weight": c.vector(-1, width)}
    if adds:
        arrays["residual"] = c.read(0)
    if twice:
        arrays["post"] = c.vector(0, width)
    arrays["out"] = c.write(-1, width)
    yield c.dispatch(
        c.chosen.choice.kernel,
        arrays,
        {"D": width, "EPS": spec.eps, "OFFSET": spec.norm_offset},
        (c.many_rows(), 1, 1),
        costs.norm(width, residual=adds, post=twice),
        f"[T,{width}]",
    )


def _linear(c: StepContext) -> Iterator[Dispatch]:
    """`linear` of one row and its fused forms, `matmul` of many; a matrix in parts has a dispatch (or two) for each."""
    spec, kernel, op = c.layout.spec, c.chosen.choice.kernel, c.step.op
    matrix, bias = c.layout.matrix(c.matrices()), c.extra()
    adds, normed = op == "linear_add", op == "norm_linear"
    x = c.read(-1, matrix.k)
    out = c.read(0, matrix.n) if adds else c.write(0, matrix.n)
    is_last_row = c.phase == "head"
    one_row = op != "matmul"
    rows = "T" if not one_row else "1"
    for part in cut_parts(matrix.parts, most_columns(c, kernel)):
        here = c.layout.unused() if bias is None else rows_of_bias(bias, part)
        arrays = {"x": x, "weight": part.binding, "bias": here, "out": out}
        if normed:
            arrays["norm"] = c.vector(0, matrix.k)
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
        if c.chosen.choice.then is not None:
            yield from _split_linear(c, arrays, constants, part, matrix.k, shapes)
            continue
        cost = costs.linear(
            part.rows, matrix.k, part.row_bytes, bias=bias is not None, one_row=one_row, add=adds, norm=normed
        )
        yield c.dispatch(kernel, arrays, constants, matrix_grid(c, kernel, part.rows), cost, shapes)


def _split_linear(
    c: StepContext, arrays: Mapping[str, Binding], constants: Mapping[str, float], part: MatrixPart, k: int, shapes: str
) -> Iterator[Dispatch]:
    """Columns in parts of K, then their sums."""
    n = part.rows
    kernel, then = c.chosen.choice.kernels
    splits = c.chosen.constant(kernel, "SPLITS")
    arrays = {**arrays, "partials": c.layout.activation("linear_parts", splits * n)}
    grid = (-(-n // columns(c, kernel)), splits, 1)
    yield c.dispatch(kernel, arrays, constants, grid, costs.split_linear(n, k, part.row_bytes, splits), shapes)
    cost = costs.sum_splits(n, splits, bias=bool(constants["HAS_BIAS"]), add=bool(constants["ADD"]))
    op = read_kernel(then).op
    grid = (-(-n // columns(c, then)), 1, 1)
    yield c.dispatch(then, arrays, constants, grid, cost, f"[{splits},{n}]", op=op)


def _gate_up(c: StepContext) -> Iterator[Dispatch]:
    spec, kernel, normed = c.layout.spec, c.chosen.choice.kernel, c.step.op == "norm_gate_up"
    gate, up = c.layout.alike(c.matrices())
    if (gate.n, gate.k) != (up.n, up.k):
        raise FormatError(f"{c.place}: expected two matrices of one shape, found {gate.n} x {gate.k}, {up.n} x {up.k}")
    x, out = c.read(0, gate.k), c.write(0, gate.n)
    most = most_columns(c, kernel)
    for of_gate, of_up in zip(cut_parts(gate.parts, most), cut_parts(up.parts, most), strict=True):
        n = of_gate.rows
        arrays = {"x": x, "gate": of_gate.binding, "up": of_up.binding, "out": out}
        if normed:
            arrays["norm"] = c.vector(0, gate.k)
        shape = {"K": gate.k, "N": n, "OUT0": of_gate.first, "STRIDE": gate.n}
        of_norm = {"EPS": spec.eps, "OFFSET": spec.norm_offset}
        yield c.dispatch(
            kernel,
            arrays,
            {**shape, **of_norm, "ACTIVATION": _ACTIVATIONS[spec.activation], "WEIGHTS": of_gate.weights.code},
            matrix_grid(c, kernel, n),
            costs.gate_up(spec, n, gate.k, of_gate.row_bytes, norm=normed),
            f"[{_rows(c)},{gate.k}] x 2 [{n},{gate.k}]",
        )


def _gated_activation(c: StepContext) -> Iterator[Dispatch]:
    spec, kernel = c.layout.spec, c.chosen.choice.kernel
    n = c.widths[c.step.inputs[0]] // 2
    arrays = {"x": c.read(0), "out": c.write(0, n)}
    constants = {"N": n, "ACTIVATION": _ACTIVATIONS[spec.activation]}
    grid = (-(-n // c.chosen.constant(kernel, "THREADS")), c.many_rows(), 1)
    yield c.dispatch(kernel, arrays, constants, grid, costs.gated_activation(spec, n), f"[{_rows(c)},2*{n}]")


def _moe_route(c: StepContext) -> Iterator[Dispatch]:
    experts, scores = _experts(c), c.widths[c.step.inputs[0]]
    arrays = {"scores": c.read(0), "out": c.write(0, 2 * experts.each)}
    constants = {
        "EXPERTS": experts.count,
        "EACH": experts.each,
        "STRIDE": scores,
        "RENORMALIZE": experts.renormalize,
    }
    cost = costs.moe_route(experts, scores)
    shapes = f"[T,{experts.count}] to [T,{experts.each}]"
    yield c.dispatch(c.chosen.choice.kernel, arrays, constants, (c.many_rows(), 1, 1), cost, shapes)


def _expert_gate_up(c: StepContext) -> Iterator[Dispatch]:
    spec, experts, kernel = c.layout.spec, _experts(c), c.chosen.choice.kernel
    gate, up = (c.layout.experts(_layer(c), name) for name in ("gate", "up"))
    arrays = {"x": c.read(0, gate.k), "routes": c.read(1), "out": c.write(0, experts.each * experts.size)}
    grid = (-(-experts.size // columns(c, kernel)), experts.each, c.many_rows())
    for of_gate, of_up in zip(gate.parts, up.parts, strict=True):
        part = _experts_of(of_gate, experts.size)
        constants = {**_expert_constants(c, part), "K": gate.k, "N": experts.size}
        yield c.dispatch(
            kernel,
            {**arrays, "gate": of_gate.binding, "up": of_up.binding},
            {**constants, "ACTIVATION": _ACTIVATIONS[spec.activation]},
            grid,
            costs.expert_gate_up(spec, experts, part, of_gate.row_bytes),
            f"[{_rows(c)},{gate.k}] x {experts.each} of {len(part)} 2 [{experts.size},{gate.k}]",
        )


def _expert_down(c: StepContext) -> Iterator[Dispatch]:
    spec, experts, kernel = c.layout.spec, _experts(c), c.chosen.choice.kernel
    down = c.layout.experts(_layer(c), "down")
    arrays = {"x": c.read(0, experts.each * down.k), "routes": c.read(1), "out": c.write(0, spec.hidden)}
    grid = (-(-spec.hidden // columns(c, kernel)), c.many_rows(), 1)
    for each in down.parts:
        part = _experts_of(each, spec.hidden)
        yield c.dispatch(
            kernel,
            {**arrays, "weight": each.binding},
            {**_expert_constants(c, part), "K": down.k, "N": spec.hidden, "ADD": part.start > 0},
            grid,
            costs.expert_down(spec, experts, part, each.row_bytes),
            f"[{_rows(c)},{experts.each},{down.k}] x {experts.each} of {len(part)} [{spec.hidden},{down.k}]",
        )


def _shared_expert_add(c: StepContext) -> Iterator[Dispatch]:
    n, kernel, scores = c.layout.spec.hidden, c.chosen.choice.kernel, c.widths[c.step.inputs[2]]
    arrays = {"x": c.read(0, n), "shared_out": c.read(1, n), "scores": c.read(2)}
    constants = {"N": n, "STRIDE": scores, "COLUMN": scores - 1}
    grid = (-(-n // c.chosen.constant(kernel, "THREADS")), c.many_rows(), 1)
    yield c.dispatch(kernel, arrays, constants, grid, costs.shared_expert_add(n), f"[{_rows(c)},{n}]")


def _rope(c: StepContext) -> Iterator[Dispatch]:
    spec, layer = c.layout.spec, _layer(c)
    heads = spec.heads + 2 * spec.kv_heads
    keys, values = c.layout.key_values(layer)
    norms = c.extra()
    arrays = {
        "qkv": c.read(0, heads * spec.head_dim),
        "angles": c.layout.angles(layer),
        "head_norms": c.layout.unused() if norms is None else norms,
        "q": c.write(0, spec.heads * spec.head_dim),
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
        "CACHE": c.layout.cache.code,
    }
    shapes = f"[T,{spec.heads}+2*{spec.kv_heads},{spec.head_dim}]"
    grid = (heads, c.many_rows(), 1)
    yield c.dispatch(c.chosen.choice.kernel, arrays, constants, grid, costs.rope(spec, c.layout.cache), shapes)


def _attention(c: StepContext) -> Iterator[Dispatch]:
    spec, layer, kernel = c.layout.spec, _layer(c), c.chosen.choice.kernel
    keys, values = c.layout.key_values(layer)
    width = spec.heads * spec.head_dim
    window = spec.windows[layer]
    if window is not None and window >= c.layout.capacity:
        window = None  # no position is ever beyond it
    arrays = {"q": c.read(0, width), "k": keys, "v": values, "out": c.write(0, width)}
    constants: dict[str, float] = {
        "HEADS": spec.heads,
        "KV_HEADS": spec.kv_heads,
        "DH": spec.head_dim,
        "SCALE": spec.attention_scale,
        "WINDOW": window or 0,
        "SOFTCAP": spec.attention_softcap or 0.0,
        "CACHE": c.layout.cache.code,
    }
    cache = c.layout.cache
    seen = "KV" if window is None else f"min(KV,{window})"
    shapes = f"[{_rows(c)},{spec.heads},{spec.head_dim}] x 2 [{seen},{spec.kv_heads},{spec.head_dim}]"
    if c.chosen.choice.then is None:
        grid: Grid = _tile_grid(spec) if kernel in _TILED_ATTENTION else (spec.heads, c.many_rows(), 1)
        yield c.dispatch(kernel, arrays, constants, grid, costs.attention(spec, cache, window), shapes)
        return
    chunk = c.chosen.constant(kernel, "CHUNK")
    chunks = -(-min(c.layout.capacity, window or c.layout.capacity) // chunk)
    constants |= {"CHUNK": chunk, "MAX_CHUNKS": chunks}
    arrays["partials"] = c.layout.activation("attention_parts", spec.heads * chunks * (spec.head_dim + 2))
    grid = (spec.kv_heads, Extent("kv", per=chunk, most=window), 1)
    yield c.dispatch(kernel, arrays, constants, grid, costs.attention(spec, cache, window, chunk=chunk), shapes)
    then = c.chosen.choice.then
    cost, op = costs.merge(spec, window, chunk), read_kernel(then).op
    shapes = f"[{spec.heads},{seen}/{chunk},{spec.head_dim + 2}]"
    yield c.dispatch(then, arrays, constants, (spec.heads, 1, 1), cost, shapes, op=op)


def _tile_grid(spec: ModelSpec) -> Grid:
    """A workgroup has the tokens whose heads on one kv head fill a tile; of more heads than that, one token a block."""
    of_group = spec.heads // spec.kv_heads
    heads = min(of_group, _QUERIES_OF_A_TILE)
    return (spec.kv_heads * -(-of_group // heads), Extent("tokens", per=_QUERIES_OF_A_TILE // heads), 1)


def _soft_cap(c: StepContext) -> Iterator[Dispatch]:
    spec, kernel = c.layout.spec, c.chosen.choice.kernel
    width = c.widths[c.step.inputs[0]]
    groups = min(-(-width // c.chosen.constant(kernel, "THREADS")), MOST_GROUPS)
    constants = {"N": width, "SOFTCAP": spec.logit_softcap or 0.0}
    yield c.dispatch(kernel, {"x": c.read(0)}, constants, (groups, 1, 1), costs.soft_cap(width), f"[{width}]")


def _argmax(c: StepContext) -> Iterator[Dispatch]:
    spec, kernel = c.layout.spec, c.chosen.choice.kernel
    groups = c.chosen.constant(kernel, "GROUPS")
    arrays = {
        "logits": c.read(0, spec.vocab),
        "seen": c.layout.words("seen"),
        "sampling": c.layout.words("sampling"),
        "partials": c.write(0, 2 * groups),
    }
    constants = {"V": spec.vocab, "GROUPS": groups}
    cost = costs.argmax(spec, groups)
    yield c.dispatch(kernel, arrays, constants, (groups, 1, 1), cost, f"[{spec.vocab}]")


def _sample(c: StepContext) -> Iterator[Dispatch]:
    spec = c.layout.spec
    groups = c.widths[c.step.inputs[1]] // 2
    arrays = {
        "tokens": c.layout.words("tokens"),
        "sampling": c.layout.words("sampling"),
        "logits": c.read(0, spec.vocab),
        "seen": c.layout.words("seen"),
        "partials": c.read(1),
    }
    constants = {"V": spec.vocab, "GROUPS": groups}
    yield c.dispatch(c.chosen.choice.kernel, arrays, constants, (1, 1, 1), costs.sample(groups), f"[{groups},2]")


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


def _rows(c: StepContext) -> str:
    """Rows of a step of the layers, for people."""
    return "1" if c.phase == "decode" else "T"


def _experts(c: StepContext) -> Experts:
    if c.layout.spec.experts is None:
        raise FormatError(f"{c.place}: expected a model with experts, found {c.layout.spec.name}")
    return c.layout.spec.experts


def _experts_of(part: MatrixPart, rows: int) -> range:
    """The experts in a part of their matrices, of so many rows each."""
    return range(part.first // rows, (part.first + part.rows) // rows)


def _expert_constants(c: StepContext, part: range) -> Mapping[str, float]:
    return {
        "EACH": _experts(c).each,
        "EXPERT0": part.start,
        "EXPERTS": len(part),
        "WEIGHTS": c.layout.expert_weights.code,
    }


def _layer(c: StepContext) -> int:
    if c.layer is None:
        raise FormatError(f"{c.place}: {c.step.op} belongs into a layer: it has a KV cache for each")
    return c.layer
