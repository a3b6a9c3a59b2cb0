"""Labelled pairs as streams: what is counted, what is right, and why a bar is missed."""

import json
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.watch import of_recorded_steps
from benchmarks.watch_pairs import (
    SAMPLES,
    STEPS,
    Row,
    in_folder,
    joined,
    judge,
    of_pair,
    others_cores,
    published,
    watch_labelled,
)
from benchmarks.watch_pairs_page import of_all, pair_bars, pairs_table
from benchmarks.watch_planted import normal_steps, plant
from benchmarks.watch_shuffled import Longer, find_longer

from inferometer.errors import InputError
from inferometer.formats.opening import open_trace
from inferometer.trace.store import read_store
from inferometer.watch.cause import Why
from inferometer.watch.recorded import steps_of

QUOTA = SAMPLES / "recorded" / "cpu_quota"


def _row(**given: object) -> Row:
    row = {"name": "disk", "kind": "CPU, a pair", "times": 2.0, "counts": True, **given}
    return Row(**row)  # type: ignore[arg-type]


def test_a_joined_pair_holds_the_steps_of_both_and_nothing_between_them() -> None:
    runs = [QUOTA / "normal.ifm", QUOTA / "fault.ifm"]
    trace = joined(*runs)
    took = [step.dur_ns for run in runs for step in steps_of(open_trace(str(run)))]
    steps = steps_of(trace)
    assert [step.dur_ns for step in steps] == took
    lengths = []
    for run in runs:
        own = steps_of(read_store(run))
        lengths.append(max(step.end_ns for step in own) - min(step.start_ns for step in own))
    counters = trace.counters.collect()
    assert steps[0].start_ns == 0
    assert steps[-1].end_ns == sum(lengths) + 1_000_000
    assert 0 <= counters["time_ns"].min() <= counters["time_ns"].max() < steps[-1].end_ns  # type: ignore[operator]


def test_a_fault_is_dated_apart_from_the_slower_end_of_the_normal_run() -> None:
    truth = json.loads((QUOTA / "truth.json").read_text())
    truth = {**truth, "verdicts": [truth["verdict"]], "causes": [truth["cause"]]}
    normal, fault = (
        np.array([step.dur_ns for step in steps_of(open_trace(str(QUOTA / f"{run}.ifm")))])
        for run in ("normal", "fault")
    )
    (row,) = watch_labelled(of_pair(QUOTA / "normal.ifm", QUOTA / "fault.ifm", truth, "cpu_quota", "a pair"))
    assert row.times == pytest.approx(fault.mean() / normal.mean())
    assert row.counts
    assert row.steps is not None
    assert row.steps <= STEPS
    assert (row.dated, row.cause, row.judged, row.recovered) == (0, "cpu_limited_share", "right", True)
    before, after = row.outside
    begin = len(normal) - before.steps
    assert before.times == pytest.approx(np.median(normal[begin:]) / np.median(normal[:begin]))
    assert before.is_real
    assert after.is_real
    half = normal[begin:].mean() - normal[:begin].mean()
    assert half > 5 * normal[:begin].std() / np.sqrt(before.steps)  # by another way: the means


def test_a_toggled_run_is_slow_where_the_fault_was() -> None:
    (stream,) = in_folder(SAMPLES)
    truth = json.loads((SAMPLES / "on_and_off" / "truth.json").read_text())
    is_slow = np.zeros(len(stream.steps), dtype=bool)
    for on_ns, off_ns in truth["slow_ns"]:
        is_slow |= [step.end_ns >= on_ns and step.start_ns < off_ns for step in stream.steps]
    assert [number for first, end in stream.slow for number in range(first, end)] == np.flatnonzero(is_slow).tolist()
    first, second = watch_labelled(stream)
    assert (first.name, second.name) == ("cpu_contention", "cpu_contention, 2")
    assert first.judged == second.judged == "right"
    assert first.is_soon
    assert second.is_soon


