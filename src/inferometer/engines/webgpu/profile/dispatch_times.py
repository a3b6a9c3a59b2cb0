"""Every dispatch of some submissions as a row: what it was, where it stood, what the device took, what it had to do.

Bytes and FLOPs are modelled, from the program's formulas; times are measured.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.engines.webgpu.profile.geometry import workgroup_of
from inferometer.engines.webgpu.profile.profiled_run import pass_phase
from inferometer.engines.webgpu.program import Amount, Dispatch, Grid, Pass, Phase, Program
from inferometer.engines.webgpu.run.executor import Submission
from inferometer.errors import InferometerError
from inferometer.names.engine_labels import class_of_label

_Ints = NDArray[np.int64]
T = TypeVar("T", bound=Hashable)
_PLACE = ("step", "pass", "tokens", "position")
DISPATCHES = pl.Schema(
    {
        **dict.fromkeys((*_PLACE, "dispatch"), pl.Int64()),
        **dict.fromkeys(("phase", "label", "class", "op", "role"), pl.String()),
        "layer": pl.Int64(),
        "kernel": pl.String(),
        **dict.fromkeys(("grid", "workgroup"), pl.Array(pl.Int64(), 3)),
        **dict.fromkeys(("flops", "bytes", "begin_ns", "end_ns", "dur_ns"), pl.Int64()),
    }
)


def dispatch_times(program: Program, submissions: Sequence[Submission]) -> pl.DataFrame:
    """A row for each dispatch, in order; columns of `DISPATCHES`.

    `step` is the submission's number, `phase` its pass's (`pass_phase`), `dispatch` the place in the submission,
    `class` the label without its layer. `begin_ns`, `end_ns`, `dur_ns` are null where it wasn't timed, `workgroup`
    where the kernel's file doesn't say. `bytes` are those read and written.

    Raises:
        InferometerError: A submission has neither no times nor a pair of them for each dispatch.
    """
    walks = {phase: _Walk(dispatches) for phase, dispatches in program.phases.items()}
    about = _about(program)
    parts = [_rows(number, one, walks, program) for number, one in enumerate(submissions)]
    empty = np.empty(0, dtype=np.int64)
    columns: dict[str, Any] = {name: np.concatenate([empty, *(part[name] for part in parts)]) for name in _COLUMNS}
    counts = [len(part["id"]) for part in parts]
    times = {
        "begin_ns": _joined(one.begin_ns or [None] * n for one, n in zip(submissions, counts, strict=True)),
        "end_ns": _joined(one.end_ns or [None] * n for one, n in zip(submissions, counts, strict=True)),
    }
    grid = pl.concat_list("x", "y", "z").list.to_array(3).alias("grid")
    frame = pl.DataFrame({**columns, **times}, schema_overrides=dict.fromkeys(_COLUMNS, pl.Int64)).with_columns(grid)
    known = about[frame["id"].to_numpy()] if frame.height else about.clear()
    phases = pl.Series("phase", ["decode", "prefill"], dtype=pl.String)[frame["is_prefill"].to_numpy()]
    frame = frame.hstack(known).with_columns(phases, (pl.col("end_ns") - pl.col("begin_ns")).alias("dur_ns"))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in DISPATCHES.items())


_COLUMNS = (*_PLACE, "dispatch", "is_prefill", "id", "x", "y", "z", "flops", "bytes")


class _Walk:
    """The dispatches of one phase, with what they differ in only once."""

    def __init__(self, dispatches: Sequence[Dispatch]) -> None:
        self.dispatches = dispatches
        self._grids: _Distinct[Grid] = _Distinct(one.grid for one in dispatches)
        self._flops: _Distinct[Amount] = _Distinct(one.flops for one in dispatches)
        self._read: _Distinct[Amount] = _Distinct(one.bytes_read for one in dispatches)
        self._written: _Distinct[Amount] = _Distinct(one.bytes_written for one in dispatches)

    def at(self, tokens: int, position: int) -> dict[str, _Ints]:
        """Grid, FLOPs and bytes of each in such a pass."""
        first = {one.grid: one for one in self.dispatches}
        grids = self._grids.each([first[grid].grid_at(tokens, position) for grid in self._grids.values], width=3)
        return {
            **dict(zip("xyz", grids.T, strict=True)),
            "flops": self._flops.each([amount.at(tokens, position) for amount in self._flops.values]),
            "bytes": self._read.each([amount.at(tokens, position) for amount in self._read.values])
            + self._written.each([amount.at(tokens, position) for amount in self._written.values]),
        }


class _Distinct(Generic[T]):
    """Values of many rows, each kept once."""

    def __init__(self, rows: Iterable[T]) -> None:
        numbers: dict[T, int] = {}
        self._at = np.array([numbers.setdefault(value, len(numbers)) for value in rows], dtype=np.int64)
        self.values = tuple(numbers)

    def each(self, of_value: Sequence[Any], *, width: int | None = None) -> _Ints:
        """The entry of `of_value` for the value in each row."""
        shape = (-1,) if width is None else (-1, width)
        return np.array(of_value, dtype=np.int64).reshape(shape)[self._at]


def _rows(number: int, submission: Submission, walks: Mapping[Phase, _Walk], program: Program) -> dict[str, _Ints]:
    parts = [_of_pass(number, order, one, walks, _first_ids(program)) for order, one in enumerate(submission.passes)]
    empty = np.empty(0, dtype=np.int64)
    found = {name: np.concatenate([empty, *(part[name] for part in parts)]) for name in _COLUMNS if name != "dispatch"}
    count = len(found["id"])
    lengths = {len(submission.begin_ns), len(submission.end_ns)}
    if lengths not in ({0}, {count}):
        raise InferometerError(
            f"submission {number} ({submission.timing}): expected times of {count:,} dispatches, or of none, "
            f"found {len(submission.begin_ns):,} and {len(submission.end_ns):,}"
        )
    return {**found, "dispatch": np.arange(count)}


def _of_pass(
    number: int, order: int, one: Pass, walks: Mapping[Phase, _Walk], first: Mapping[Phase, int]
) -> dict[str, _Ints]:
    known = [walks[phase].at(one.tokens, one.position) for phase in one.phases]
    ids = [np.arange(first[phase], first[phase] + len(walks[phase].dispatches)) for phase in one.phases]
    found = {name: np.concatenate([part[name] for part in known]) for name in known[0]}
    found["id"] = np.concatenate(ids)
    same = {"step": number, "pass": order, "tokens": one.tokens, "position": one.position}
    same["is_prefill"] = int(pass_phase(one) == "prefill")
    return found | {name: np.full(len(found["id"]), value, dtype=np.int64) for name, value in same.items()}


def _first_ids(program: Program) -> dict[Phase, int]:
    """The number of each phase's first dispatch, where all are numbered through."""
    found, count = {}, 0
    for phase, dispatches in program.phases.items():
        found[phase] = count
        count += len(dispatches)
    return found


def _joined(parts: Iterable[Sequence[int | None]]) -> pl.Series:
    return pl.Series([time for part in parts for time in part], dtype=pl.Int64)


def _about(program: Program) -> pl.DataFrame:
    """What each dispatch of the program is, numbered through."""
    every = [one for dispatches in program.phases.values() for one in dispatches]
    labels = [one.label for one in every]
    pipelines = [program.pipelines[one.pipeline] for one in every]
    groups = [workgroup_of(pipeline) for pipeline in program.pipelines]
    columns = {
        "label": labels,
        "class": [class_of_label(label) for label in labels],
        "op": [one.op for one in every],
        "role": [one.role for one in every],
        "layer": [one.layer for one in every],
        "kernel": [pipeline.kernel for pipeline in pipelines],
        "workgroup": [groups[one.pipeline] for one in every],
    }
    return pl.DataFrame(columns, schema={name: DISPATCHES[name] for name in columns})
