"""An answer of the WebGPU engine for reports: that of `engines.chat.answer` and adapter, kernels, load and memory."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from inferometer.analyses.result import Field, Section, frame_of
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
"""What each metric is, in words."""

_KERNELS = (
    Field("phase", "Phase", "text"),
    Field("operator", "Operator", "text"),
    Field("backend", "Kernel", "text"),
    Field("calls", "Calls", "count"),
    Field("reason", "Why this one", "name"),
)
_PLAN = (
    Field("phase", "Phase", "text"),
    Field("op", "Operator", "text"),
    Field("role", "Role", "text"),
    Field("planned", "Planned", "text"),
    Field("planned_count", "Calls", "count"),
    Field("executed", "Ran", "text"),
    Field("executed_count", "Calls", "count"),
    Field("reason", "Why", "name"),
)
_LOAD = (
    Field("name", "Load", "text"),
    Field("dur_ns", "Time", "ns"),
    Field("bytes", "Bytes", "bytes"),
    Field("gb_per_s", "GB/s", "ratio"),
)
_MEMORY = (
    Field("purpose", "Memory", "text"),
    Field("buffers", "Buffers", "count"),
    Field("size_bytes", "Bytes", "bytes"),
    Field("needed_bytes", "Of it used", "bytes"),
    Field("overhead_bytes", "Rounding", "bytes"),
)


@dataclass(frozen=True, kw_only=True)
class DeviceSetup(Setup):
    """As `Setup`; `arm` is the kernel path's name.

    Attributes:
        adapter: What runs the kernels.
        context: Positions of the KV cache.
        batch: Decode steps of a submit.
        timing: The form of the submits.
        load_phases, reads, memory, selections: As `engine.WebGpuEngine` has them.
        fetched_bytes, cached_bytes: Of weights, what a browser got from Python, and what it had kept; else None.
    """

    adapter: Adapter
    context: int
    batch: int
    timing: str
    load_phases: Sequence[LoadPhase]
    reads: Sequence[ReadPart]
    memory: Sequence[PurposeMemory]
    selections: Sequence[Selection]
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

    plan: PlanDiff = field(default_factory=lambda: PlanDiff((), 0))

    def sections(self) -> Sequence[Section]:
        """Which kernel ran each operator, where that isn't the plan, what loading took, what memory holds."""
        if self.brief:
            return []
        setup = self._setup
        differences = [asdict(each) for each in self.plan.rows]
        return [
            Section("Kernels", _KERNELS, frame_of([asdict(each) for each in self.answer.operators], _KERNELS)),
            *([Section("Not as the kernel path says", _PLAN, frame_of(differences, _PLAN))] if differences else []),
            Section("Load", _LOAD, frame_of(_load_rows(setup), _LOAD)),
            Section("Memory of the device", _MEMORY, frame_of(_memory_rows(setup), _MEMORY)),
        ]

    def remarks(self) -> Sequence[str]:
        """What a reader of the times must know."""
        if self.brief:
            return ()
        cost = "Times include what profiling costs, a pass with two timestamps for each dispatch: see --overhead."
        return [*self.setup.notes, *([cost] if self._setup.timing == "timestamps" else [])]

    def as_json(self) -> dict[str, Any]:
        """What every engine's answer has, and what this one alone can say."""
        setup, found = self._setup, super().as_json()
        found["adapter"]["features"] = sorted(setup.adapter.features)
        found["load_phases"] = [_with_rate(asdict(each)) for each in setup.load_phases]
        found["reads"] = [_with_rate(asdict(each)) for each in setup.reads]
        answer = cast(DeviceAnswer, self.answer)
        return {
            **found,
            "kernel_path": setup.arm,
            "memory": _memory_rows(setup),
            "device_bytes": setup.device_bytes,
            "submits": _split(answer.submissions),
            "plan_differences": [asdict(each) for each in self.plan.rows],
            "definitions": DEFINITIONS,
        }

    @property
    def _setup(self) -> DeviceSetup:
        return cast(DeviceSetup, self.setup)

    def _what_answered(self) -> list[tuple[str, str]]:
        setup = self._setup
        facts = [("Kernel path" if label == "Backend" else label, text) for label, text in super()._what_answered()]
        return [*facts, ("Submits", f"{setup.batch} tokens each, {setup.timing.replace('_', ' ')}")]

    def _what_it_took(self) -> list[tuple[str, str]]:
        from inferometer.units import format_bytes, format_duration

        setup, facts = self._setup, super()._what_it_took()
        parts = _split(cast(DeviceAnswer, self.answer).submissions)
        split = ", ".join(f"{format_duration(parts[f'{name}_ns'])} {word}" for name, word in _PARTS)
        facts.insert(-1, ("Of submits", split))
        label, text = facts[-1]
        device = f"{format_bytes(setup.device_bytes)} of the device"
        facts[-1] = (label, f"{text}, {device} for {setup.context:,} positions")
        return facts


_PARTS = (("record", "recording"), ("submit", "submitting"), ("wait", "waiting"), ("read", "reading back"))


def _split(submissions: Sequence[Submission]) -> dict[str, int]:
    return {
        "count": len(submissions),
        "wall_ns": sum(each.wall_ns for each in submissions),
        **{f"{name}_ns": sum(getattr(each, f"{name}_ns") for each in submissions) for name, _ in _PARTS},
    }


def _load_rows(setup: DeviceSetup) -> list[dict[str, Any]]:
    """The phases, behind each what reading took of it."""
    rows = []
    for phase in setup.load_phases:
        reads = [{**asdict(each), "name": "  of it reading"} for each in setup.reads if each.part == phase.name]
        rows += [_with_rate(each) for each in (asdict(phase), *reads)]
    return [{**row, "bytes": row["bytes"] or None} for row in rows]


def _memory_rows(setup: DeviceSetup) -> list[dict[str, Any]]:
    return [{**asdict(each), "overhead_bytes": each.overhead_bytes} for each in setup.memory]


def _with_rate(row: dict[str, Any]) -> dict[str, Any]:
    """With `gb_per_s`: bytes over ns are GB/s; None where nothing moved."""
    return {**row, "gb_per_s": row["bytes"] / row["dur_ns"] if row["bytes"] and row["dur_ns"] else None}
