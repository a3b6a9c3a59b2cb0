"""At a glance: each number is recomputed from the trace's tables, and sentences are true where a file tells little."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.names import decode
from inferometer.reports.page.blocks import Beside, Block, Number, Numbers, Stack, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import overview
from inferometer.reports.page.text import render_text
from inferometer.units import format_duration, format_share

TRACES = ("h100_qwen1.5-0.5b", "mi300_resnet_ddp", "a100_event_sync", "mi250_minitoy", "h100_vit", "rank0_sampled")
SAMPLES = Path(__file__).parents[3] / "samples"
LAUNCH = {"kernel": "gemm", "process": 1, "stream": 7}


@lru_cache(maxsize=2)  # most tests ask twice
def section(trace: Trace, candidate: Trace | None = None) -> Block:
    return overview.build(PageData(trace, candidate))


def numbers(trace: Trace, candidate: Trace | None = None) -> list[dict[str, Number]]:
    """By the first word of its label, of each run."""
    parts = section(trace, candidate).parts
    rows = [row for part in parts for row in (part.rows if isinstance(part, Beside) else [[part]])]
    found = [part for row in rows for part in row if isinstance(part, Numbers)]
    return [{number.label.split(":")[0]: number for number in one.numbers} for one in found]


def stack(trace: Trace) -> Stack:
    (found,) = [part for part in section(trace).parts if isinstance(part, Stack)]
    return found


def words(trace: Trace) -> list[str]:
    return [part.text for part in section(trace).parts if isinstance(part, Words)]


def sort_of(kind: str, kernel: str) -> str:
    """What a launch counts as while it runs."""
    if kind not in ("kernel", "graph"):
        return "copies"
    family = decode(kernel).family
    return "communication" if family == "collective" else family


def moments(trace: Trace) -> Counter[str]:
    """ns of each device's window by what runs: the family, several, communication, copies or idle."""
    spent: Counter[str] = Counter()
    launches = trace.launches.select("rank", "device", "kind", "kernel", "start_ns", "dur_ns").collect()
    for rows in launches.partition_by("rank", "device"):
        changes = []
        for _, _, kind, kernel, start_ns, dur_ns in rows.iter_rows():
            changes += [(start_ns, 1, sort_of(kind, kernel)), (start_ns + dur_ns, -1, sort_of(kind, kernel))]
        changes.sort()
        running: Counter[str] = Counter()
        before = changes[0][0]
        for at, change, sort in changes:
            spent[_now(running)] += at - before
            running[sort] += change
            before = at
    return spent


def _now(running: Iterable[str] | Counter[str]) -> str:
    active = {sort for sort, count in Counter(running).items() if count > 0}
    families = active - {"communication", "copies"}
    if families:
        return next(iter(families)) if len(families) == 1 else "several"
    return next((sort for sort in ("communication", "copies") if sort in active), "idle")


@pytest.fixture(scope="module", params=TRACES)
def capture(shared_data: Path, request: pytest.FixtureRequest) -> Trace:
    return inferometer.open(shared_data / "traces" / "kineto" / f"{request.param}.json.gz")


def test_busy_idle_and_the_bar_are_what_a_walk_through_all_moments_finds(capture: Trace) -> None:
    spent = moments(capture)
    whole_ns, idle_ns = sum(spent.values()), spent["idle"]
    (found,) = numbers(capture)
    assert found["Busy"].value == format_share(1 - idle_ns / whole_ns)
    assert found["Busy"].about.startswith(f"{format_duration(whole_ns - idle_ns)} of {format_duration(whole_ns)}, the ")
    assert found["Idle"].value == format_share(idle_ns / whole_ns)
    bar = stack(capture)
    assert sum(one.share for one in bar.slices) == pytest.approx(1)
    assert bar.alt.startswith(f"The parts add up to {format_duration(whole_ns)}: ")
    said = {one.name: one.text for one in bar.slices}
    names = {"several": "kernels of several families at once", "communication": "exposed communication",
             "copies": "exposed copies and sets"}  # fmt: skip
    named = 0
    for sort, ns in spent.items():
        if sort == "idle" or ns < 0.005 * whole_ns:
            continue
        part = names.get(sort, f"{sort.replace('_', ' ')} kernels")
        assert said[part] == f"{format_duration(ns)}, {format_share(ns / whole_ns)}"
        named += 1
    assert named == len([part for part in said if not part.startswith("idle") and "smaller" not in part])
    causes = [text for part, text in said.items() if part.startswith("idle: ")]
    small = sum(one.share for one in bar.slices if "smaller" in one.name)
    idle = sum(one.share for one in bar.slices if one.name.startswith("idle: "))
    assert idle <= idle_ns / whole_ns + 1e-9 <= idle + small + 2e-9
    assert all(text.split(",")[0] in found["Idle"].about for text in causes[:3])


