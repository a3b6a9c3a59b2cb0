"""Programs of one model joined: steps of all of them run on the same buffers, so that the model is loaded once."""

from collections.abc import Mapping, Sequence

import msgspec

from inferometer.engines.webgpu.plan.step_context import Pipelines
from inferometer.engines.webgpu.program import Buffer, Dispatch, Phase, Program
from inferometer.engines.webgpu.run.executor import Content, LoadedModel

Part = tuple[LoadedModel, Mapping[Phase, Sequence[Dispatch]]]
"""A planned model, and which of its dispatches run in which phase."""


def join_programs(parts: Sequence[Part]) -> tuple[Program, dict[str, Content]]:
    """A program whose phases are those of the parts, one after the other, and its contents.

    All must be planned for the same checkpoint, adapter, capacity and rows, so that equal names are equal buffers; one
    that they need in several sizes (parts of sums) has the largest.
    """
    buffers: dict[str, Buffer] = {}
    contents: dict[str, Content] = {}
    pipelines = Pipelines()
    phases: dict[Phase, list[Dispatch]] = {"prefill": [], "decode": [], "head": []}
    for loaded, chosen in parts:
        contents.update(loaded.contents)
        for buffer in loaded.program.buffers:
            had = buffers.setdefault(buffer.name, buffer)
            if buffer.size_bytes > had.size_bytes:
                buffers[buffer.name] = buffer
        for phase, dispatches in chosen.items():
            for dispatch in dispatches:
                own = loaded.program.pipelines[dispatch.pipeline]
                number = pipelines.index(own.kernel, own.constants)
                phases[phase].append(msgspec.structs.replace(dispatch, pipeline=number))
    program = msgspec.structs.replace(
        parts[0][0].program,
        buffers=tuple(buffers.values()),
        pipelines=tuple(pipelines.made),
        phases={phase: tuple(dispatches) for phase, dispatches in phases.items()},
        requires=pipelines.requires,
    )
    return program, contents
