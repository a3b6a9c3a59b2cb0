"""What to record of a server, and what was recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OnProgress = Callable[[str], None]
"""Called with what goes on, a line at a time."""


@dataclass(frozen=True)
class ServerOptions:
    """What to record of a server, and for how long.

    Attributes:
        seconds: How long; None: until `steps` are done, or KeyboardInterrupt.
        steps: Of SGLang: forward passes to profile.
        counters: Sample device, host and engine meanwhile.
        hz: Samples per second of this machine's counters; the engine is asked once per second.
        stacks: Of SGLang: record Python's call stacks.
        shapes: Of SGLang: record shapes of ops.
        traces: Folder that the server's traces are written to. SGLang is given it, vLLM was started with it.
        force: Replace a store that is there.
    """

    seconds: float | None = None
    steps: int | None = None
    counters: bool = True
    hz: float = 10.0
    stacks: bool = True
    shapes: bool = True
    traces: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class ServerRecording:
    """What was recorded of a server.

    Attributes:
        store: Where it is.
        engine: `sglang` or `vllm`, with `version` and `model` where it reports them.
        began_ns: When its profiler ran, ns since 1970; `ended_ns`: when it was asked to stop, or had done its steps.
        files: Rank and name of each trace that was read.
        kept: Folder with traces that were not joined, or that the user named.
        missing: What couldn't be recorded, one sentence each.
    """

    store: str
    engine: str
    version: str | None
    model: str | None
    began_ns: int
    ended_ns: int
    files: tuple[tuple[int, str], ...] = ()
    kept: str | None = None
    missing: tuple[str, ...] = ()
