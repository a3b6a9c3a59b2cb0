"""What a run's counters say: one series per metric and device, one value per tick, with the tick's time.

Values of a device are taken from `function_metrics` where it has them: it alone tells devices apart in some sources,
while all functions of a cycle share one value there. Host values come from `counters`: the samples of one tick are one
value, the median of cores, the sum of network cards. Of GPUs that the source pools the program's own counts, where that
is known (`own_gpu`); the most harmful of all is kept, too, and is mostly that of an idle one. What others use of a
resource is the whole less the process's own part.
"""

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.activity.activity import HOST
from inferometer.analyses.compare.causes.metric_roles import (
    DISK_GROWTH,
    OTHERS_CPU,
    OTHERS_GPU,
    RUN_QUEUE,
    MetricRole,
    role_of_metric,
)
from inferometer.analyses.compare.causes.own_gpu import own_sample_times
from inferometer.analyses.compare.causes.resampling import Values
from inferometer.analyses.compare.causes.ticks import Times, tick_starts
from inferometer.trace.trace import Trace

POOLED, OWN, BY_CYCLE = "gpus", "own gpu", "host by cycle"
_SERIES = ["metric", "device", "unit", "process"]


class Entity(msgspec.Struct, frozen=True):
    """A metric of a device, one value per tick.

    `device` is `host`, `gpu:7`, `own gpu` (of samples that must be of the program's GPU), or `gpus`: the most harmful
    of all, where the source doesn't say of which. `host by cycle` is what functions say of a metric of the host that
    is sampled, too: the other run may have it in that unit alone.

    `times_ns` has the shape of `values`, (n,): when a tick's first sample was taken, or when the cycle that a value is
    of began, on the trace's clock. None where the source doesn't say for each.
    """

    metric: str
    device: str
    unit: str | None
    values: Values
    times_ns: Times | None = None

    @property
    def role(self) -> MetricRole:
        """What the metric is to a slower run."""
        return role_of_metric(self.metric)

    @property
    def key(self) -> tuple[str, str]:
        """What it is matched by between runs; processes have other numbers there."""
        return self.metric, self.device


def find_entities(trace: Trace) -> list[Entity]:
    """All series of the run at every granularity that it has, sorted by metric and device."""
    resolved, sampled = _from_functions(trace), _from_counters(trace)
    host = {entity.metric for entity in sampled if entity.device == HOST}
    found = [
        replace(entity, device=BY_CYCLE) if entity.device == HOST and entity.metric in host else entity
        for entity in resolved
    ]
    keys = {entity.key for entity in found}
    found += [entity for entity in sampled if entity.key not in keys]
    found += _others(found, _cores(trace)) + _run_queue(trace) + _disk_growth(trace)
    return sorted(found, key=lambda entity: entity.key)


def _from_functions(trace: Trace) -> list[Entity]:
    """One value per cycle in which the device's metric was sampled: the median over functions."""
    frame = trace.function_metrics.filter(pl.col("mu").is_not_null() & pl.col("mu").is_finite())
    by_cycle = frame.group_by(*_SERIES, "cycle").agg(pl.col("mu").median())
    timed = _with_starts(by_cycle, trace, ["process", "cycle"]).sort("cycle")
    series = timed.group_by(_SERIES, maintain_order=True).agg("mu", "start_ns").collect()
    return _one_each(
        [
            Entity(row["metric"], row["device"], row["unit"], np.asarray(row["mu"]), _all_known(row["start_ns"]))
            for row in series.to_dicts()
        ]
    )


def _with_starts(cycles: pl.LazyFrame, trace: Trace, by: list[str]) -> pl.LazyFrame:
    """`cycles` with `start_ns`; null where the source's steps are not these cycles, or have no times."""
    if "steps" not in trace.scope:
        return cycles.with_columns(pl.lit(None, dtype=pl.Int64).alias("start_ns"))
    steps = trace.steps.select("process", pl.col("step").alias("cycle"), "start_ns")
    starts = steps.group_by(by).agg(pl.col("start_ns").min())
    return cycles.join(starts, on=by, how="left", nulls_equal=True)


def _all_known(times_ns: list[int | None]) -> Times | None:
    return None if None in times_ns else np.array(times_ns, dtype=np.int64)


def _from_counters(trace: Trace) -> list[Entity]:
    frame = trace.counters.filter(pl.col("value").is_not_null() & pl.col("value").is_finite())
    series = frame.sort("time_ns").group_by(_SERIES, maintain_order=True).agg("time_ns", "value").collect()
    own = np.array(sorted(own_sample_times(trace)), dtype=np.int64)
    found = []
    for row in series.to_dicts():
        is_device = row["metric"].lower().startswith(("gpu_", "container_gpu", "process_gpu"))
        device = row["device"] or (POOLED if is_device else HOST)
        samples = Entity(row["metric"], device, row["unit"], np.asarray(row["value"]))
        times_ns = np.asarray(row["time_ns"])
        found.append(_by_tick(samples, times_ns))
        is_own = np.isin(times_ns, own)
        if device == POOLED and is_own.any():
            of_own = replace(samples, device=OWN, values=samples.values[is_own])
            found.append(_by_tick(of_own, times_ns[is_own]))
    return _one_each(found)