def test_the_largest_family_is_the_one_whose_kernels_add_up_to_most(capture: Trace) -> None:
    sums: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    kernels = capture.launches.filter(pl.col("kind").cast(pl.String) == "kernel").select("kernel", "dur_ns").collect()
    for kernel, dur_ns in kernels.iter_rows():
        sums[decode(kernel).family] += dur_ns
        launches[decode(kernel).family] += 1
    family, ns = sums.most_common(1)[0]
    (found,) = numbers(capture)
    number = found["Largest family"]
    assert (number.label, number.value) == (f"Largest family: {family}", format_share(ns / sum(sums.values())))
    count = f"{launches[family]:,} {'launch' if launches[family] == 1 else 'launches'}"
    times = f"{format_duration(ns)} of {format_duration(sum(sums.values()))}"
    assert number.about == f"{times} kernel time, {count}."
    assert number.link == f"#kernels?filter={family}"


def test_a_step_lasts_until_its_device_work_has_ended(shared_data: Path) -> None:
    """Graph replay: the mark ends long before the work that was queued in it."""
    trace = inferometer.open(shared_data / "traces" / "kineto" / "mi300_vllm_gpt-oss_decode.json.gz")
    (found,) = numbers(trace)
    launches = trace.launches.collect()
    first_ns, last_ns = launches["start_ns"].min(), (launches["start_ns"] + launches["dur_ns"]).to_numpy().max()
    assert found["Step"].value == format_duration(last_ns - first_ns)
    (mark_ns,) = trace.spans.collect()["dur_ns"]
    assert mark_ns < (last_ns - first_ns) / 4
    assert found["Step"].about == "There is one decode step: the spread isn't known."


def test_the_steps_of_a_log_are_the_times_that_it_prints() -> None:
    trace = inferometer.open(SAMPLES / "webgpu.log.gz")
    (found,) = numbers(trace)
    rows = trace.steps.filter(pl.col("phase").cast(pl.String) == "decode").collect()
    disturbed = PageData(trace).base.steps.disturbed  # type: ignore[union-attr]
    times = rows.filter(~pl.col("step").is_in(disturbed))["dur_ns"].to_numpy()
    median = float(np.median(times))
    mad, p95 = float(np.median(np.abs(times - median))), float(np.quantile(times, 0.95))
    assert found["Step"].value == format_duration(median)
    assert found["Step"].about == (
        f"Median of {len(times)} of {rows.height} decode steps; "
        f"MAD {format_duration(mad)}, 95th percentile {format_duration(p95)}."
    )
    assert set(found) == {"Largest family", "Step"}
    assert found["Largest family"].about.endswith("kernel time.")  # the log doesn't say how often they were launched
    assert words(trace) == ["Busy, Idle: The file holds no single launches."]


def test_what_a_file_cannot_tell_is_said_and_no_number_stands_for_it(shared_data: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / "cpu_only.json.gz")
    (found,) = numbers(trace)
    assert set(found) == {"Step"}
    assert words(trace) == [
        "Busy, Idle: The file holds no single launches.",
        "Largest family: The file holds neither launches nor sums by kernel.",
    ]
    empty = trace_of()
    assert [*numbers(empty)[0]] == []
    assert words(empty)[-1] == "Step: No steps are recorded, marked or found."


def test_without_a_gap_there_is_no_cause() -> None:
    trace = trace_of([{**LAUNCH, "start_ns": 100, "dur_ns": 50}, {**LAUNCH, "start_ns": 150, "dur_ns": 50}])
    (found,) = numbers(trace)
    assert (found["Busy"].value, found["Idle"].value) == ("100.0 %", "0.0 %")
    assert found["Idle"].about == "From the first launch to the end of the last, there is no gap."
    assert found["Busy"].about == "100 ns of 100 ns, the window of gpu:0."


def test_of_several_devices_the_windows_add_up_and_the_least_busy_is_named() -> None:
    begins = [(0, 0), (0, 10), (1, 0), (1, 90)]
    launches = [{**LAUNCH, "device": f"gpu:{n}", "start_ns": at, "dur_ns": 10} for n, at in begins]
    (found,) = numbers(trace_of(launches))
    assert found["Busy"].about == (
        "40 ns of 120 ns, the windows of 2 devices together; the least busy is gpu:1 with 20.0 %."
    )
    assert stack(trace_of(launches)).alt == "The parts add up to 120 ns: the windows of 2 devices, summed."


def test_two_runs_stand_side_by_side_and_link_to_the_sections_of_both() -> None:
    trace = inferometer.open(SAMPLES / "decode.json.gz")
    base, candidate = numbers(trace, inferometer.open(SAMPLES / "decode_fixed.json.gz"))
    assert base["Busy"].link == candidate["Busy"].link == "#timeline"
    assert base["Largest family"].link == candidate["Largest family"].link == "#kernels"
    assert base["Step"].value != candidate["Step"].value
    assert base["Step"].about.startswith("Median of 6 decode steps, until their device work has ended; MAD ")


def test_markdown_has_the_numbers_and_the_bar_as_sentences() -> None:
    trace = inferometer.open(SAMPLES / "decode.json.gz")
    text = render_text([overview.build(PageData(trace))], title="run")
    (found,) = numbers(trace)
    assert f"- **Busy**: {found['Busy'].value}. {found['Busy'].about}" in text.replace("\\", "")
    assert "**Where the time went**: " in text
