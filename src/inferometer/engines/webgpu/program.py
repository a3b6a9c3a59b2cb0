"""A program: kernels with their constants, buffers, and lists of dispatches. Plain data, the same for every executor.

What changes from pass to pass is in two numbers that host and device both know: `tokens`, the rows of the pass (1 in
decode, a piece of the prompt in prefill), and `position`, the tokens in the KV cache before it. Kernels read them from
the buffer `state`; here grids, bytes and FLOPs are formulas over them. So the list of a decode step is the same for
every token, and N of them go to the device in one submit.

Buffers that every program has, by name (all others are the planner's):

    state      u32[8]: position, tokens, steps done, 1 once a stop token came, then unused
    tokens     u32[capacity + 1]: ids by position; the prompt's, then what was sampled: the ring of a batched decode
    sampling   u32[32]: see `SAMPLING_WORDS`
    seen       u32[vocabulary]: 1 where a token occurred, for the repetition penalty
    logits     f32[vocabulary]: of the last row

The last dispatch of the phase `head` writes `tokens[position + tokens]`, then `position += tokens`, `tokens = 1`,
`steps += 1`: the next decode step finds all that it needs on the device.
"""

from typing import Literal

import msgspec

MOST_STOP_TOKENS = 16
SAMPLING_WORDS = 32
"""Words of the buffer `sampling`: 0 temperature (f32; 0: greedy), 1 top_k (u32; 0: all), 2 top_p (f32), 3 seed (u32),
4 repetition penalty (f32; 1: none), 5 number of stop tokens (u32), 6 to 21 these, others 0."""
STATE_WORDS = 8

Over = Literal["tokens", "kv"]
Phase = Literal["prefill", "decode", "head"]
"""`prefill`: from tokens to the last layer's output, any number of rows. `decode`: the same for one row, by other
kernels. `head`: logits of the last row, and the next token. A step is prefill or decode, then head; of a long prompt
that goes in pieces, only the last piece has a head."""
Purpose = Literal["weights", "kv_cache", "activations", "tables", "state"]


class Extent(msgspec.Struct, frozen=True, tag="extent"):
    """A number of workgroups along one axis: `ceil(min(n, most) / per)`.

    Attributes:
        over: n: the rows of the pass, or the positions in the cache after it (`kv`: position + tokens).
        per: How many one workgroup takes.
        most: More than these don't count (a window); None: all do.
    """

    over: Over
    per: int = 1
    most: int | None = None

    def at(self, tokens: int, position: int) -> int:
        """Workgroups in such a pass."""
        n = tokens if self.over == "tokens" else position + tokens
        return -(-(n if self.most is None else min(n, self.most)) // self.per)


Dim = int | Extent
Grid = tuple[Dim, Dim, Dim]


class Amount(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes or FLOPs of a dispatch: a polynomial over the pass. All modelled, from shapes; none is measured.

    Attributes:
        fixed: Whatever the pass.
        per_token: For each row.
        per_kv: For each position that the last row sees.
        per_pair: For each pair of a row and a position that it sees (itself and before).
        window: Positions that a row sees at most, itself included; None: all.
    """

    fixed: int = 0
    per_token: int = 0
    per_kv: int = 0
    per_pair: int = 0
    window: int | None = None

    def at(self, tokens: int, position: int) -> int:
        """Its value in such a pass."""
        seen = position + tokens if self.window is None else min(position + tokens, self.window)
        pairs = _pairs(tokens, position, self.window) if self.per_pair else 0
        return self.fixed + self.per_token * tokens + self.per_kv * seen + self.per_pair * pairs


def _pairs(tokens: int, position: int, window: int | None) -> int:
    """Sum over rows t of `min(position + t + 1, window)`."""
    growing = tokens if window is None else min(tokens, max(0, window - position))
    return growing * position + growing * (growing + 1) // 2 + (tokens - growing) * (window or 0)


class Buffer(msgspec.Struct, frozen=True):
    """Memory of the device. `size_bytes` is a multiple of 4; what has no content begins as zeros.

    `needed_bytes`: of `size_bytes`, what is used; the rest is rounding.
    """

    name: str
    size_bytes: int
    purpose: Purpose
    needed_bytes: int


class Pipeline(msgspec.Struct, frozen=True):
    """A kernel (the stem of a file in `backends/wgsl`) with values for its `override` constants."""

    kernel: str
    constants: dict[str, float]


class Binding(msgspec.Struct, frozen=True):
    """A part of a buffer that a dispatch sees; `offset` is a multiple of 256, `size_bytes` of 4."""

    buffer: str
    offset: int
    size_bytes: int


class Dispatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One launch of a kernel.

    Attributes:
        op: The operator that it is of, as the kernel path names it: `rms_norm`, `linear`, `attention`.
        role: What it does in the model: `qkv_proj`, `ffn_down`, `lm_head`; None where the operator says.
        layer: Counted from 0; None outside of layers.
        pipeline: Index in `Program.pipelines`.
        bindings: By the number of `@binding` in the kernel.
        grid: Workgroups along x, y, z.
        flops, bytes_read, bytes_written: Least work and traffic, each operand once: modelled.
        shapes: Operands for people: `[T,1152] x [6912,1152]`.
    """

    op: str
    role: str | None = None
    layer: int | None = None
    pipeline: int
    bindings: tuple[Binding, ...]
    grid: Grid
    flops: Amount
    bytes_read: Amount
    bytes_written: Amount
    shapes: str = ""

    @property
    def label(self) -> str:
        """`op[:role][:L<layer>]`, the form that `names/engine_labels.py` takes apart."""
        parts = [self.op, self.role, None if self.layer is None else f"L{self.layer}"]
        return ":".join(part for part in parts if part)

    def grid_at(self, tokens: int, position: int) -> tuple[int, int, int]:
        """Workgroups in such a pass."""
        x, y, z = (dim if isinstance(dim, int) else dim.at(tokens, position) for dim in self.grid)
        return x, y, z


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor runs.

    Attributes:
        name: The model's.
        kernel_path: The name of the plan that it was made by.
        capacity: Positions of the KV cache.
        most_rows: Rows of a prefill pass at most: longer prompts go in pieces.
        vocabulary: Number of tokens.
        buffers: All that there are.
        pipelines: Each once.
        phases: Dispatches in their order.
        requires: Features that its kernels need: `shader-f16`, `subgroups`.
    """

    name: str
    kernel_path: str
    capacity: int
    most_rows: int
    vocabulary: int
    buffers: tuple[Buffer, ...]
    pipelines: tuple[Pipeline, ...]
    phases: dict[Phase, tuple[Dispatch, ...]]
    requires: tuple[str, ...] = ()


class Pass(msgspec.Struct, frozen=True):
    """One walk through phases, in this order, with `tokens` rows after `position` cached ones."""

    phases: tuple[Phase, ...]
    tokens: int
    position: int

    def dispatches(self, program: Program) -> tuple[Dispatch, ...]:
        """What it launches, in order."""
        return tuple(dispatch for phase in self.phases for dispatch in program.phases[phase])
