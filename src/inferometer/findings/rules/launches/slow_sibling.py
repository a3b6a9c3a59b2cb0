"""A place where the same work takes far longer than in its siblings: one layer among equal layers.

Siblings are launches of one role (products with another tile are of the same role) in the same module of other
layers; or, where no modules are known, at the other places of a pass (a replayed graph, or a step) between the same
neighbours (there of one kernel and grid). Each launch is compared with the median of its siblings in the same turn
(the k-th time that the module runs), so changing batches don't matter; a place has the median of its ratios.

Fires where a place takes 1.3 times as long as its siblings or more, and is further from them than six of their scaled
median absolute deviations; at least four places, of which at most one in eight (or one) stands out: more are another
kind of layer, not a fault. Collectives are left out, since they wait for others, and so are copies.

Severity is the time beyond the siblings' as a share of all GPU time: from 0.5 % `low`, from 4 % `medium`, from 15 %
`high`; `info` of fewer than three launches, which something else may have disturbed. Launches of healthy runs spread
by 5 %, places by less: none stands out. Not seen: a slow tile in all layers, and single slow launches, which `steps`
shows as disturbed.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches, first_rows, whole_groups
from inferometer.analyses.groups.kernel_roles import role_of
from inferometer.findings.evidence.kernel_rows import Codes, Ints, KernelRows, number_changes
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("slow_sibling", low=0.005, medium=0.04, high=0.15)
_SLOWER = 1.3
_BEYOND_NOISE = 6 * 1.4826  # the deviation of a normal distribution is 1.4826 times its median absolute one
_LEAST_NOISE = 0.02  # of the median: a few equal durations are no proof that there is no noise
_PLACES = 4
_ODD_ONES = 8  # at most one in so many
_TURNS = 3  # launches in a place; fewer may have met with a disturbance
_SHOWN = 3
_SHAPES = 1_024
_LARGEST = 2**62
_NO_SIBLINGS = ("collective", "memory", "other")
_NONE = -1

Extents = Sequence[tuple[int, int]]


class _Odd(msgspec.Struct, frozen=True):
    """A place that stands out. `row`: one of its launches; `usual`: one of the usual place's. `ratio`: to that.

    `place`: its number among all `places`, itself included, from 0; of modules any number. `count` launches, of which
    `after_pause` are the first after a pause of their stream.
    """

    row: int
    place: int
    usual: int
    count: int
    after_pause: int
    places: int
    total_ns: int
    extra_ns: float
    ratio: float


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    rows = launches.rows
    odd = sorted(_odd(launches, rows), key=lambda each: -each.extra_ns)
    extra_ns = sum(each.extra_ns for each in odd)
    severity: Severity | None = _SCALE.severity(extra_ns / launches.total_ns)
    if severity is None:
        return
    if max(each.count for each in odd) < _TURNS:
        severity = "info"
    sites = launches.attribution.sites
    size_ns = sum(each.total_ns for each in odd)
    first = odd[0]
    name = rows.known[rows.kernel[first.row]].short_name
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{name} takes {first.ratio:.1f}x as long {_place(rows, sites, first)} as usual",
        evidence=(
            *(_sentence(rows, sites, each) for each in odd[:_SHOWN]),
            (
                f"Together {format_duration(extra_ns)} beyond the median, "
                f"{format_share(extra_ns / launches.total_ns)} of the GPU time."
            ),
        ),
        size_ns=size_ns,
        share=size_ns / launches.total_ns,
        next=_next(rows, first, is_once=max(each.count for each in odd) < _TURNS),
    )


def _odd(launches: "LaunchEvidence", rows: KernelRows) -> Iterator[_Odd]:
    """The places that stand out."""
    table = _places(launches, rows)
    sums = table.group_by("group", "place").agg(pl.col("dur_ns").mean().alias("mean"))
    groups = sums.group_by("group").agg(
        pl.len().alias("places"), pl.col("mean").median().alias("usual"), pl.col("mean").max().alias("most")
    )
    worth = groups.filter(pl.col("places") >= _PLACES, pl.col("most") >= (1 + (_SLOWER - 1) / 2) * pl.col("usual"))
    if worth.is_empty():
        return
    asked = table.join(worth.select("group"), on="group", how="semi", maintain_order="left").with_columns(
        pl.int_range(pl.len()).over("group", "place").alias("turn")
    )
    compared = asked.with_columns(
        (pl.len().over("group", "turn")).alias("places"),
        pl.col("dur_ns").median().over("group", "turn").alias("usual"),
    ).filter(pl.col("places") >= _PLACES, pl.col("usual") > 0)
    ratio = pl.col("dur_ns") / pl.col("usual")
    scores = compared.group_by("group", "place").agg(
        ratio.median().alias("ratio"),
        pl.len().alias("count"),
        pl.col("after_pause").sum(),
        pl.col("dur_ns").sum().alias("total_ns"),
        (pl.col("dur_ns") - pl.col("usual")).sum().alias("extra_ns"),
        pl.col("row").first(),
    )
    for group in scores.sort("group", "place").partition_by("group", maintain_order=True):
        yield from _outliers(group)


def _outliers(group: pl.DataFrame) -> Iterator[_Odd]:
    ratio = group["ratio"].to_numpy()
    middle = float(np.median(ratio))
    noise = max(float(np.median(np.abs(ratio - middle))), _LEAST_NOISE * middle)
    slow = (ratio >= _SLOWER * middle) & (ratio > middle + _BEYOND_NOISE * noise)
    if not slow.any() or slow.sum() > max(1, group.height // _ODD_ONES) or group.height < _PLACES:
        return
    usual = group["row"][int(np.abs(ratio - middle).argmin())]
    for row in group.filter(slow).iter_rows(named=True):
        yield _Odd(
            row=row["row"],
            place=row["place"],
            usual=usual,
            count=row["count"],
            after_pause=row["after_pause"],
            places=group.height,
            total_ns=row["total_ns"],
            extra_ns=max(0.0, row["extra_ns"]),
            ratio=row["ratio"] / middle,
        )


def _places(launches: "LaunchEvidence", rows: KernelRows) -> pl.DataFrame:
    """A row per launch that may have siblings, by time: `row`, `group` of siblings, `place` among them and its own."""
    module, pooled = _modules(launches.attribution.sites)
    roles = np.unique([role_of(name).key for name in rows.names], return_inverse=True)[1].astype(np.int32)
    role = roles[rows.kernel] if len(rows.names) else rows.kernel
    usable = ~rows.of_family(*_NO_SIBLINGS)
    layered = usable & (pooled != _NONE)[rows.node]
    chosen = np.flatnonzero(layered)
    node = rows.node[chosen]
    by_module = _frame(rows, chosen, _packed(rows.device[chosen], pooled[node], role[chosen]), module[node])
    elsewhere = np.flatnonzero(usable & ~layered).astype(np.int32)
    return pl.concat([by_module, _in_passes(launches, rows, elsewhere, role)])


def _passes(launches: "LaunchEvidence", rows: KernelRows) -> Codes:
    """A number for the pass that each launch is of: a replay of a graph, or a step; -1 where neither is known."""
    owner = ("rank", "device", "stream", "process")
    step = pl.Series("step", launches.step_of(rows.start_ns))
    keys = rows.work.select(*owner, "is_replay", "correlation_id").with_columns(step)
    in_replay = pl.col("is_replay") & pl.col("correlation_id").is_not_null()
    by_pass = [
        pl.when(in_replay).then("correlation_id").alias("replay"),
        pl.when(~in_replay).then("step").alias("step"),
    ]
    passes = number_changes(keys, owner, *by_pass)
    passes[~keys.select(in_replay | (pl.col("step") >= 0)).to_series().to_numpy()] = _NONE
    return passes


def _in_passes(launches: "LaunchEvidence", rows: KernelRows, chosen: Codes, role: Codes) -> pl.DataFrame:
    """By neighbours: groups are of one kernel and sizes between the same two roles; the place is the how-manieth.

    Without modules, nothing else shows that two products have the same work.
    """
    passes = _passes(launches, rows)[chosen]
    if (passes == _NONE).any():
        chosen, passes = chosen[passes != _NONE], passes[passes != _NONE]
    like = _Like(rows, role)
    group = np.empty(len(chosen), dtype=np.int64)
    for part in batches(len(chosen)) if like.fits else [slice(None)]:
        group[part] = -2 - _packed(*like.of(chosen[part]), extents=like.extents)  # apart from those by module
    place = np.empty(len(group), dtype=np.int32)
    for part in whole_groups(passes):  # they are counted up
        place[part] = _how_manieth(_packed(passes[part], group[part]))
    del passes
    return _frame(rows, chosen, group, place)


def _how_manieth(values: Ints) -> Codes:
    """Of each value, how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    key = values[order]
    first = first_rows(key).astype(np.int32)
    found = np.empty(len(key), dtype=np.int32)
    found[order] = np.arange(len(key), dtype=np.int32) - np.repeat(first, np.diff(first, append=len(key)))
    return found


