"""The file that a run of the evaluator leaves: who ran, on what, how right and how fast each shape was.

All times are ns of one call. Measured and modelled figures are apart: `timings` are measured, `Bound` is modelled.
Files and JSON call a candidate `contender`, as they always have.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from inferometer.errors import FormatError
from inferometer.new_files import FileKind
from inferometer.side_files import read_side_file

FORMAT = "inferometer-bench"
VERSION = 1

REFUSED = "refused: "
"""How the failure begins of a backend that doesn't take a shape; its reason follows."""

Mode = Literal["cold", "warm"]
Timer = Literal["cupti", "graph", "events", "host"]
Interpreted = Literal["bf16 dot", "bf16 math", "first configuration"]
Verdict = Literal["same", "faster", "slower", "unclear"]


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file; what a newer version adds is passed over."""


class Timing(_Part, frozen=True, kw_only=True):
    """How long one call takes, with caches cold or warm.

    `timer`: cupti (kernel time, from a profile), graph (replays), events (of the stream), host (CPU only).
    `low_ns` to `high_ns` is the 95 % interval of the median. `dropped`: calls left out, since the device throttled.
    `checked`: how many of the timed calls had their outputs compared with the reference. `inputs`: usual, or what is
    unusual about them: skewed (one expert gets most tokens), mixed (sequences of unequal lengths).
    """

    mode: Mode
    timer: Timer
    median_ns: float
    p10_ns: float
    p90_ns: float
    low_ns: float
    high_ns: float
    samples: int
    steady: bool
    checked: int = 0
    dropped: int = 0
    inputs: str = "usual"


class Versus(_Part, frozen=True, kw_only=True):
    """Against another candidate, both timed in turns, each in a process of its own.

    `speedup` is base over candidate: above 1, the candidate is faster; `low` to `high` its 95 % interval. Inputs are
    the usual ones.
    """

    base: str
    mode: Mode
    speedup: float
    low: float
    high: float
    verdict: Verdict


class Attribution(_Part, frozen=True, kw_only=True):
    """Whose code the time went to, from a profiled run apart from the timed one.

    `own` is the share of kernels that the candidate's file defines, None where that is unknown; `by_name` the shares of
    all kernels (on a CPU: operators of torch), the largest first. `of`: device time, or host time on a CPU.
    """

    own: float | None
    by_name: dict[str, float]
    of: Literal["device", "host"]


class Bound(_Part, frozen=True, kw_only=True):
    """The least time that a device allows; modelled. `binding` names the bound that holds.

    `launch_ns`: what a launch that does nothing takes on the device, as far as is known: a reference, in no bound. Of
    older files, whose bounds had it, `binding` may be `launch`: then no bound of work or bytes is known.
    """

    device: str
    bound_ns: float
    binding: str
    warm_ns: float | None = None
    launch_ns: float | None = None


class ShapeResult(_Part, frozen=True, kw_only=True):
    """One candidate on one shape.

    `index`: of a published shape. `failure`: why it isn't right, None where it is. `error`, `row_error`: the greatest
    of all cases, as shares of what is allowed. `strided`: what it made of inputs that aren't dense: right, wrong, or
    refused, with the reason. `hard`: what it made of each hard case of the operator, by name; none ran where an earlier
    case was wrong, or with `hard_left_out`, as the weights are too large. `hard_case`: the first of them that made it
    wrong. `concerns`: what makes its times doubtful. `own_share`: of the time, in kernels that the
    candidate's file defines; None where it defines none, or that is unknown. `interpreted`: what was done otherwise
    than Triton's interpreter does where it stands in for a GPU: products (bf16 dot) and other operations of bf16 (bf16
    math) in float32; only the first of the configurations of `@triton.autotune`.
    """

    operator: str
    shape: str
    args: dict[str, Any]
    candidate: str = msgspec.field(name="contender")
    cases: int
    failure: str | None = None
    index: int | None = None
    seed: int | None = None
    error: float | None = None
    row_error: float | None = None
    strided: str | None = None
    hard: dict[str, str] = {}
    hard_case: str | None = None
    hard_left_out: bool = False
    timings: tuple[Timing, ...] = ()
    versus: tuple[Versus, ...] = ()
    attribution: Attribution | None = None
    bound: Bound | None = None
    concerns: tuple[str, ...] = ()
    own_share: float | None = None
    interpreted: tuple[Interpreted, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether every case was."""
        return self.failure is None

    @property
    def wrong_hard(self) -> tuple[str, ...]:
        """Hard cases that it got wrong, by name; a refusal that the operator allows is none."""
        return tuple(name for name, words in self.hard.items() if words != "right" and not words.startswith(REFUSED))

    @property
    def verdict(self) -> Literal["right", "wrong", "refused"]:
        """Refused: the candidate says itself that it can't do this shape."""
        if self.failure is None:
            return "right"
        return "refused" if self.failure.startswith(REFUSED) else "wrong"

    def timing(self, mode: Mode) -> Timing | None:
        """Of this cache state, with usual inputs; None where it wasn't timed."""
        return next((each for each in self.timings if each.mode == mode and each.inputs == "usual"), None)


class CandidateRecord(_Part, frozen=True, kw_only=True):
    """Whose kernels ran: a backend, or a file with the hash of its bytes. `settings`: how they were made."""

    name: str
    kind: Literal["backend", "file"]
    sha256: str | None = None
    settings: dict[str, str] = {}


class Conditions(_Part, frozen=True, kw_only=True):
    """The machine while it ran: least, median and greatest of each metric, by name with its unit (`sm_clock_hz`).

    `throttled`: reasons that the driver gave for lower clocks meanwhile, with the share of samples that had them.
    """

    metrics: dict[str, tuple[float, float, float]] = {}
    throttled: dict[str, float] = {}
    remarks: tuple[str, ...] = ()


class Run(_Part, frozen=True, kw_only=True):
    """One run of `inferometer bench`.

    `date` is UTC, ISO 8601. `device` is its full name, `on` where: `cpu`, `cuda:0`. `functional_only`: it ran on a CPU,
    so its times show that the kernels run, not how fast they are.
    """

    date: str
    inferometer: str
    device: str
    on: str
    functional_only: bool
    stage: Literal["correct", "fast"]
    versions: dict[str, str]
    settings: dict[str, Any]
    candidates: tuple[CandidateRecord, ...] = msgspec.field(name="contenders")
    results: tuple[ShapeResult, ...]
    conditions: Conditions = Conditions()
    format: str = FORMAT
    version: int = VERSION


RUN_FILE = FileKind("file of results", lambda head: head.startswith(b"{") and b'"inferometer"' in head)


def encode_run(run: Run) -> bytes:
    """As a file has it: JSON with one line per field, ending in a line break."""
    return msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"


def read_run(path: str | Path) -> Run:
    """The run that a file holds.

    Raises:
        InputError: It can't be read.
        FormatError: It is no such file, or of a newer version.
    """
    data = read_side_file(path, hint="Give a file that `inferometer bench -o` made.", pipe=True)
    try:
        run = msgspec.json.decode(data, type=Run)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{path}: expected results of inferometer bench, found: {error}", hint=_HINT) from error
    if run.format != FORMAT:
        raise FormatError(f'{path}: format: expected "{FORMAT}", found "{run.format}"', hint=_HINT)
    if run.version > VERSION:
        hint = f"This inferometer reads version {VERSION}: it is older than the one that made the file."
        raise FormatError(f"{path}: version: expected at most {VERSION}, found {run.version}", hint=hint)
    return run


_HINT = "`inferometer bench OPERATOR --stage fast -o RESULTS.json` makes one."
