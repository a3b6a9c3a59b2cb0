"""The call trees of two runs as one: what each node took in either, and what came and went.

A node is its path of labels, so layers and ranges that are pooled in one tree are pooled in both. Where both runs mark
their steps alike, times are those of a step of one process: of launches called for in a step, over the number of steps.
Else they are of the whole runs. Times are rounded to a nanosecond at the leaves and added up from there, so what is
below a node and what it took itself always add up to its time, and their differences to its difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.activity.activity import OWNER
from inferometer.analyses.compare.activity.step_marks import Marks, are_marked_alike, find_recorded_marks
from inferometer.analyses.compare.activity.step_places import steps_of_launches
from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.call_tree import TreeOptions, shown_nodes
from inferometer.analyses.launched_by.call_tree_nodes import Node, build_alike, counted_name
from inferometer.analyses.launched_by.launched import NEEDED as LAUNCHED_NEEDED
from inferometer.analyses.launched_by.remarks import site_remarks
from inferometer.analyses.result import Result
from inferometer.analyses.steps.sources import NEEDED as STEPS_NEEDED
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED = {
    table: tuple(dict.fromkeys((*LAUNCHED_NEEDED.get(table, ()), *STEPS_NEEDED.get(table, ()))))
    for table in (*LAUNCHED_NEEDED, "steps")
}
Status = Literal["new", "gone"]
_SCHEMA = {
    **dict.fromkeys(("node", "parent", "depth"), pl.Int64),
    **dict.fromkeys(("kind", "name", "status"), pl.String),
    **dict.fromkeys(("base_ns", "candidate_ns", "delta_ns"), pl.Int64),
    "ratio": pl.Float64,
    **dict.fromkeys(("base_count", "candidate_count"), pl.Float64),
    **dict.fromkeys(("base_self_ns", "candidate_self_ns"), pl.Int64),
    "share": pl.Float64,
}


class TreeRun(msgspec.Struct, frozen=True):
    """One run: its launches, in `steps` steps of one process (None: the whole run).

    `outside_ns`: time of launches that no step called for. `phases`: marked steps by phase.
    """

    found: Attribution
    steps: int | None = None
    outside_ns: int = 0
    phases: Mapping[str | None, int] = msgspec.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.found.source,
            "steps": self.steps,
            "launches": self.found.launches.height,
            "outside_ns": self.outside_ns,
        }


@dataclass(frozen=True)
class CallTreeComparison(Result):
    """`frame`: a row per node of either run, depth first, of callees those that changed most first.

    `node`, `parent`, `depth`, `kind` and `name` as of one tree; `status`: `new`, `gone`, or null where both have it.
    `base_ns`, `candidate_ns` with all callees, `delta_ns` = candidate less base, `ratio` = candidate over base,
    launches (`…_count`), and `…_self_ns`, which only kernels have: all of a step, or of the whole runs (`per`).
    `share`: the larger time, of the larger total. `shown`: the nodes that were asked for.
    """

    view: ClassVar[str] = "call_tree_comparison"
    base: TreeRun
    candidate: TreeRun
    frame: pl.DataFrame
    shown: pl.DataFrame
    asked: TreeOptions
    losses: Losses
    notable: tuple[str, ...] = ()

    @property
    def per(self) -> Literal["step", "run"]:
        """What times are of."""
        return "run" if self.base.steps is None else "step"

    @property
    def base_ns(self) -> int:
        """All device time of the base."""
        return int(self.frame.filter(pl.col("depth") == 0)["base_ns"].sum())

    @property
    def candidate_ns(self) -> int:
        """All device time of the candidate."""
        return int(self.frame.filter(pl.col("depth") == 0)["candidate_ns"].sum())

    def to_polars(self) -> pl.DataFrame:
        """One row per node that was asked for."""
        return self.shown

    def as_json(self) -> dict[str, Any]:
        return {
            "base": self.base.as_json(),
            "candidate": self.candidate.as_json(),
            "per": self.per,
            "layers": self.asked.layers,
            "frames": self.asked.frames,
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "delta_ns": self.candidate_ns - self.base_ns,
            "nodes": self.frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def compare_trees(
    base: tuple[Trace, Attribution], candidate: tuple[Trace, Attribution], asked: TreeOptions | None = None
) -> CallTreeComparison:
    """The call trees of two runs as one.

    Args:
        base: The run, with the tables of `NEEDED`, and who launched what in it.
        candidate: The other.
        asked: What the trees are made of, and which nodes to show; shares are of the larger total.

    Raises:
        InputError: A run has no launches, or `match` is no regular expression.
    """
    asked = asked or TreeOptions()
    for _, found in (base, candidate):
        if found.launches.is_empty():
            raise InputError(f"{found.source}: expected launches, found none", hint=found.why_none or None)
    runs = _in_steps(base, candidate)
    tops = build_alike([run.found for run in runs], layers=asked.layers, frames=asked.frames, code=asked.code)
    frame = pl.DataFrame([*_rows(_join_all(tops, runs))], schema=_SCHEMA, orient="row")
    losses = Losses(base[0].losses.scope & candidate[0].losses.scope)
    for trace, _ in (base, candidate):
        losses.add(trace.losses, trace.facts.source)
    return CallTreeComparison(
        base=runs[0],
        candidate=runs[1],
        frame=frame,
        shown=shown_nodes(frame, asked),
        asked=asked,
        losses=losses,
        notable=tuple(_notable(runs)),
    )


def _in_steps(*sides: tuple[Trace, Attribution]) -> list[TreeRun]:
    """The runs in the steps that both mark, without what no step called for; else as they are."""
    whole = [TreeRun(found) for _, found in sides]
    first, second = (find_recorded_marks(trace) for trace, _ in sides)
    if not are_marked_alike((first, second)):
        return whole
    runs = [_within(found, marks) for (_, found), marks in zip(sides, (first, second), strict=True)]
    return runs if all(run.steps for run in runs) else whole


def _within(found: Attribution, marks: Marks) -> TreeRun:
    own_start = pl.when(pl.col("device") == "cpu").then("start_ns")  # the CPU queues nothing
    asked = found.launches.with_columns(pl.coalesce("called_ns", own_start).alias("asked_ns"))
    cycle = steps_of_launches(asked, marks.steps)
    inside, outside = found.launches.filter(cycle.is_not_null()), found.launches.filter(cycle.is_null())
    count = inside.select(*OWNER).with_columns(cycle.drop_nulls()).n_unique() if inside.height else 0
    return TreeRun(replace(found, launches=inside), count, int(outside["dur_ns"].sum()), marks.phases())


class _Joined(msgspec.Struct):
    """A node of both trees, with what it took in each, rounded at the leaves; counts are over steps."""

    kind: str
    name: str
    own_ns: tuple[int, int]
    count: tuple[float, float]
    key: list[tuple[int, str]]
    time_ns: tuple[int, int] = (0, 0)
    callees: "list[_Joined]" = msgspec.field(default_factory=list)

    @property
    def delta_ns(self) -> int:
        return self.time_ns[1] - self.time_ns[0]


def _join_all(tops: Sequence[Node], runs: Sequence[TreeRun]) -> _Joined:
    """The root of both; equal paths are one node."""
    (base, candidate), steps = tops, [run.steps or 1 for run in runs]
    top = _join(base, candidate, steps)
    order = [(base, candidate, top)]
    for left, right, node in order:
        for key, callee in left.callees.items():
            other = right.callees[key]
            if callee.count or other.count:
                node.callees.append(_join(callee, other, steps))
                order.append((callee, other, node.callees[-1]))
    for _, _, node in reversed(order):
        below = [callee.time_ns for callee in node.callees]
        node.time_ns = _sum([node.own_ns, *below])
        node.callees.sort(key=lambda callee: (-abs(callee.delta_ns), -max(callee.time_ns), callee.key))
    return top


def _join(left: Node, right: Node, steps: Sequence[int]) -> _Joined:
    own_ns = round(left.self_ns / steps[0]), round(right.self_ns / steps[1])
    count = left.count / steps[0], right.count / steps[1]
    return _Joined(left.kind, left.name, own_ns, count, counted_name(left))


def _sum(times_ns: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(base_ns for base_ns, _ in times_ns), sum(candidate_ns for _, candidate_ns in times_ns)


def _rows(top: _Joined) -> Iterator[tuple[Any, ...]]:
    """In the order of `_SCHEMA`."""
    largest_ns = max(*top.time_ns, 1)
    stack: list[tuple[_Joined, int | None, int]] = [(each, None, 0) for each in reversed(top.callees)]
    number = 0
    while stack:
        node, parent, depth = stack.pop()
        base_ns, candidate_ns = node.time_ns
        status: Status | None = "new" if not node.count[0] else "gone" if not node.count[1] else None
        ratio = candidate_ns / base_ns if base_ns else None
        share = max(node.time_ns) / largest_ns
        yield (
            *(number, parent, depth, node.kind, node.name, status, base_ns, candidate_ns, node.delta_ns, ratio),
            *(*node.count, *node.own_ns, share),
        )
        stack.extend((each, number, depth + 1) for each in reversed(node.callees))
        number += 1


def _notable(runs: Sequence[TreeRun]) -> Iterator[str]:
    for side, run in zip(("Base", "Candidate"), runs, strict=True):
        yield from (f"{side}: {remark}" for remark in site_remarks(run.found, None))
