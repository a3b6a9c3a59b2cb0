"""A run as matrices: the time and calls of each function in each unit that is resampled.

A unit is a complete cycle. Where a window of launches has no cycles, it is a stretch of each function's launches, and
where only sums are known there is none. Rows beyond the functions make the step whole: from launches `idle` and
`overlap` (negative: moments with two launches count in both), else what is not on the device. Functions of the host
run on another clock, at the same moments as the device's, so they are no part of that sum.
"""

from functools import cached_property, lru_cache
from typing import Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.compare.activity.activity import HOST, LANE, OWNER, Activity
from inferometer.analyses.comparison_limits import BLOCKS, RESAMPLES, SEED, UNITS

Values = NDArray[np.float64]
IDLE, OVERLAP, REST = "idle", "overlap", "not on the device"
Account = Literal["idle", "rest", "sums"]
REMAINDERS = (IDLE, OVERLAP, REST)
_CONFIDENCE = 0.975  # each side of an interval of 95 %
_NORMAL = 1.959963984540054


class Units(msgspec.Struct, frozen=True, dict=True):
    """`functions`: `function` and `cls`, one row for each row of the matrices. F functions, U units.

    `dur`, `calls`: sums over lanes, shape (F, U). `cost`: of collectives without waiting, NaN of what never waits.
    `lanes`, `owners`: lanes and processes that have the unit, shape (U,). `count`: units that a row has, the first
    ones, shape (F,). `spread`: deviation of one call where only sums are known. `windowed`: units are stretches of
    launches, and one step is the whole.
    """

    functions: pl.DataFrame
    dur: Values
    calls: Values
    cost: Values
    count: NDArray[np.int64]
    spread: Values
    lanes: Values
    owners: Values
    windowed: bool

    @cached_property
    def per_step(self) -> pl.DataFrame:
        """`functions` with `dur_ns`, `calls` and `cost_ns` a step, on the mean over steps; zeros count."""
        n = self._steps
        return self.functions.with_columns(
            pl.Series("dur_ns", self.dur.sum(1) / n, dtype=pl.Float64),
            pl.Series("calls", self.calls.sum(1) / n, dtype=pl.Float64),
            pl.Series("cost_ns", self.cost.sum(1) / n, dtype=pl.Float64).fill_nan(None),
        )

    @property
    def steps(self) -> int:
        """Complete steps of all lanes."""
        return int(self.lanes.sum())

    @property
    def added(self) -> NDArray[np.bool_]:
        """Which rows add up to the step."""
        return (self.functions["cls"] != HOST).to_numpy()

    @cached_property
    def _steps(self) -> Values:
        return np.asarray(np.maximum(np.where(self.added, self.lanes.sum(), self.owners.sum()), 1))

    def resample(self, values: Values, *, salt: int | None = None) -> Values:
        """Sums per step of resampled units, shape (F, RESAMPLES); NaN where fewer than two units are known.

        Deviations are widened by what few units hide: n / (n - 1), and Student's t. The weights depend only on the
        number of units, so two runs with as many are resampled in pairs, which costs nothing where they are unrelated
        and gains where both did the same work in the same order. With `salt`, another one for each run, printed sums
        vary as their calls are known to.
        """
        draws = np.full((values.shape[0], RESAMPLES), np.nan)
        means = values.sum(1) / self._steps
        for count in np.unique(self.count[self.count > 1]).tolist():
            rows = np.flatnonzero(self.count == count)
            weights = resampling(count)
            sums = values[rows, :count] @ weights
            of = self.calls[rows, :count] if self.windowed else np.where(self.added, 1.0, 0.0)[rows, None]
            if self.windowed:  # as many calls as there were, each as long as those drawn
                n = of @ weights / np.maximum(of.sum(1, keepdims=True), 1) * self._steps[rows, None]
            else:
                n = np.where(of > 0, self.lanes @ weights, self.owners @ weights)
            drawn = sums / np.maximum(n, np.finfo(float).tiny)
            centre = means[rows, None]
            draws[rows] = centre + (drawn - centre) * widening(count)
        known = np.flatnonzero(np.isfinite(self.spread) & (self.count < 2))
        if salt is not None and len(known):
            noise = np.random.default_rng((SEED, salt)).standard_normal((len(known), RESAMPLES))
            deviation = self.spread[known] * np.sqrt(self.calls[known].sum(1)) / self._steps[known]
            draws[known] = means[known, None] + noise * deviation[:, None]
        return draws

    @cached_property
    def log_calls(self) -> Values:
        """Logarithm of the mean time of a call in each unit, shape (F, U); NaN where there was none."""
        some = (self.calls > 0) & (self.dur > 0)
        return np.asarray(np.log(np.where(some, self.dur, np.nan) / np.where(some, self.calls, np.nan)))

    @property
    def widened(self) -> Values:
        """By how much each row's deviations were widened; NaN where no two units are known."""
        factors = {count: widening(count) for count in np.unique(self.count).tolist() if count > 1}
        return np.array([factors.get(count, np.nan) for count in self.count.tolist()])


