"""The steps of a run that has launches, as `inferometer steps` has them, for a comparison: of all ranks and devices.

Marked steps are the host's times, and hold what was called in them. Steps that were found in the order of kernels are
the device's times, each device with its own, and hold what began in them; `steps.sources` says where steps come from.
Found steps are used only where they are reliable: a wrong boundary would make a difference of runs that have none.
"""

from collections.abc import Iterator

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.columns import with_schema
from inferometer.analyses.compare.activity.activity import OWNER
from inferometer.analyses.comparison_limits import MOST, RELIABLE_STEPS
from inferometer.analyses.steps.found.finding import FoundSteps
from inferometer.analyses.steps.sources import every_step, recorded_steps
from inferometer.analyses.timeline.recorder_pauses import meet_pauses, recorder_pauses
from inferometer.trace.trace import Trace

TOKENS = ("batch", "prefill_tokens", "decode_tokens")
STEPS = pl.Schema(
    {
        **dict.fromkeys(OWNER, pl.Int64()),
        "device": pl.String(),
        **dict.fromkeys(("cycle", "start_ns", "end_ns"), pl.Int64()),
        "phase": pl.String(),
        **dict.fromkeys(TOKENS, pl.Int64()),
        "left_out": pl.Boolean(),
    }
)
_WHOLE = "the whole recording is compared"


class Marks(msgspec.Struct, frozen=True):
    """Steps of a trace with launches.

    `steps`: columns of `STEPS`; `device` is null where a step is of all devices of its process; `left_out` steps were
    cut by the recording, at its ends or within, or warmed up. `anchor`: what delimits them; None without steps.
    `confidence`: of steps that were found, the least of all devices; None where they are marked, or where none were
    found. `looked_for`: nothing marks steps, so they were looked for. `notes`: what to say of that.
    """

    steps: pl.DataFrame = msgspec.field(default_factory=lambda: pl.DataFrame(schema=STEPS))
    anchor: str | None = None
    confidence: float | None = None
    looked_for: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_doubtful(self) -> bool:
        """Whether steps were looked for, and nothing was found that a comparison may rest on."""
        return self.looked_for and self.steps.is_empty()

    @property
    def are_recorded(self) -> bool:
        """Whether the run itself shows its steps."""
        return not (self.looked_for or self.steps.is_empty())

    def without_steps(self) -> "Marks":
        """Without its steps, marked or found: the other run has none to set them against."""
        if self.steps.is_empty():
            return self
        why = f"Those of the other run can't be known: {_WHOLE}."
        return replace(self, steps=pl.DataFrame(schema=STEPS), notes=(*self.notes, why))

    def phases(self) -> dict[str | None, int]:
        """Steps that are not left out, by phase; of unknown phase under None."""
        return dict(self.steps.filter(~pl.col("left_out")).group_by("phase").len().iter_rows())


def find_marks(trace: Trace) -> Marks:
    """The steps of a trace; those that were found only where they are reliable."""
    every, found = every_step(trace)
    return leave_out_cut(_recorded(every) if found is None else _found(found), recorder_pauses(trace))


def find_recorded_marks(trace: Trace) -> Marks:
    """The steps that the trace itself marks; none are looked for."""
    return leave_out_cut(_recorded(recorded_steps(trace)), recorder_pauses(trace))


def are_marked_alike(marks: tuple[Marks, Marks]) -> bool:
    """Whether both runs show their steps in the same way, so that a step of the one is one of the other."""
    return all(run.are_recorded for run in marks) and marks[0].anchor == marks[1].anchor


def shared_marks(base: Trace, candidate: Trace) -> tuple[Marks, Marks]:
    """Those of two runs: where nothing marks steps in one, and none can be relied on, those of neither."""
    first, second = find_marks(base), find_marks(candidate)
    if first.is_doubtful or second.is_doubtful:
        return first.without_steps(), second.without_steps()
    return first, second


def _recorded(every: pl.DataFrame) -> Marks:
    if every.is_empty():
        return Marks()
    anchors: list[str] = every["anchor"].drop_nulls().head(1).to_list()
    return Marks(_marked(every), anchors[0] if anchors else None)


def leave_out_cut(marks: Marks, pauses: pl.DataFrame) -> Marks:
    """Without steps in which the recording was cut, or right before which; with all where none would be left."""
    before = pl.col("end_ns").shift(1).over(*OWNER, "device")  # time between two steps is the later one's
    reach = marks.steps.with_columns(pl.min_horizontal("start_ns", before).alias("start_ns"))
    is_cut = meet_pauses(reach, pauses) & ~marks.steps["left_out"]
    cut, held = int(is_cut.sum()), int((~marks.steps["left_out"]).sum())
    if cut in (0, held):
        return marks
    note = f"Nothing was recorded in all or a part of {cut:,} of {marks.steps.height:,} steps: left out."
    steps = marks.steps.with_columns(left_out=marks.steps["left_out"] | is_cut)
    return replace(marks, steps=steps, notes=(*marks.notes, note))


def _marked(every: pl.DataFrame) -> pl.DataFrame:
    """Marks that have times; those of one owner without numbers, or with equal ones, count from 0."""
    timed = every.filter(pl.col("start_ns").is_not_null(), pl.col("wall_ns").is_not_null()).sort(
        "start_ns", "wall_ns", maintain_order=True
    )
    anew = (pl.col("step").null_count().over(OWNER) > 0) | pl.col("step").is_duplicated().any().over(OWNER)
    return with_schema(
        timed.with_columns(
            pl.when(anew).then(pl.int_range(pl.len(), dtype=pl.Int64).over(OWNER)).otherwise("step").alias("cycle"),
            (pl.col("start_ns") + pl.col("wall_ns")).alias("end_ns"),
            pl.lit(None, dtype=pl.String).alias("device"),
            pl.lit(value=False).alias("left_out"),
        ),
        STEPS,
    )


def _found(found: FoundSteps) -> Marks:
    devices = found.devices.filter(pl.col("steps") > 0)
    if devices.is_empty():
        return Marks(looked_for=True, notes=tuple(_none_found(found)))
    confidence = devices.select(pl.col("confidence").min()).item()
    launches, outside = found.devices.select(pl.col("launches", "outside").sum()).row(0)
    marks = Marks(anchor=found.anchor, confidence=confidence, looked_for=True, notes=found.notes)
    if confidence < RELIABLE_STEPS:
        why = f"That is less than {RELIABLE_STEPS}, too little to rest a comparison on: {_WHOLE}."
        return replace(marks, notes=(*found.notes, why))
    if outside > MOST * launches:
        why = f"They hold {launches - outside:,} of {launches:,} launches only: {_WHOLE}."
        return replace(marks, notes=(*found.notes, why))
    left_out = (pl.col("is_partial") | pl.col("is_warm_up")).alias("left_out")
    end = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
    steps = with_schema(found.steps.with_columns(pl.col("step").alias("cycle"), end, left_out), STEPS)
    return replace(marks, steps=steps, notes=(*found.notes, *_left_out(found.steps)))


def _none_found(found: FoundSteps) -> Iterator[str]:
    if not found.devices.is_empty():
        yield from (f"{note.removesuffix('.')}: {_WHOLE}." for note in found.notes)


def _left_out(steps: pl.DataFrame) -> Iterator[str]:
    for column, what in (("is_partial", "cut by the recording"), ("is_warm_up", "warm-up")):
        if count := int(steps[column].sum()):
            yield f"{count:,} of {steps.height:,} steps {'is' if count == 1 else 'are'} {what}, and left out."
