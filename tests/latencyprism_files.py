"""LatencyPrism files as tests need them: rows of text in the published layout, which differ where a test says so."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

PERF_TITLES = (
    *("cycle", "pid", "hostname", "beta_pct", "function_name", "metric_name", "device", "func_type", "mu_pct"),
    *("sigma_pct", "duration", "interpolation_status", "anchor_name", "anchor_dur_us", "cycle_start_ts"),
    *("instances_count", "simple_name"),
)
COUNTER_TITLES = ("counter_name", "timestamp", "value", "hostname")
_PERF: Mapping[str, str] = {
    "cycle": "1",
    "pid": "7",
    "hostname": "",
    "beta_pct": "25.0000",
    "function_name": "oncpu",
    "metric_name": "host_cpu_usage",
    "device": "Host",
    "func_type": "oncpu",
    "mu_pct": "5.2500",
    "sigma_pct": "0.0000",
    "duration": "250.0000",
    "interpolation_status": "**",
    "anchor_name": "Engine.step",
    "anchor_dur_us": "1000.0000",
    "cycle_start_ts": "1763013921174589.5000",
    "instances_count": "3",
    "simple_name": "oncpu",
}


def perf_row(**others: object) -> dict[str, str]:
    """A row of perf_data.csv."""
    return {**_PERF, **{title: str(value) for title, value in others.items()}}


def sample_row(counter_name: str, **others: object) -> dict[str, str]:
    """A row of counters_data.csv."""
    usual = {"counter_name": counter_name, "timestamp": "1763013925014069.500000", "value": "5.250000", "hostname": ""}
    return {**usual, **{title: str(value) for title, value in others.items()}}


def write_perf(rows: Sequence[Mapping[str, str]], titles: Sequence[str] = PERF_TITLES) -> bytes:
    """The file, with the columns of `titles`."""
    return _write(rows, titles)


def write_counters(rows: Sequence[Mapping[str, str]], titles: Sequence[str] = COUNTER_TITLES) -> bytes:
    """The file, with the columns of `titles`."""
    return _write(rows, titles)


def write_run(folder: Path, perf: Sequence[Mapping[str, str]] = (), counters: Sequence[Mapping[str, str]] = ()) -> Path:
    """A folder with both files, or with that which has rows."""
    folder.mkdir(parents=True, exist_ok=True)
    if perf:
        (folder / "perf_data.csv").write_bytes(write_perf(perf))
    if counters:
        (folder / "counters_data.csv").write_bytes(write_counters(counters))
    return folder


def _write(rows: Sequence[Mapping[str, str]], titles: Sequence[str]) -> bytes:
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, titles, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue().encode()
