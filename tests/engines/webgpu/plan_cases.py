"""Adapters and answers that tests of plans share."""

from typing import Any

import numpy as np

from inferometer.engines.webgpu.run.executor import Adapter, LoadedModel, Request
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

PROMPT = tuple(range(40, 71))


def adapter(*features: str, binding_bytes: int = 2**27, threads: int = 256, kind: str = "DiscreteGPU") -> Adapter:
    """An adapter with WebGPU's promises, and what else is reported."""
    return Adapter(
        name="paper",
        backend="Vulkan",
        kind=kind,
        features=frozenset(features),
        most_binding_bytes=binding_bytes,
        most_buffer_bytes=2**28,
        most_storage_buffers=8,
        most_workgroup_threads=threads,
    )


def answer(loaded: LoadedModel) -> tuple[Any, tuple[int, ...]]:
    """Logits behind the prompt, and five tokens, in NumPy."""
    executor = NumpyExecutor()
    runner = LocalRunner(executor)
    runner.load(loaded.program, loaded.contents, lambda line: None)
    runner.run(Request(PROMPT, 1), lambda submission: None)
    logits = executor.read("logits").view(np.float32)[: loaded.program.vocabulary]
    submissions = runner.run(Request(PROMPT, 5), lambda submission: None)
    return logits, tuple(token for submission in submissions for token in submission.tokens)
