"""Who runs a program: wgpu (`wgpu_executor`), NumPy (`numpy_executor`), a page in a browser (`browser`).

An `Executor` runs submits that the host asks for, one after another. The browser has the loop over them in its own
process (`Runner`), so that its times hold no round trip to Python; both give `Submission`s, from which all is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from inferometer.engines.webgpu.program import Pass, Program
from inferometer.errors import Unavailable

Timing = Literal["single_pass", "pass_per_dispatch", "timestamps"]
"""All dispatches of a submit in one compute pass; a pass each; a pass each with two timestamps, the profiled form."""
TIMINGS: tuple[Timing, ...] = ("single_pass", "pass_per_dispatch", "timestamps")


class DeviceLost(Unavailable):
    """The device or the browser went away in the middle of a run."""


@dataclass(frozen=True)
class Adapter:
    """What runs the kernels, and what it allows.

    Attributes:
        name: As the driver says: `llvmpipe (LLVM 15.0.6, 256 bits)`.
        backend: `Vulkan`, `Metal`, `D3D12`, `NumPy`; of a browser: `browser`.
        kind: `CPU`, `IntegratedGPU`, `DiscreteGPU`, `unknown`.
        features: Of ours: `shader-f16`, `subgroups`, `timestamp-query`, those that are usable here.
        most_binding_bytes: Largest part of a buffer that one binding may be.
        most_buffer_bytes: Largest buffer.
        most_storage_buffers: Bindings of storage that one kernel may have.
        most_workgroup_threads: Threads of a workgroup.
        offset_alignment: Bytes that offsets of bindings are multiples of; programs use 256, the most there is.
    """

    name: str
    backend: str
    kind: str
    features: frozenset[str]
    most_binding_bytes: int
    most_buffer_bytes: int
    most_storage_buffers: int
    most_workgroup_threads: int
    description: str = ""


@dataclass(frozen=True)
class Content:
    """What a buffer begins with. `read` gives it, made or decoded then: C-contiguous, `size_bytes` at most.

    `part` groups what is loaded together: `embedding`, `layers`, `head`, `tables`. `source_bytes`: read from a file.
    """

    part: str
    source_bytes: int
    read: Callable[[], Any]


@dataclass(frozen=True)
class LoadPhase:
    """One part of getting ready: `bytes` moved in `dur_ns`; 0 where it moves none (compiling pipelines)."""

    name: str
    start_ns: int
    dur_ns: int
    bytes: int = 0


@dataclass(frozen=True)
class Submission:
    """One submit and its read-back. Times are ns of `time.perf_counter_ns`, a browser's shifted to it.

    Attributes:
        passes: What ran.
        timing: In which form.
        start_ns: When recording began.
        record_ns: Until the commands were recorded.
        submit_ns: The call that hands them over.
        wait_ns: Until the device was done and the result mapped; device work is in here.
        read_ns: Copying the result to the host's own memory.
        begin_ns, end_ns: Of each dispatch in order of `passes`, device time on the clock of `start_ns`; None where it
            was not timed. Empty unless `timing` is `timestamps`.
        untimed: Dispatches of a timed submit that have no usable times.
        clock: `shared` where device times are on the host's clock by themselves; `aligned`: shifted so that the first
            begins when `submit` returned.
        tokens: What the device sampled, one for each pass with a head.
    """

    passes: tuple[Pass, ...]
    timing: Timing
    start_ns: int
    record_ns: int
    submit_ns: int
    wait_ns: int
    read_ns: int
    tokens: tuple[int, ...]
    begin_ns: tuple[int | None, ...] = ()
    end_ns: tuple[int | None, ...] = ()
    untimed: int = 0
    clock: Literal["shared", "aligned", "none"] = "none"

    @property
    def wall_ns(self) -> int:
        """From the first recorded command to the tokens on the host."""
        return self.record_ns + self.submit_ns + self.wait_ns + self.read_ns


@dataclass(frozen=True)
class Request:
    """One answer: what to read, how many tokens to make, how to choose and how to time them.

    Attributes:
        prompt: Token ids.
        new_tokens: At most.
        batch: Decode steps of one submit.
        stop: Tokens that end it; empty: none does.
        temperature, top_k, top_p, seed, repetition_penalty: As in `SAMPLING_WORDS`.
        keeps_cache: Tokens at the prompt's beginning that the KV cache holds from the answer before aren't read again:
            the first pass begins after them.
    """

    prompt: tuple[int, ...]
    new_tokens: int
    batch: int = 4
    timing: Timing = "single_pass"
    stop: frozenset[int] = frozenset()
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    repetition_penalty: float = 1.0
    keeps_cache: bool = False


OnText = Callable[[str], object]
OnSubmission = Callable[[Submission], object]


class Runner(Protocol):
    """Runs whole answers: a loop over an executor (`local_runner`), or a page that has the loop itself (`browser`)."""

    adapter: Adapter

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """Make ready to run this program, as `Executor.load` does; once."""

    def run(self, request: Request, on_submission: OnSubmission) -> Sequence[Submission]:
        """Every submit of the answer in order, each also given to `on_submission` as it comes.

        Raises:
            DeviceLost: It failed in the middle; what was given to `on_submission` is whole.
        """

    def close(self) -> None:
        """Give the device back."""


class Executor(Protocol):
    """Runs one submit at a time."""

    adapter: Adapter

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """Make the program's buffers and pipelines; run every pipeline's compiler now, not in the first timed pass.

        Raises:
            Unavailable: Too little memory, a limit or a missing feature; a kernel that doesn't compile.
        """

    def write(self, buffer: str, data: Any, offset: int = 0) -> None:
        """Put an array's bytes into a buffer before the next submit."""

    def submit(self, passes: Sequence[Pass], timing: Timing) -> Submission:
        """Run passes in one submit, and read back the token of each head.

        Raises:
            DeviceLost: The device is gone.
        """

    def read(self, buffer: str, offset: int = 0, size_bytes: int | None = None) -> Any:
        """Bytes of a buffer, uint8 array of NumPy; all of it without a size."""

    def close(self) -> None:
        """Give the device back."""


@dataclass
class LoadedModel:
    """What planning gives: the program, its contents, and what a reader must know.

    Attributes:
        program: What runs.
        contents: By buffer name.
        selections: Which kernel each operator got, and why.
        planned: What the kernel path asked for, for the diff with what ran.
        notes: Remarks on weights (numbers that float16 can't hold), on the path.
        parameters: Numbers of the model.
        matrix_bytes: What its matrices take on the device, by the name of their format.
    """

    program: Program
    contents: Mapping[str, Content]
    selections: Sequence["Selection"]
    planned: Sequence["PlannedStep"]
    parameters: int
    notes: Sequence[str] = field(default_factory=tuple)
    matrix_bytes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The kernel that the operator of a phase got, of those that the path names, and why."""

    phase: str
    op: str
    role: str | None
    kernel: str
    constants: Mapping[str, float]
    reason: str


@dataclass(frozen=True)
class PlannedStep:
    """A step of the kernel path: the kernel it would have first, and how often it stands in one pass."""

    phase: str
    op: str
    role: str | None
    kernel: str
    count: int
