"""Ours next to PyTorch's `key_averages`, on one profile of a small model: the sums are the same, to the nanosecond.

docs/guide/coming-from.md says so.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import inferometer
from inferometer.trace.trace import Trace

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `torch`")

REPEATS = 5


class Averages(NamedTuple):
    """What `key_averages` says of one name, in ns."""

    calls: int
    total_ns: int


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Averages], Trace]:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    layers: list[Any] = [torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.LayerNorm(64)]
    model, x_TD = torch.nn.Sequential(*layers), torch.randn(8, 64)
    with torch.inference_mode():
        model(x_TD)
        with profile(activities=[ProfilerActivity.CPU]) as recording:
            for _ in range(REPEATS):
                with record_function("step of mine"):
                    model(x_TD)
    path: Path = tmp_path_factory.mktemp("profile") / "trace.json"
    recording.export_chrome_trace(str(path))
    averages = {row.key: Averages(row.count, round(row.cpu_time_total * 1000)) for row in recording.key_averages()}
    return averages, inferometer.open(path)


def test_every_op_is_called_as_often_and_takes_as_long(both: tuple[dict[str, Averages], Trace]) -> None:
    averages, trace = both
    ops = trace.ops.group_by("op").agg(pl.len().alias("count"), pl.col("dur_ns").sum().alias("total_ns")).collect()
    found = {op: (count, total_ns) for op, count, total_ns in ops.iter_rows()}
    assert found == {name: row for name, row in averages.items() if name.startswith("aten::")}
    assert len(found) > 10


def test_kernels_has_the_total_time_of_the_ops_that_compute_and_of_no_others(
    both: tuple[dict[str, Averages], Trace],
) -> None:
    averages, trace = both
    rows = {row["kernel"]: row for row in inferometer.kernel_table(trace).to_polars().iter_rows(named=True)}
    assert set(rows) == {"aten::addmm", "aten::relu", "aten::native_layer_norm"}
    assert {name: (row["count"], row["total_ns"]) for name, row in rows.items()} == {
        name: averages[name] for name in rows
    }


def test_spans_has_the_host_time_of_a_record_function(both: tuple[dict[str, Averages], Trace]) -> None:
    averages, trace = both
    spans = {row["span"]: row for row in inferometer.span_table(trace).to_polars().iter_rows(named=True)}
    mine = spans["step of mine"]
    assert (mine["instances"], mine["host_total_ns"]) == averages["step of mine"]