@lru_cache(maxsize=BLOCKS)
def resampling(count: int) -> Values:
    """How often each of `count` units is drawn in each sample, shape (count, RESAMPLES)."""
    rng = np.random.default_rng((SEED, count))
    return rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).T.astype(np.float64)


def widening(count: int) -> float:
    """What a bootstrap of `count` units underrates deviations by."""
    from scipy.special import stdtrit

    return float(np.sqrt(count / (count - 1)) * stdtrit(count - 1, _CONFIDENCE) / _NORMAL)


def units_of(activity: Activity, account: Account | None = None) -> Units:
    """The matrices of a run.

    Args:
        activity: The run.
        account: What a step is made of besides functions; by default all that the run says.
    """
    account = account or own_account(activity)
    whole = activity.cycles.filter("complete")
    cycles = whole["cycle"].unique().sort()
    if activity.blocks.height and len(cycles) == 1:
        return _of_blocks(activity, whole, account)
    return _of_cycles(activity, whole, cycles, account)


def own_account(activity: Activity) -> Account:
    """What the run says of a step besides its functions."""
    accounts: dict[str, Account] = {"launches": "idle", "function_times": "rest"}
    return accounts.get(activity.basis, "sums")


def common_account(base: Activity, candidate: Activity) -> Account:
    """What both runs say of a step besides their functions. An empty run shows whatever the other does."""
    stated = {own_account(run) for run in (base, candidate) if not run.is_empty} or {"sums"}
    return stated.pop() if len(stated) == 1 else "sums" if "sums" in stated else "rest"


