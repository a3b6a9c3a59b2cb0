"""A program small enough to be checked by hand: three kernels, one number of weights, a KV cache of sums.

`toy_layer`: for each row, out = 3 * token + the sum of the tokens so far (its KV cache) + SHIFT.
`toy_sample`: the next token is out of the last row, modulo the vocabulary; stop tokens as in our own sampling kernels.
`toy_spin`: goes round as often as it is reported, to have something that lasts; its grid grows with the KV cache.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.source import KernelSource, parse_kernel
from inferometer.engines.webgpu.program import (
    SAMPLING_WORDS,
    STATE_WORDS,
    Amount,
    Binding,
    Buffer,
    Dispatch,
    Extent,
    Grid,
    Pipeline,
    Program,
    Purpose,
)
from inferometer.engines.webgpu.run.executor import Content

VOCABULARY = 97
_LAYER = """
//! op: layer
//! reference: toy_layer
override SHIFT: u32;
override THREADS: u32 = 8u;
@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> factor: array<u32>;
@group(0) @binding(3) var<storage, read_write> sums: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(THREADS) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x != 0u) { return; }
    for (var row = 0u; row < state[1]; row++) {
        let at = state[0] + row;
        var before = 0u;
        if (at > 0u) { before = sums[at - 1u]; }
        sums[at] = before + tokens[at];
        out[row] = factor[0] * tokens[at] + sums[at] + SHIFT;
        seen[tokens[at]] = 1u;
    }
}
"""
_SAMPLE = """
//! op: sample
//! reference: toy_sample
override V: u32;
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> sampling: array<u32>;
@group(0) @binding(3) var<storage, read> out: array<u32>;
@compute @workgroup_size(1) fn main() {
    var token = out[state[1] - 1u] % V;
    if (state[3] == 1u) { token = sampling[6]; }
    for (var i = 0u; i < sampling[5]; i++) {
        if (token == sampling[6u + i]) { state[3] = 1u; }
    }
    tokens[state[0] + state[1]] = token;
    state[0] += state[1];
    state[1] = 1u;
    state[2] += 1u;
}
"""
_SPIN = """
//! op: spin
//! reference: toy_spin
override TIMES: u32 = 64u;
@group(0) @binding(0) var<storage, read_write> spun: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {
    var x = 1.0;
    for (var i = 0u; i < TIMES; i++) { x = x * 0.5 + 1.0; }
    spun[id.x] = x;
}
"""
_PURPOSES: dict[str, Purpose] = {"factor": "weights", "sums": "kv_cache", "out": "activations", "spun": "activations"}


def toy_sources(name: str) -> KernelSource:
    return parse_kernel(name, {"toy_layer": _LAYER, "toy_sample": _SAMPLE, "toy_spin": _SPIN}[name])


def _layer(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    position, rows = (int(word) for word in arrays["state"][:2])
    for row in range(rows):
        at = position + row
        token = arrays["tokens"][at]
        arrays["sums"][at] = token + (arrays["sums"][at - 1] if at else 0)
        arrays["out"][row] = arrays["factor"][0] * token + arrays["sums"][at] + int(constants["SHIFT"])
        arrays["seen"][token] = 1


def _sample(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    state, sampling = arrays["state"], arrays["sampling"]
    token = int(arrays["out"][state[1] - 1]) % int(constants["V"])
    if state[3]:
        token = int(sampling[6])
    if token in sampling[6 : 6 + int(sampling[5])]:
        state[3] = 1
    arrays["tokens"][state[0] + state[1]] = token
    state[:3] = state[0] + state[1], 1, state[2] + 1


def _spin(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    x = np.float32(1)
    for _ in range(int(constants["TIMES"])):
        x = x * np.float32(0.5) + np.float32(1)
    arrays["spun"][: grid[0]] = x


def toy_references(name: str) -> Any:
    return {"toy_layer": _layer, "toy_sample": _sample, "toy_spin": _spin}[name]


def toy_program(*, capacity: int = 32, most_rows: int = 4, spins: int = 0, times: int = 64) -> Program:
    """`spins` dispatches of `toy_spin` stand in each phase but the head, behind the layer."""
    words = {
        "state": STATE_WORDS,
        "tokens": capacity + 1,
        "sampling": SAMPLING_WORDS,
        "seen": VOCABULARY,
        "logits": VOCABULARY,
        "factor": 1,
        "sums": capacity,
        "out": most_rows,
        "spun": capacity,
    }

    def dispatch(
        op: str, pipeline: int, names: list[str], grid: Grid = (1, 1, 1), layer: int | None = None
    ) -> Dispatch:
        return Dispatch(
            op=op,
            layer=layer,
            pipeline=pipeline,
            bindings=tuple(Binding(name, 0, 4 * words[name]) for name in names),
            grid=grid,
            flops=Amount(per_token=3),
            bytes_read=Amount(fixed=4, per_token=8),
            bytes_written=Amount(per_token=8),
        )

    layer = dispatch("layer", 0, ["state", "tokens", "factor", "sums", "out", "seen"], layer=0)
    spin = dispatch("spin", 2, ["spun"], grid=(Extent("kv"), 1, 1))
    body = (layer, *[spin] * spins)
    return Program(
        name="toy",
        kernel_path="toy",
        capacity=capacity,
        most_rows=most_rows,
        vocabulary=VOCABULARY,
        buffers=tuple(
            Buffer(name, 4 * count, _PURPOSES.get(name, "state"), 4 * count) for name, count in words.items()
        ),
        pipelines=(
            Pipeline("toy_layer", {"SHIFT": 5}),
            Pipeline("toy_sample", {"V": VOCABULARY}),
            Pipeline("toy_spin", {"TIMES": times}),
        ),
        phases={
            "prefill": body,
            "decode": body,
            "head": (dispatch("sample", 1, ["state", "tokens", "sampling", "out"]),),
        },
    )


def toy_contents() -> dict[str, Content]:
    return {"factor": Content("layers", 4, lambda: np.array([3], np.uint32))}


def toy_answer(prompt: tuple[int, ...], new_tokens: int) -> tuple[int, ...]:
    """What the program says after this prompt, worked out by itself."""
    tokens = list(prompt)
    for _ in range(new_tokens):
        tokens.append((3 * tokens[-1] + sum(tokens) + 5) % VOCABULARY)
    return tuple(tokens[len(prompt) :])