class _Like:
    """What launches of a group have in common: lane, role before, kernel, role behind, and sizes but for a remainder.

    `extents`: the least and the most of each; `fits`: a number has room for all combinations.
    """

    def __init__(self, rows: KernelRows, role: Codes) -> None:
        self._rows, self._role = rows, role
        self._hash = rows.work["shape_hash"].to_numpy()
        of_role = (_NONE, int(role.max(initial=0)))
        lane, kernel = ((0, int(codes.max(initial=0))) for codes in (rows.lane, rows.kernel))
        self.extents = (lane, of_role, kernel, of_role, (0, _SHAPES - 1))
        self.fits = _combinations(self.extents) <= _LARGEST

    def of(self, chosen: Codes) -> tuple[Codes, Codes, Codes, Codes, Codes]:
        """Of these rows. A launch has none before it where its stretch begins, and none behind it where that ends."""
        begins, role, last = self._rows.begins, self._role, len(self._role) - 1
        behind = np.minimum(chosen + 1, last)
        return (
            self._rows.lane[chosen],
            np.where(begins[chosen], np.int32(_NONE), role[chosen - 1]),
            self._rows.kernel[chosen],
            np.where(begins[behind] | (chosen == last), np.int32(_NONE), role[behind]),
            (self._hash[chosen] % _SHAPES).astype(np.int32),  # unlike ones seldom meet in one
        )