def _of_cycles(activity: Activity, whole: pl.DataFrame, cycles: pl.Series, account: Account) -> Units:
    folded = -(-len(cycles) // UNITS) if len(cycles) else 1
    unit = pl.DataFrame(
        {"cycle": cycles, "unit": np.arange(len(cycles)) // folded}, schema_overrides={"unit": pl.Int64}
    )
    n = -(-len(cycles) // folded)
    on_host = pl.col("cls") == HOST
    device = activity.functions.filter(~on_host).join(whole, on=["cycle", *LANE], how="semi", nulls_equal=True)
    host = activity.functions.filter(on_host).join(whole, on=["cycle", *OWNER], how="semi", nulls_equal=True)
    rows = pl.concat([device, host])
    sums = (
        rows.join(unit, on="cycle")
        .group_by("function", "cls", "unit")
        .agg(
            pl.col("dur_ns", "calls").sum(),
            pl.when(pl.col("cost_ns").is_not_null().any()).then(pl.col("cost_ns").fill_null(pl.col("dur_ns")).sum()),
            pl.col("spread_ns").first(),
        )
    )
    names, dur, calls, cost = _matrices(sums, n)
    spread = names.join(
        sums.group_by("function", "cls").agg(pl.col("spread_ns").first()),
        on=["function", "cls"],
        how="left",
        maintain_order="left",
    )["spread_ns"]
    of_lanes = whole.join(unit, on="cycle")
    lanes = _per_unit(of_lanes.group_by("unit").agg(pl.len().alias("n")), "n", n)
    owners = _per_unit(of_lanes.unique(["cycle", *OWNER]).group_by("unit").agg(pl.len().alias("n")), "n", n)
    units = Units(
        names,
        dur,
        calls,
        cost,
        np.full(names.height, n),
        spread.fill_null(np.nan).to_numpy(),
        lanes,
        owners,
        windowed=False,
    )
    times = of_lanes.group_by("unit").agg(pl.col("dur_ns", "idle_ns", "overlap_ns").sum())
    idle, overlap, step = (_per_unit(times, column, n) for column in ("idle_ns", "overlap_ns", "dur_ns"))
    if account == "idle":
        return _with_rows(units, {IDLE: idle, OVERLAP: -overlap})
    return _with_rows(units, {REST: step - dur[units.added].sum(0)} if account == "rest" else {})


def _of_blocks(activity: Activity, whole: pl.DataFrame, account: Account) -> Units:
    is_added = pl.col("cls").is_in([IDLE, OVERLAP])
    blocks = activity.blocks if account == "idle" else activity.blocks.filter(~is_added)
    signed = pl.when(pl.col("cls") == OVERLAP).then(-pl.col("dur_ns")).otherwise("dur_ns").alias("dur_ns")
    names, dur, calls, cost = _matrices(blocks.with_columns(signed, pl.col("block").alias("unit")), BLOCKS)
    count = (calls > 0).sum(1)
    lanes = np.array([float(whole.height)])
    owners = np.array([float(whole.unique(OWNER).height)])
    units = Units(names, dur, calls, cost, count, np.full(names.height, np.nan), lanes, owners, windowed=True)
    rows = {name: np.zeros(BLOCKS) for name in (IDLE, OVERLAP) if account == "idle" and name not in names["cls"]}
    if account == "rest":
        rows[REST] = np.zeros(BLOCKS)
        rows[REST][0] = int(whole["idle_ns"].sum()) - int(whole["overlap_ns"].sum())
    return _with_rows(units, rows)


def _matrices(sums: pl.DataFrame, n: int) -> tuple[pl.DataFrame, Values, Values, Values]:
    names = sums.select("function", "cls").unique().sort("cls", "function").with_row_index("row")
    placed = sums.join(names, on=["function", "cls"])
    at = placed["row"].to_numpy(), placed["unit"].to_numpy()
    dur, calls, cost = (np.zeros((names.height, n)) for _ in range(3))
    dur[at] = placed["dur_ns"].to_numpy()
    calls[at] = placed["calls"].to_numpy()
    cost[at] = placed["cost_ns"].fill_null(placed["dur_ns"]).to_numpy()
    waits = placed.filter(pl.col("cost_ns").is_not_null())["row"].unique()
    cost[~np.isin(np.arange(names.height), waits.to_numpy())] = np.nan
    return names.drop("row"), dur, calls, cost


def _per_unit(frame: pl.DataFrame, column: str, n: int) -> Values:
    values = np.zeros(n)
    values[frame["unit"].to_numpy()] = frame[column].fill_null(0).to_numpy()
    return values


def _with_rows(units: Units, rows: dict[str, Values]) -> Units:
    """With remainders of the step as further rows, called once per step."""
    if not rows:
        return units
    names = pl.DataFrame({"function": list(rows), "cls": list(rows)})
    added = np.stack(list(rows.values()))
    nothing = np.full(added.shape, np.nan)
    once = np.zeros(added.shape) if units.windowed else np.tile(units.lanes, (len(rows), 1))
    count = np.zeros(len(rows), dtype=np.int64) if units.windowed else np.full(len(rows), added.shape[1])
    return Units(
        pl.concat([units.functions, names]),
        np.concatenate([units.dur, added]),
        np.concatenate([units.calls, once]),
        np.concatenate([units.cost, nothing]),
        np.concatenate([units.count, count]),
        np.concatenate([units.spread, np.full(len(rows), np.nan)]),
        units.lanes,
        units.owners,
        units.windowed,
    )
