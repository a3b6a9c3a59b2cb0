"""What is said of recordings that were really made on a GPU: sums and sentences against the rows themselves."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import inferometer
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.timeline.recorder_pauses import recorder_pauses
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.findings.engine import find_findings

METRIC = "others_gpu_processes"
SAMPLES = Path(__file__).parents[2] / "samples" / "h200"


@pytest.mark.parametrize(
    ("fault", "metric", "low", "high"),
    [("gpu_contention", "others_gpu_usage", 1.9, 2.1), ("pcie_traffic", "gpu_pcie_transmit", 1.15, 1.35)],
)
def test_a_fault_that_was_really_made_is_named(fault: str, metric: str, low: float, high: float) -> None:
    with inferometer.open(SAMPLES / "normal.ifm") as base, inferometer.open(SAMPLES / f"{fault}.ifm") as other:
        found = compare(base, other)
    assert found.verdict == "cause named"
    assert found.judged.claimed is not None
    assert (found.judged.claimed.metric, found.judged.claimed.device) == (metric, "gpu:0")
    assert low < found.changes.candidate_step_ns / found.changes.base_step_ns < high


@pytest.mark.parametrize(("run", "is_shared"), [("normal", False), ("gpu_contention", True)])
def test_work_that_waits_next_to_another_process_says_so(run: str, is_shared: bool) -> None:
    with inferometer.open(SAMPLES / f"{run}.ifm") as trace:
        found = [each for each in find_findings(trace).findings if "work queued that does not begin" in each.title]
    rows = pl.concat([pl.read_parquet(file) for file in (SAMPLES / f"{run}.ifm").glob("counters-*.parquet")])
    values = [
        value for name, value in rows.select(pl.col("metric").cast(pl.String), "value").iter_rows() if name == METRIC
    ]
    busy = sum(value > 0 for value in values)
    said = f"In {busy} of {len(values)} samples of its counters another process computed on gpu:0: "
    assert [any(each.startswith(said) for each in finding.evidence) for finding in found] == [is_shared] * len(found)
    assert all(finding.next.startswith("Stop what else computes on gpu:0") == is_shared for finding in found)
    assert found or not is_shared


def test_idle_time_is_parted_as_the_rows_have_it() -> None:
    with inferometer.open(SAMPLES / "normal.ifm") as trace:
        launches = trace.launches.select("start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")).collect()
        pauses = recorder_pauses(trace).select("from_ns", "to_ns").rows()
        causes = dict(find_timeline(trace).causes.select("cause", "idle_ns").iter_rows())
    ordered = launches.sort("start_ns")
    until = ordered["end_ns"].cum_max().shift(1)
    idle = ordered.with_columns(until.alias("until")).filter(pl.col("start_ns") > pl.col("until"))
    gaps = idle.select("until", "start_ns").rows()
    paused = sum(max(0, min(end, to) - max(begin, at)) for begin, end in gaps for at, to in pauses)
    assert sum(causes.values()) == sum(end - begin for begin, end in gaps)
    assert causes["recorder"] == paused > 4_000_000_000


def test_every_kernel_has_its_time_and_its_device_its_name() -> None:
    with inferometer.open(SAMPLES / "normal.ifm") as trace:
        assert trace.launches.filter(pl.col("dur_ns") <= 0).collect().is_empty()
        assert [device.name for device in trace.facts.devices if device.device == "gpu:0"] == ["NVIDIA H200"]
        assert trace.launches.select(pl.col("device").unique()).collect()["device"].to_list() == ["gpu:0"]


@pytest.mark.parametrize("name", ["kineto_capture", "kineto_graph"])
def test_both_recordings_of_a_graph_are_of_replays(name: str) -> None:
    events = json.loads(gzip.decompress((SAMPLES / f"{name}.json.gz").read_bytes()))["traceEvents"]
    calls = [each["name"] for each in events if each.get("cat") == "cuda_runtime"]
    assert calls.count("cudaGraphLaunch") == 4
    assert not any("Capture" in call and call != "cudaStreamIsCapturing" for call in calls)
