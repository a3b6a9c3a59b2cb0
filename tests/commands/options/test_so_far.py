"""What a terminal shows of a large file before it is read: sums of what was read so far."""

import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import inferometer
from inferometer.commands.options import progress
from inferometer.commands.options.so_far import SoFar
from inferometer.trace.builder import TraceBuilder

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def batch(*rows: tuple[str, str | None, int]) -> tuple[int, pl.LazyFrame]:
    kinds, kernels, durations = zip(*rows, strict=True)
    return len(rows), pl.LazyFrame({"kind": kinds, "kernel": kernels, "dur_ns": durations})


@pytest.mark.parametrize("name", ["decode.json.gz", "nsys.sqlite.gz"])
def test_in_the_end_it_is_the_sum_of_all_kernels(name: str) -> None:
    _check_sums(SAMPLES / name)


def test_of_a_real_capture_too(shared_data: Path) -> None:
    _check_sums(shared_data / "traces" / "kineto" / "h100_vit.json.gz")


def _check_sums(path: Path) -> None:
    so_far = SoFar()
    trace = inferometer.open(path, listener=so_far)
    rows = Counter({table: frame.select(pl.len()).collect().item() for table, frame in trace.tables.items()})
    launches = trace.launches.collect()
    kernels = launches.filter(pl.col("kind") == "kernel")
    sums = Counter[str]()
    for kernel, ns in kernels.select("kernel", "dur_ns").iter_rows():
        sums[kernel] += ns
    ((_, most),) = sums.most_common(1)
    first, second, third, *_ = so_far.lines(200)
    assert first == "So far: " + ", ".join(
        f"{count:,} {table if count > 1 else table[:-1]}" for table, count in so_far._rows.most_common(3)
    )
    assert all(rows[table] == count for table, count in so_far._rows.items())
    assert second.endswith(f" in {kernels.height:,} kernels:")
    assert so_far._ns == sums
    assert third.startswith(f"{most / sums.total() * 100:7.1f} %")


def test_batches_add_up_and_what_is_no_kernel_changes_nothing() -> None:
    so_far = SoFar()
    assert so_far.lines(80) == []
    so_far.take("calls", *batch(("kernel", "a", 7)))
    assert so_far.lines(80) == ["So far: 1 call"]
    so_far.take("launches", 1, pl.LazyFrame({"start_ns": [1]}))
    so_far.take("launches", *batch(("kernel", "gemm", 3_000), ("memcpy", "HtoD", 50)))
    assert so_far.lines(80) == ["So far: 3 launches, 1 call", "3.000 μs in 1 kernel:", "  100.0 % gemm"]
    so_far.take("launches", *batch(("kernel", "gemm", 1_000), ("kernel", "a\x1b[31m\tb", 4_000), ("kernel", None, 0)))
    assert so_far.lines(80)[1:4] == ["8.000 μs in 4 kernels:", "   50.0 % gemm", "   50.0 % a\\x1b[31m b"]


def test_a_reader_that_begins_anew_counts_nothing_twice() -> None:
    listener = SoFar()
    builder = TraceBuilder(listener=listener)
    for _ in range(2):
        builder.add("launches", 2, {"kind": "kernel", "kernel": "gemm", "start_ns": [0, 9], "dur_ns": [5, 7]})
        assert listener.lines(80) == ["So far: 2 launches", "12 ns in 2 kernels:", "  100.0 % gemm"]
        builder.reset()
        assert listener.lines(80) == []


def test_long_names_are_cut_and_stay_apart() -> None:
    so_far = SoFar()
    so_far.take("launches", *batch(*(("kernel", "one_kernel_" * 20 + name, 5) for name in "abc")))
    lines = so_far.lines(40)[2:]
    assert len({*lines}) == 3
    assert {len(line) for line in lines} <= {*range(20, 41)}


def test_a_terminal_shows_it_below_the_bar_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    so_far = SoFar()
    so_far.take("launches", *batch(("kernel", "gemm", 3_000)))
    with progress.reading("t.json", so_far) as report:
        assert report is not None
        now[0] += 1
        report(1, 9)
        now[0] += 0.5
        report(2, 9)
        assert "gemm" not in capsys.readouterr().err
        now[0] += 1
        report(3, 9)
    assert "3.000 μs in 1 kernel:" in capsys.readouterr().err
