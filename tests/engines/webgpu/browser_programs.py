"""Programs for a browser that need no model: one whose next token is a sum that Python can do, one of all kernels."""

from collections.abc import Mapping

import numpy as np

from inferometer.backends.wgsl.source import KernelSource, kernel_names, parse_kernel, read_kernel
from inferometer.engines.webgpu.program import (
    SAMPLING_WORDS,
    STATE_WORDS,
    Amount,
    Binding,
    Buffer,
    Dispatch,
    Pipeline,
    Program,
)
from inferometer.engines.webgpu.run.executor import Content

VOCABULARY = 50
CAPACITY = 600
STEP = """//! op: step
//! reference: step
override V: u32;
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<u32>;
@compute @workgroup_size(1) fn main() {
    let at = state[0] + state[1];
    let token = tokens[at - 1u];
    tokens[at] = (token * 3u + weights[arrayLength(&weights) - V + token]) % V;
    state[0] = at;
    state[1] = 1u;
    state[2] += 1u;
}
"""
NOTHING = """//! op: nothing
//! reference: nothing
@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) at: vec3<u32>) { logits[at.x] = f32(state[0]); }
"""
WRONG = NOTHING.replace("f32(state[0])", "state[0]")
WRONG_INCLUDE = NOTHING.replace("@compute", "//! include: step_on\n@compute")  # which needs `sampling`
WRONG_AFTER = WRONG.replace("@compute", "//! include: key_of\n@compute")

# Values for constants that kernels want, others are 64: heads of 16 numbers, rows of 64.
_PLAUSIBLE = {"EPS": 1e-6, "OFFSET": 1.0, "SCALE": 0.25, "WINDOW": 0, "OUT0": 0, "ROW0": 0, "ACTIVATION": 1}
_PLAUSIBLE |= {"N": 96, "V": 128, "ROWS": 128, "STRIDE": 96, "SPLITS": 2, "GROUPS": 4}
_PLAUSIBLE |= {"HEADS": 4, "KV_HEADS": 2, "DH": 16, "CHUNK": 32, "MAX_CHUNKS": 4}
_PLAUSIBLE |= {"HAS_BIAS": 1, "HAS_NORMS": 1, "LAST_ROW": 0}


def sources(name: str) -> KernelSource:
    """The kernels of this file, and all others."""
    own = {"step": STEP, "nothing": NOTHING, "wrong": WRONG, "wrong_include": WRONG_INCLUDE, "wrong_after": WRONG_AFTER}
    return parse_kernel(name, own[name]) if name in own else read_kernel(name)


def toy_program(weights: int = VOCABULARY, kernel: str = "nothing") -> Program:
    """Reads the prompt in pieces of 4, does nothing in 3 dispatches for each token, and then one `step`.

    Args:
        weights: How many; the last `VOCABULARY` count.
        kernel: What does nothing.
    """
    sizes = {"state": STATE_WORDS, "tokens": CAPACITY + 1, "sampling": SAMPLING_WORDS}
    sizes |= {"seen": VOCABULARY, "logits": VOCABULARY, "weights": weights, "norm": 6}
    buffers = tuple(
        Buffer(name, count * 4, "weights" if name in ("weights", "norm") else "state", count * 4)
        for name, count in sizes.items()
    )

    def dispatch(op: str, pipeline: int, names: tuple[str, ...], layer: int | None = None) -> Dispatch:
        bindings = tuple(Binding(name, 0, sizes[name] * 4) for name in names)
        none = Amount()
        return Dispatch(
            op=op,
            layer=layer,
            pipeline=pipeline,
            bindings=bindings,
            grid=(1, 1, 1),
            flops=none,
            bytes_read=none,
            bytes_written=none,
        )

    layers = tuple(dispatch("nothing", 1, ("state", "logits"), layer) for layer in range(3))
    return Program(
        name="toy",
        kernel_path="toy",
        capacity=CAPACITY,
        most_rows=4,
        vocabulary=VOCABULARY,
        buffers=buffers,
        pipelines=(Pipeline("step", {"V": VOCABULARY}), Pipeline(kernel, {})),
        phases={"prefill": layers, "decode": layers, "head": (dispatch("step", 0, ("state", "tokens", "weights")),)},
    )


def toy_contents(weights: int = VOCABULARY, seed: int = 0) -> dict[str, Content]:
    """Random weights, and a norm that is shorter than its buffer."""
    numbers = np.random.default_rng(seed).integers(0, VOCABULARY, weights, np.uint32)
    return {
        "weights": Content("layers", 0, lambda: numbers),
        "norm": Content("embedding", 0, lambda: np.arange(5, dtype=np.float32)),
    }


def toy_tokens(contents: Mapping[str, Content], prompt: tuple[int, ...], count: int) -> list[int]:
    """What the program makes of a prompt, by NumPy."""
    weights = contents["weights"].read()[-VOCABULARY:]
    tokens = [prompt[-1]]
    for _ in range(count):
        tokens.append(int((tokens[-1] * 3 + weights[tokens[-1]]) % VOCABULARY))
    return tokens[1:]


def all_kernels(features: frozenset[str]) -> Program:
    """A program that runs nothing, with a pipeline of each kernel that these features allow."""
    names = [name for name in kernel_names() if read_kernel(name).requires <= features]
    pipelines = tuple(
        Pipeline(name, {each: _PLAUSIBLE.get(each, 64) for each in read_kernel(name).required}) for name in names
    )
    return Program(
        name="all kernels",
        kernel_path="none",
        capacity=1,
        most_rows=1,
        vocabulary=1,
        buffers=(Buffer("state", 32, "state", 32),),
        pipelines=pipelines,
        phases={},
    )
