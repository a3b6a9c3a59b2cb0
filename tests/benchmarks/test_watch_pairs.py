"""Labelled pairs as streams: what is counted, what is right, and why a bar is missed."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks.watch_pairs import (
    SAMPLES,
    STEPS,
    Row,
    in_folder,
    joined,
    judge,
    of_pair,
    pair_bars,
    pairs_table,
    published,
    watch_labelled,
)

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
    begin = len(normal) - row.early
    assert row.early_times == pytest.approx(np.median(normal[begin:]) / np.median(normal[:begin]))
    assert f"{row.early} steps before the fault" in row.why_not


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
    rows += [_row(counts=False)] * 5
    bars = pair_bars(rows)
    assert bars[f"labelled pairs: alarm within 30 steps in 9 of 10 ({10 - late} of 10)"] is holds
    assert bars[f"labelled pairs: cause first in 9 of 10 ({10 - late} of 10)"] is holds
    assert bars["labelled pairs: no alarm outside of the faults (0)"]
    assert not bars["labelled pairs: each end seen"]


def test_the_table_has_every_row_and_why_it_misses_a_bar() -> None:
    rows = [
        _row(steps=31, dated=0, cause="disk_util", judged="right", recovered=True),
        _row(name="sleep", times=1.04, counts=False, why_not="no alarm"),
        _row(name="gpu", times=None, why_not="no times", false_alarms=2),
        _row(name="cpu_stop", steps=4, dated=-2, cause="host time", judged="wrong", said="host time. So it is."),
    ]
    text = "\n".join(pairs_table([asdict(row) for row in rows]))
    assert text.splitlines()[2] == "| disk | CPU, a pair | 2.00 | 31 | +0 steps | disk_util, right | yes |"
    assert "| sleep (not counted) | CPU, a pair | 1.04 | none | - | - | - |" in text
    assert "- disk, CPU, a pair: the alarm came after 31 steps." in text
    assert "steps took 1.04 times as long, 1.1 times are counted; no alarm." in text
    assert "- gpu, CPU, a pair: no times; 2 more outside of the fault." in text
    assert "- cpu_stop, CPU, a pair: what was said: host time. So it is." in text


def test_published_pairs_are_rows_that_say_why_they_can_t_be_judged(shared_data: Path) -> None:
    rows = {row.name: row for row in published(shared_data / "latencyprism")}
    assert {name: row.steps for name, row in rows.items()} == {"cpu_frequency_reduction": None, "gpu_instability": None}
    assert all(row.counts for row in rows.values())
    for row in rows.values():
        assert "30 are learned from before any is judged" in row.why_not


def test_recordings_without_steps_are_refused(tmp_path: Path) -> None:
    (tmp_path / "normal.csv").write_text("start_us,duration_us,stream,kernel\n")
    with pytest.raises(InputError):
        joined(tmp_path / "normal.csv")