def _one_each(entities: list[Entity]) -> list[Entity]:
    """One series a metric and device: of several processes the longest, to which the others' own use is added."""
    found: dict[tuple[str, str], list[Entity]] = {}
    for entity in entities:
        found.setdefault(entity.key, []).append(entity)
    return [_joined(sorted(some, key=lambda entity: -len(entity.values))) for some in found.values()]


def _joined(entities: list[Entity]) -> Entity:
    longest, *rest = entities
    if not longest.metric.startswith("process_"):
        return longest
    more = sum(float(np.median(entity.values)) for entity in rest if len(entity.values))
    return replace(longest, values=longest.values + more)


def _by_tick(samples: Entity, times_ns: Times) -> Entity:
    """One value for each burst of samples; single samples at regular times stay what they are."""
    begins = tick_starts(times_ns)
    if len(begins) == len(times_ns):
        return replace(samples, times_ns=times_ns)
    bursts = np.split(samples.values, begins[1:])
    if samples.role.cause_class == "network":  # of several cards, all of them
        cards = int(np.median([len(burst) for burst in bursts]))
        whole = [len(burst) == cards for burst in bursts]
        bursts, begins = [burst for burst in bursts if len(burst) == cards], begins[whole]
    values = np.array([_of_burst(samples, burst) for burst in bursts])
    return replace(samples, values=values, times_ns=times_ns[begins])


def _of_burst(samples: Entity, burst: Values) -> float:
    if samples.role.cause_class == "network":
        return float(burst.sum())
    if samples.device != POOLED:
        return float(np.median(burst))
    return float(burst.min() if samples.role.harmful == "down" else burst.max())


def _disk_growth(trace: Trace) -> list[Entity]:
    """How fast the host's disks fill up, bytes/s from tick to tick: what was written and stays there."""
    used = trace.counters.filter((pl.col("metric") == "disk_used") & pl.col("value").is_finite())
    samples = used.select("time_ns", "value").sort("time_ns").collect()
    time_ns, values = samples["time_ns"].to_numpy(), samples["value"].to_numpy()
    begins = tick_starts(time_ns)
    sizes = np.diff(np.append(begins, len(time_ns)))
    whole = begins[sizes == np.median(sizes)] if len(begins) else begins
    if len(whole) < 3:
        return []
    disks = int(np.median(sizes))
    sums = np.array([values[at : at + disks].sum() for at in whole])
    rates = np.diff(sums) / (np.diff(time_ns[whole]) / 1e9)
    return [Entity(DISK_GROWTH, HOST, "B/s", np.maximum(rates, 0.0), time_ns[whole[1:]])]


def _cores(trace: Trace) -> int | None:
    """Processors of the host, as many as share a sample of the clock; None where not known."""
    ticks = trace.counters.filter(pl.col("metric") == "cpu_frequency").group_by("time_ns").len().collect()
    most = ticks["len"].median() if ticks.height else None
    return int(most) if isinstance(most, int | float) and most > 1 else None


def _others(entities: list[Entity], cores: int | None) -> list[Entity]:
    """Load by others, of the host and of each device: the whole less the process's own, at the same ticks."""
    known = {entity.key: entity for entity in entities}
    found = []
    for whole, own, name in (
        ("host_cpu_usage", "process_cpu_usage", OTHERS_CPU),
        ("gpu_usage", "process_gpu_usage", OTHERS_GPU),
    ):
        for metric, device in list(known):
            part = known.get((own, device))
            if metric != whole or part is None or device in (POOLED, OWN, BY_CYCLE):
                continue
            used = _of_whole(part, cores)
            if used is not None and len(used):
                load = known[metric, device].values - np.median(used)
                found.append(replace(known[metric, device], metric=name, values=np.maximum(load, 0.0)))
    return found


def _of_whole(own: Entity, cores: int | None) -> Values | None:
    """The process's share in percent of the whole host or device; None where its unit can't be converted."""
    if own.unit == "% of one core":
        return own.values / cores if cores else None
    return own.values


def _run_queue(trace: Trace) -> list[Entity]:
    """The share of time in which threads could run but waited for a processor, one value per cycle."""
    frame = trace.function_times.filter(pl.col("class").is_in(["oncpu", "runq"]))
    waits = pl.col("dur_ns").filter(pl.col("class") == "runq").sum()
    share = frame.group_by("cycle").agg((waits / pl.col("dur_ns").sum()).alias("share"))
    known = _with_starts(share, trace, ["cycle"]).sort("cycle").collect().drop_nulls("share").drop_nans("share")
    values, times_ns = known["share"].to_numpy(), _all_known(known["start_ns"].to_list())
    return [Entity(RUN_QUEUE, HOST, None, values, times_ns)] if len(values) and values.max() > 0 else []