@pytest.mark.parametrize(("parallel", "is_slow_known"), [("", True), ("while True: pass", False)])
def test_a_recording_counts_by_what_other_programs_used(parallel: str, *, is_slow_known: bool) -> None:
    (stream,) = in_folder(SAMPLES)
    stream = replace(stream, truth={**stream.truth, "parallel": parallel})
    samples = stream.trace.counters.filter(pl.col("metric") == "others_cpu_usage").collect()
    is_slow = np.zeros(samples.height, dtype=bool)
    is_normal = is_slow.copy()
    begin = 0
    for first, end in [*stream.slow, (len(stream.steps), 0)]:
        bounds = stream.steps[begin].start_ns, stream.steps[first - 1].end_ns
        is_normal |= samples["time_ns"].is_between(*bounds).to_numpy()
        if end:
            bounds = stream.steps[first].start_ns, stream.steps[end - 1].end_ns
            is_slow |= samples["time_ns"].is_between(*bounds).to_numpy()
        begin = end
    two_cores = samples["value"].to_numpy() / 50
    assert two_cores[is_normal].mean() < 0.25 < 1 < two_cores[is_slow].mean()
    assert stream.others == pytest.approx(two_cores[is_slow if is_slow_known else is_normal].mean(), rel=0.01)
    assert all(stream.counts(slow) is not is_slow_known for slow in stream.slow)
    assert others_cores(stream.trace, [(-2, -1)]) is None


@pytest.mark.parametrize(
    ("verdict", "metric", "sentence", "judged"),
    [
        ("cause named", "others_disk_write", "", "right"),
        ("cause named", "cpu_stopped", "", "wrong"),
        ("host time", None, "between linear and sample", "right"),
        ("host time", None, "between linear and norm", "unnamed"),
        ("software change", None, "sample", "wrong"),
        ("too few samples", None, "sample", "unnamed"),
    ],
)
def test_right_is_what_was_done(verdict: str, metric: str | None, sentence: str, judged: str) -> None:
    truth = {"verdicts": ["cause named", "host time"], "causes": ["disk"], "names": "sample"}
    assert judge(truth, Why(verdict, "slower", sentence, metric, None)) == judged
    assert judge(truth, None) == "unnamed"


@pytest.mark.parametrize(("late", "holds"), [(1, True), (2, False)])
def test_bars_are_of_the_rows_that_count(late: int, holds: bool) -> None:
    rows = [_row(steps=30, judged="right", recovered=True)] * (10 - late) + [_row(steps=31, judged="wrong")] * late
    loaded = {"others": 0.98, "counts": False}
    rows += [_row(counts=False)] * 5 + [_row(steps=3, outside=(Longer(40, 1.01, 0.5),), **loaded)]
    bars = pair_bars(rows)
    assert bars[f"labelled pairs: alarm within 30 steps in 9 of 10 ({10 - late} of 10)"] is holds
    assert bars[f"labelled pairs: cause first in 9 of 10 ({10 - late} of 10)"] is holds
    assert bars["labelled pairs: no alarm on normal steps (0; 0 on steps that were slower without a fault)"]
    assert not bars["labelled pairs: each end seen"]


def test_the_table_has_every_row_and_why_it_misses_a_bar() -> None:
    rows = [
        _row(steps=31, dated=0, cause="disk_util", judged="right", recovered=True),
        _row(name="sleep", times=1.04, others=0.98, counts=False, why_not="no alarm"),
        _row(name="gpu", times=None, why_not="no times", outside=(Longer(40, 1.1, 0.0001), Longer(40, 1.01, 0.5))),
        _row(name="cpu_stop", steps=4, dated=-2, cause="host time", judged="wrong", said="host time. So it is."),
    ]
    text = "\n".join(pairs_table([asdict(row) for row in rows]))
    assert text.splitlines()[2] == "| disk | CPU, a pair | - | 2.00 | 31 | +0 steps | disk_util, right | yes |"
    assert "| sleep (not counted) | CPU, a pair | 0.98 | 1.04 | none | - | - | - |" in text
    assert "- disk, CPU, a pair: the alarm came after 31 steps." in text
    assert (
        "1.04 times as long, 1.1 times are counted; other programs used 0.98 cores, 0.25 are counted; no alarm." in text
    )
    every = of_all([asdict(row) for row in [*rows, _row(others=0.98, counts=False, steps=30, judged="right")]])
    assert every.startswith("Of all 4 whose steps took 1.1 times as long or more")
    assert every.endswith("alarm within 30 steps in 2, cause first in 2; alarms on normal steps: 1; 1 of 3 ends seen.")
    assert (
        "- gpu, CPU, a pair: no times; one more alarm, slower without the fault: 40 steps took 1.10 times as long as "
        "the other normal ones (by chance: 0.0001); one more alarm, a false alarm: 40 steps took 1.01 times as long as "
        "the other normal ones (by chance: 0.5000)." in text
    )
    assert (
        pair_bars(rows)["labelled pairs: no alarm on normal steps (1; 1 on steps that were slower without a fault)"]
        is False
    )
    assert "- cpu_stop, CPU, a pair: what was said: host time. So it is." in text