def _frame(rows: KernelRows, chosen: Ints | Codes, group: Ints, place: NDArray[np.integer[Any]]) -> pl.DataFrame:
    own = {"dur_ns": rows.dur_ns[chosen], "after_pause": rows.begins[chosen]}
    numbers = {"row": chosen.astype(np.int32, copy=False), "group": group, "place": place.astype(np.int32, copy=False)}
    return pl.DataFrame({**numbers, **own})


def _modules(sites: pl.DataFrame) -> tuple[Ints, Ints]:
    """A number of the module and of its pooled path for each node, -1 where it is in no layer; the root's is last."""
    is_layered = pl.col("module").ne_missing(pl.col("module_pooled")) & pl.col("module_pooled").is_not_null()
    found = [
        sites.select(pl.when(is_layered).then(name).rank("dense").cast(pl.Int64).fill_null(_NONE))[name].to_numpy()
        for name in ("module", "module_pooled")
    ]
    module, pooled = (np.append(each, _NONE) for each in found)
    return module, pooled


def _packed(*parts: Ints | Codes, extents: Extents = ()) -> Ints:
    """One number for each combination. `extents`: from where to where each part may be, if others are packed alike."""
    packed = np.zeros(len(parts[0]), dtype=np.int64)
    if not len(packed):
        return packed
    extents = extents or [(int(part.min()), int(part.max())) for part in parts]
    if _combinations(extents) > _LARGEST:
        parts = tuple(np.unique(part, return_inverse=True)[1] for part in parts)
        extents = [(0, int(part.max())) for part in parts]
    for part, (least, most) in zip(parts, extents, strict=True):
        packed *= most - least + 1
        packed += part
        packed -= least
    return packed


def _combinations(extents: Extents) -> int:
    return prod(most - least + 1 for least, most in extents)


def _place(rows: KernelRows, sites: pl.DataFrame, odd: _Odd) -> str:
    """`in model.layers.7.mlp`, or `at the 7th of 36 like places in a pass`."""
    node = int(rows.node[odd.row])
    module = sites["module"][node] if node >= 0 else None
    nth = f"at the {_ordinal(odd.place + 1)} of {odd.places:,} like places in a pass"
    return nth if module is None else f"in {module}"


def _ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{'th' if number % 100 in (11, 12, 13) else ends.get(number % 10, 'th')}"


def _sentence(rows: KernelRows, sites: pl.DataFrame, odd: _Odd) -> str:
    own, usual = (rows.known[rows.kernel[row]].short_name for row in (odd.row, odd.usual))
    instead = f", where the usual is {usual}," if own != usual else ""
    node = int(rows.node[odd.row])
    called = next((sites[name][node] for name in ("user_frame", "op") if node >= 0 and sites[name][node]), None)
    by = f", launched by {called}" if called else ""
    times = "1 launch" if odd.count == 1 else f"{odd.count:,} launches"
    first = f", {odd.after_pause:,} of them the first after a pause of the stream" if odd.after_pause else ""
    return (
        f"{own}{instead} {_place(rows, sites, odd)}: {odd.ratio:.2f}x the median of all {odd.places:,}; "
        f"{times}{first}, {format_duration(odd.total_ns)} in all{by}."
    )


def _next(rows: KernelRows, odd: _Odd, *, is_once: bool) -> str:
    if is_once:
        return "Record more passes: so few slow launches may be chance."
    if rows.kernel[odd.row] != rows.kernel[odd.usual]:
        return "See why another kernel was chosen there: shapes, strides and alignment of its inputs."
    return "Compare the inputs there with those of another place: shapes, strides, where they lie in memory."


RULE = Rule("slow_sibling", _find, (_SCALE,))
