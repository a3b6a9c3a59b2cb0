"""A runner that says the bytes of a script, in submits as a real one makes them; its times are made up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.engines.scripted_engine import EOS, Bytes

from inferometer.engines.webgpu.program import Amount, Binding, Buffer, Dispatch, Pass, Pipeline, Program
from inferometer.engines.webgpu.run.executor import (
    Adapter,
    Content,
    LoadedModel,
    LoadPhase,
    OnSubmission,
    OnText,
    PlannedStep,
    Request,
    Selection,
    Submission,
)

PREFILL_NS, BATCH_NS = 1_000, 70
"""Wall times of the prompt's submit, and of a batch of any size."""
ADAPTER = Adapter(
    name="Scripted",
    backend="NumPy",
    kind="CPU",
    features=frozenset({"timestamp-query", "subgroups"}),
    most_binding_bytes=1 << 20,
    most_buffer_bytes=1 << 20,
    most_storage_buffers=8,
    most_workgroup_threads=256,
)


def a_program(capacity: int = 100) -> Program:
    """A layer's worth of dispatches that nobody runs."""
    names = ("tokens", "kv_cache", "logits", "embed")
    purposes = ("state", "kv_cache", "activations", "weights")
    nothing = Amount()
    binding = Binding("tokens", 0, 4)

    def dispatch(op: str, role: str | None, pipeline: int, layer: int | None = None) -> Dispatch:
        return Dispatch(
            op=op, role=role, layer=layer, pipeline=pipeline, bindings=(binding,), grid=(1, 1, 1),
            flops=nothing, bytes_read=nothing, bytes_written=nothing,
        )  # fmt: skip

    layers = [dispatch("linear", "qkv_proj", 1, layer) for layer in range(2)]
    return Program(
        name="scripted",
        kernel_path="scripted",
        capacity=capacity,
        most_rows=64,
        vocabulary=EOS + 1,
        buffers=tuple(Buffer(name, 1024, purpose, 1000) for name, purpose in zip(names, purposes, strict=True)),  # type: ignore[arg-type]
        pipelines=(Pipeline("gather", {"K": 8}), Pipeline("linear_thread", {"K": 8}), Pipeline("matmul_tile", {})),
        phases={
            "prefill": (dispatch("gather", None, 0), dispatch("linear", "qkv_proj", 2, 0)),
            "decode": (dispatch("gather", None, 0), *layers),
            "head": (dispatch("linear", "lm_head", 1),),
        },
    )


def a_loaded_model(capacity: int = 100) -> LoadedModel:
    return LoadedModel(
        program=a_program(capacity),
        contents={},
        selections=(
            Selection("decode", "linear", "qkv_proj", "linear_thread", {"K": 8}, "first of the path"),
            Selection("prefill", "linear", "qkv_proj", "matmul_tile", {}, "many rows"),
        ),
        planned=(PlannedStep("decode", "linear", "qkv_proj", "linear_thread", 2),),
        parameters=257,
        notes=("a note on weights",),
    )


@dataclass
class ScriptedRunner:
    """Says `script` again and again; `at_submit(number)` is called before each submit of a request."""

    script: Sequence[int] = tuple(b"yes!")
    at_submit: Callable[[int], None] = lambda number: None
    adapter: Adapter = ADAPTER
    requests: list[Request] = field(default_factory=list)
    closed: int = 0

    def load(self, program: Program, contents: Mapping[str, Content], said: OnText) -> Sequence[LoadPhase]:
        bytes_moved = sum(content.read().nbytes for content in contents.values())
        return [LoadPhase("layers", 10, 5, bytes_moved), LoadPhase("pipelines", 15, 5)]

    def run(self, request: Request, on_submission: OnSubmission) -> Sequence[Submission]:
        self.requests.append(request)
        found: list[Submission] = []
        made = 0
        while made < request.new_tokens:
            self.at_submit(len(found))
            number = 1 if made == 0 else min(request.batch, request.new_tokens - made)
            tokens = self._tokens(request, made, number)
            found.append(self._submission(request, made, tokens))
            on_submission(found[-1])
            made += number
            if request.stop.intersection(tokens):
                break
        return found

    def close(self) -> None:
        self.closed += 1

    def _tokens(self, request: Request, made: int, number: int) -> tuple[int, ...]:
        said = [self.script[i % len(self.script)] for i in range(made, made + number)]
        for i, token in enumerate(said):
            if token in request.stop:  # behind it the device repeats it
                said[i:] = [token] * (number - i)
        return tuple(said)

    def _submission(self, request: Request, made: int, tokens: tuple[int, ...]) -> Submission:
        length = len(request.prompt)
        if made == 0:
            passes: tuple[Pass, ...] = (Pass(("prefill", "head"), length, 0),)
        else:
            passes = tuple(Pass(("decode", "head"), 1, length + made + i - 1) for i in range(len(tokens)))
        wall = PREFILL_NS if made == 0 else BATCH_NS
        dispatches = sum(3 if "prefill" in each.phases else 4 for each in passes)
        timed = request.timing == "timestamps"
        start = 1_000_000 + made * 2_000
        return Submission(
            passes=passes,
            timing=request.timing,
            start_ns=start,
            record_ns=10,
            submit_ns=5,
            wait_ns=wall - 20,
            read_ns=5,
            tokens=tokens,
            begin_ns=tuple(start + 15 + 3 * i for i in range(dispatches)) if timed else (),
            end_ns=tuple(start + 17 + 3 * i for i in range(dispatches)) if timed else (),
            clock="aligned" if timed else "none",
        )


def a_scripted_engine(runner: ScriptedRunner | None = None, context_limit: int | None = 100) -> Any:
    """What a conversation needs of an engine."""
    return SimpleNamespace(
        name="scripted",
        vocabulary=EOS + 1,
        context_limit=context_limit,
        tokenizer=Bytes(),
        runner=runner or ScriptedRunner(),
        loaded=a_loaded_model(),
    )