def test_published_pairs_are_rows_that_say_why_they_can_t_be_judged(shared_data: Path) -> None:
    rows = {row.name: row for row in published(shared_data / "latencyprism")}
    assert {name: row.steps for name, row in rows.items()} == {"cpu_frequency_reduction": None, "gpu_instability": None}
    assert not any(row.counts for row in rows.values())
    for row in rows.values():
        assert "30 are learned from before any is judged" in row.why_not
    cycles = {}
    for run in ("normal", "abnormal"):
        table = pl.read_csv(
            next((shared_data / "latencyprism/SGLang/cpu_frequency_reduction" / run).glob("perf_data.csv*"))
        )
        cycles[run] = table["anchor_name"].unique().to_list(), table["cycle"].n_unique()
    assert cycles["normal"][0] != cycles["abnormal"][0]
    assert f"{cycles['normal'][1]} normal steps" in rows["cpu_frequency_reduction"].why_not
    for (name,), _ in cycles.values():
        assert name in rows["cpu_frequency_reduction"].why_not
    assert "a step is" not in rows["gpu_instability"].why_not
    assert rows["gpu_instability"].times == pytest.approx(1.02, abs=0.01)


def test_recordings_without_steps_are_refused(tmp_path: Path) -> None:
    (tmp_path / "normal.csv").write_text("start_us,duration_us,stream,kernel\n")
    with pytest.raises(InputError):
        joined(tmp_path / "normal.csv")


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_steps_that_are_chosen_for_their_mean_are_not_longer_but_by_chance(alike: float) -> None:
    real = 0
    for seed in range(10):
        noise = np.random.default_rng(seed).standard_t(4, 400) * 0.03
        for at in range(1, len(noise)):
            noise[at] += alike * noise[at - 1]
        took = np.exp(noise)
        first = max(range(360), key=lambda at: took[at : at + 40].mean())
        real += find_longer(took[first : first + 40], took[:first], took[first + 40 :]).is_real
    assert real == 0


def test_steps_that_are_slower_are_longer_and_not_by_chance() -> None:
    took = np.exp(np.random.default_rng(1).standard_t(4, 400) * 0.03)
    took[200:240] *= 1.15
    found = find_longer(took[200:240], took[:200], took[240:])
    assert found.times == pytest.approx(1.15, abs=0.03)
    assert found.is_real
    assert not find_longer(took[200:240], took[:0], took[:0]).is_real


def test_a_slowdown_is_planted_in_the_last_third_of_recorded_steps() -> None:
    (steps, *_) = normal_steps(None)
    planted, first = plant(steps, 1.2)
    took, before = (np.array([step.dur_ns for step in some]) for some in (planted, steps))
    assert first == round(len(steps) * 2 / 3)
    assert took[:first].tolist() == before[:first].tolist()
    assert took[first:] == pytest.approx(before[first:] * 1.2, abs=1)
    assert all(one.end_ns == other.start_ns for one, other in pairwise(planted))


def test_of_most_recorded_samples_half_as_long_again_is_found_within_thirty_steps() -> None:
    outcomes = [one for one in of_recorded_steps(None) if one.times == 1.5]
    assert len(outcomes) >= 4
    assert all(one.steps is not None and one.steps <= STEPS for one in outcomes)
    assert not any(one.false_alarms for one in of_recorded_steps(None))
