"""Labelled pairs of runs as streams, the normal one, the faulty one, the normal one: what a watch makes of them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.watch_pairs import joined
from tests.watch.streams import run_watch

from inferometer.formats.opening import open_trace
from inferometer.trace.trace import Trace
from inferometer.watch.normal import FEWEST
from inferometer.watch.recorded import steps_of
from inferometer.watch.session import Session
from inferometer.watch.watcher import Kind, Watcher

H200 = Path(__file__).resolve().parents[2] / "samples" / "h200"


def _watched(trace: Trace, least: float) -> Session:
    session = Session(Watcher(least=least))
    session.watch(steps_of(trace))
    return session


def test_where_the_normal_run_became_slower_by_itself_the_alarm_is_dated_to_that() -> None:
    normal = open_trace(H200 / "normal.ifm")
    steps = steps_of(normal)
    took = np.array([step.dur_ns for step in steps])
    (slow, *_) = _watched(normal, 0.05).account.slowdowns
    begin = slow.alarm.step
    assert slow.alarm.steps <= 100
    assert 1.05 < np.median(took[begin:]) / np.median(took[:begin]) < 1.15
    kernels = normal.launches.filter(pl.col("kind") == "kernel").select("start_ns", "dur_ns").collect()
    at = np.searchsorted([step.start_ns for step in steps], kernels["start_ns"].to_numpy(), side="right") - 1
    computed = np.bincount(at[at >= 0], kernels["dur_ns"].to_numpy()[at >= 0], len(took))
    assert np.median(computed[begin:]) == pytest.approx(np.median(computed[:begin]), rel=0.01)
    idle = took - computed
    assert np.median(idle[begin:]) > 1.3 * np.median(idle[:begin])  # of the host, which the recorder delays


def test_a_fault_after_a_small_slowdown_is_dated_apart_within_thirty_steps_with_its_cause() -> None:
    normal = H200 / "normal.ifm"
    trace = joined(normal, H200 / "gpu_contention.ifm")
    steps, first = steps_of(trace), len(steps_of(open_trace(normal)))
    session = _watched(trace, 0.05)
    found = session.account.slowdowns[-1]
    (worse,) = found.worse
    assert abs(worse.step - first) <= 5
    assert worse.step + worse.steps <= first + 30
    assert worse.at_ns == steps[worse.step + worse.steps - 1].end_ns
    session.explain(trace)
    why = session.account.slowdowns[-1].why
    assert why is not None
    assert (why.verdict, why.metric) == ("cause named", "others_gpu_usage")


def test_where_no_less_than_a_fifth_is_looked_for_the_fault_alone_is_an_alarm() -> None:
    normal = H200 / "normal.ifm"
    trace = joined(normal, H200 / "gpu_contention.ifm", normal)
    first = len(steps_of(open_trace(normal)))
    (found,) = _watched(trace, 0.2).account.slowdowns
    assert abs(found.alarm.step - first) <= 5
    assert found.alarm.steps <= 30
    assert found.recovered is not None
    assert abs(found.recovered.step - first - len(steps_of(open_trace(H200 / "gpu_contention.ifm")))) <= 5


@pytest.mark.parametrize("left_out", [0, 8, 40])
def test_traffic_on_the_bus_of_an_h200_is_noticed_within_thirty_steps(left_out: int) -> None:
    normal, slow = H200 / "normal.ifm", H200 / "pcie_traffic.ifm"
    first = len(steps_of(open_trace(normal))) - left_out
    watcher = Watcher()
    changes = [change for _, change in map(watcher.add, steps_of(joined(normal, slow, normal))[left_out:]) if change]
    soon = [change for change in changes if abs(change.step - first) <= 2 and change.kind is not Kind.RECOVERED]
    assert soon
    assert soon[0].steps <= 30


@pytest.mark.parametrize("pair", ["SGLang/cpu_frequency_reduction", "vLLM/gpu_instability"])
def test_published_runs_hold_too_few_steps_to_learn_from(shared_data: Path, pair: str) -> None:
    folder = shared_data / "latencyprism" / pair
    assert len(steps_of(open_trace(folder / "normal"))) < FEWEST
    code, out, _ = run_watch(folder / "normal")
    assert code == 0
    assert "Nothing could be judged: 30 steps of a phase are learned from first." in out
