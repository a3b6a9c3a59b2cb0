"""An answer of the WebGPU engine for reports: that of `engines.chat.answer` and adapter, kernels, load and memory."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, cast

import polars as pl

from inferometer.engines.chat.answer import ChatAnswer, Setup
from inferometer.engines.webgpu.chat.conversation import DeviceAnswer
from inferometer.engines.webgpu.engine import ReadPart
from inferometer.engines.webgpu.plan.difference import PlanDiff
from inferometer.engines.webgpu.program_memory import PurposeMemory
from inferometer.engines.webgpu.run.executor import Adapter, LoadPhase, Selection, Submission

DEFINITIONS = {
    "ttft_ns": "From the question, a text, to the first token's number on the host: made into tokens, written to the "
    "device, the prompt read, the token chosen and read back. The host's clock.",
    "prefill_ns": "Wall time of the submits up to the one with the first token. In a browser, by the page's clock.",
    "token_ns": "For each token after the first, the wall time of its submit over the tokens that it gave: tokens of a "
    "batch reach the host together.",
    "total_ns": "From the question to the last token, with all between: work of the host, text made and written.",
    "prefill_tokens_per_s": "Prompt tokens over prefill_ns.",
    "decode_tokens_per_s": "Tokens after the first over the sum of token_ns.",
    "tokens_per_s": "New tokens over total_ns.",
    "submits": "Wall time of the answer's submits in parts: recording commands, handing them over, waiting for the "
    "device (its work is in here), copying the tokens to the host.",
    "load": "Phases of getting ready, none inside of another; reads: of those that load weights, reading and decoding.",
}
"""What each metric is."""

_SCHEMA = {
    **dict.fromkeys(("phase", "operator", "backend"), pl.String),
    "calls": pl.Int64,
    "reason": pl.String,
}


@dataclass(frozen=True, kw_only=True)
class DeviceSetup(Setup):
    """As `Setup`; `arm` is the kernel path's name.

    Attributes:
        adapter: What runs the kernels.
        context: Positions of the KV cache.
        cache_dtype: Of keys and values in it.
        batch: Decode steps of a submit.
        timing: The form of the submits.
        matrix_bytes: What matrices take on the device, by the name of their format.
        load_phases, reads, memory, selections: As `engine.WebGpuEngine` has them.
        fetched_bytes, cached_bytes: Of weights, what a browser got from Python, and what it had kept; else None.
    """

    adapter: Adapter
    context: int
    cache_dtype: str
    batch: int
    timing: str
    load_phases: Sequence[LoadPhase]
    reads: Sequence[ReadPart]
    memory: Sequence[PurposeMemory]
    selections: Sequence[Selection]
    matrix_bytes: Mapping[str, int]
    fetched_bytes: int | None = None
    cached_bytes: int | None = None
    engine: str = "webgpu"

    @property
    def device_bytes(self) -> int:
        """What all buffers take."""
        return sum(each.size_bytes for each in self.memory)


@dataclass(frozen=True)
class DeviceChatAnswer(ChatAnswer):
    """An answer with what gave it. `setup` is a `DeviceSetup`, `answer` a `DeviceAnswer`.

    `plan`: where what ran isn't what the kernel path asks for.
    """

    view: ClassVar[str] = "chat.device_answer"
    plan: PlanDiff = field(default_factory=lambda: PlanDiff((), 0))

    @property
    def device_setup(self) -> DeviceSetup:
        """`setup`."""
        return cast("DeviceSetup", self.setup)

    @property
    def submits(self) -> dict[str, int]:
        """How many there were, and their wall time in parts."""
        return _split(cast("DeviceAnswer", self.answer).submissions)

    @property
    def memory_rows(self) -> list[dict[str, Any]]:
        """Buffers by purpose, with what rounding adds."""
        return [{**asdict(each), "overhead_bytes": each.overhead_bytes} for each in self.device_setup.memory]

    @property
    def load_rows(self) -> list[dict[str, Any]]:
        """The phases of getting ready, after each the part of it that reading took."""
        rows = []
        for phase in self.device_setup.load_phases:
            reads = [asdict(each) for each in self.device_setup.reads if each.part == phase.name]
            rows += [_with_rate(each) for each in (asdict(phase), *reads)]
        return rows

    def to_polars(self) -> pl.DataFrame:
        """Which kernel ran each operator, by phase."""
        return pl.DataFrame([asdict(each) for each in self.answer.operators], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """What every engine's answer has, and what this one alone can say."""
        setup, found = self.device_setup, super().as_json()
        found["adapter"]["features"] = sorted(setup.adapter.features)
        found["load_phases"] = [_with_rate(asdict(each)) for each in setup.load_phases]
        found["reads"] = [_with_rate(asdict(each)) for each in setup.reads]
        return {
            **found,
            "kernel_path": setup.arm,
            "memory": self.memory_rows,
            "matrix_bytes": dict(setup.matrix_bytes),
            "device_bytes": setup.device_bytes,
            "submits": self.submits,
            "plan_differences": [asdict(each) for each in self.plan.rows],
            "definitions": DEFINITIONS,
        }


_PARTS = ("record", "submit", "wait", "read")


def _split(submissions: Sequence[Submission]) -> dict[str, int]:
    return {
        "count": len(submissions),
        "wall_ns": sum(each.wall_ns for each in submissions),
        **{f"{name}_ns": sum(getattr(each, f"{name}_ns") for each in submissions) for name in _PARTS},
    }


def _with_rate(row: dict[str, Any]) -> dict[str, Any]:
    """With `gb_per_s`: bytes over ns are GB/s; None where nothing moved."""
    return {**row, "gb_per_s": row["bytes"] / row["dur_ns"] if row["bytes"] and row["dur_ns"] else None}
