"""Pairs made of one real capture that differ in one thing only: what is said of them, recomputed."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run

import inferometer
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.units import format_duration

Events = list[dict[str, Any]]
HOST = ("python_function", "cpu_op", "user_annotation", "ac2g")
NAMES = ("h100_vit", "mi300_resnet_ddp", "a100_nccl")


def is_product(event: dict[str, Any]) -> bool:
    return event.get("cat") == "kernel" and re.search("gemm|Cijk", event["name"], re.IGNORECASE) is not None


def document(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def rewrite(path: Path, to: Path, change: Callable[[Events], Events]) -> Path:
    """The capture at `path` with other events."""
    whole = document(path)
    to.write_bytes(gzip.compress(json.dumps(whole | {"traceEvents": change(whole["traceEvents"])}).encode(), 1))
    return to


def compared(base: Path, candidate: Path) -> Comparison:
    return compare(inferometer.open(base), inferometer.open(candidate))


@pytest.fixture(params=NAMES)
def capture(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    return shared_data / "traces" / "kineto" / f"{request.param}.json.gz"


def kernel_ns(path: Path) -> int:
    """Summed time of kernels, copies and memory sets of a capture, in its JSON."""
    device = ("kernel", "gpu_memcpy", "gpu_memset")
    return round(sum(1000 * event["dur"] for event in document(path)["traceEvents"] if event.get("cat") in device))


def test_a_run_without_its_host_events_did_the_same(capture: Path, tmp_path: Path) -> None:
    bare = rewrite(
        capture, tmp_path / "bare.json.gz", lambda every: [one for one in every if one.get("cat") not in HOST]
    )
    found = compared(capture, bare)
    assert (found.verdict, found.comparable.repair, found.changes.step_ratio) == ("no difference", None, 1.0)
    assert [line.name for line in found.changes.changed] == []
    on_device = [line for line in found.changes.contributions if line.added and line.cls not in ("idle", "overlap")]
    assert sum(line.base_ns for line in on_device) == pytest.approx(kernel_ns(capture), abs=2 * len(on_device))


@pytest.mark.parametrize("share", [0.5, 0.75, 0.95])
def test_of_a_file_that_is_cut_off_nothing_is_claimed(
    share: float, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = shared_data / "traces" / "kineto" / "a100_nccl.json.gz"
    text = gzip.decompress(whole.read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: int(share * len(text))])
    for pair, side in (((whole, cut), "candidate"), ((cut, whole), "base")):
        code, out, _ = run("compare", *pair, "--check", "--json", capsys=capsys)
        found = json.loads(out)
        assert (code, found["verdict"], found["comparable"]["step_ratio"]) == (1, "not comparable", None)
        assert found["why"].startswith(f"The file of the {side} is cut off or damaged")


def test_of_a_file_with_a_hole_nothing_is_claimed(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = shared_data / "traces" / "kineto" / "a100_nccl.json.gz"
    text = gzip.decompress(whole.read_bytes())
    hole = tmp_path / "hole.json"
    hole.write_bytes(text[: len(text) // 3] + b"}]{{" + text[2 * len(text) // 3 :])
    for pair, side in (((whole, hole), "candidate"), ((hole, whole), "base")):
        code, out, _ = run("compare", *pair, "--check", "--json", capsys=capsys)
        found = json.loads(out)
        assert (code, found["verdict"], found["comparable"]["step_ratio"]) == (1, "not comparable", None)
        assert re.match(rf"The file of the {side} has \d places? that can't be read: ", found["why"])
    code, _, err = run("findings", hole, "--check", "high", capsys=capsys)
    assert (code, "not checked: the file has 1 place that can't be read" in err) == (1, True)


def test_a_job_without_one_of_its_ranks_passes_no_check(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, cut in (("whole", False), ("lacking", True)):
        (tmp_path / folder).mkdir()
        for rank in (0, 1):
            data = (shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz").read_bytes()
            (tmp_path / folder / f"rank{rank}.json.gz").write_bytes(data[:20] if cut and rank else data)
    code, out, _ = run("compare", tmp_path / "whole", tmp_path / "lacking", "--check", "--json", capsys=capsys)
    said = "The file of the candidate lacks 1 rank, whose file can't be read: how much work is missing isn't known."
    assert (code, json.loads(out)["verdict"], json.loads(out)["why"]) == (1, "not comparable", said)


def without_times(every: int) -> Callable[[Events], Events]:
    """Of the kernels one in so many has no duration."""

    def change(events: Events) -> Events:
        for event in [event for event in events if event.get("cat") == "kernel"][::every]:
            del event["dur"]
        return events

    return change


@pytest.mark.parametrize(("every", "stops"), [(2, True), (90, True), (300, False)])
def test_of_kernels_without_times_nothing_is_claimed_where_they_are_many(
    every: int, stops: bool, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = shared_data / "traces" / "kineto" / "a100_nccl.json.gz"
    timeless = rewrite(whole, tmp_path / "timeless.json.gz", without_times(every))
    kernels = [event for event in document(timeless)["traceEvents"] if event.get("cat") == "kernel"]
    lost = sum("dur" not in event for event in kernels)
    code, out, _ = run("compare", whole, timeless, "--check", "--json", capsys=capsys)
    found = json.loads(out)
    said = f"The file of the candidate has no usable time for {lost:,} of {len(kernels):,} events (kernel): "
    assert (found["verdict"] == "not comparable", found["why"].startswith(said)) == (stops, stops)
    assert code == stops
    assert f"has no usable time for {lost:,} of" in run("findings", timeless, "--check", "high", capsys=capsys)[2] or (
        not stops
    )


def first_half(events: Events) -> Events:
    """What began in the first half of the recording's time."""
    timed = [one for one in events if one.get("ph") == "X" and one.get("cat") != "Trace"]
    first, last = min(one["ts"] for one in timed), max(one["ts"] + one["dur"] for one in timed)
    return [one for one in events if one.get("ts", first) < (first + last) / 2]


def test_half_of_the_only_step_is_no_improvement(shared_data: Path, tmp_path: Path) -> None:
    whole = shared_data / "traces" / "kineto" / "h100_vit.json.gz"
    found = compared(whole, rewrite(whole, tmp_path / "half.json.gz", first_half))
    assert found.verdict == "too few samples"
    ratio = found.changes.step_ratio
    assert ratio is not None
    assert ratio < 0.6


def test_an_interval_of_a_ratio_has_no_negative_times(shared_data: Path, tmp_path: Path) -> None:
    whole = shared_data / "traces" / "kineto" / "mi300_resnet_ddp.json.gz"
    found = compared(whole, rewrite(whole, tmp_path / "half.json.gz", first_half))
    assert found.changes.step_ratio_interval is None
    assert found.verdict == "too few samples"


def test_kernels_that_are_gone_are_a_change_though_the_device_waits_as_long(capture: Path, tmp_path: Path) -> None:
    without = rewrite(capture, tmp_path / "w.json.gz", lambda every: [one for one in every if not is_product(one)])
    found = compared(capture, without)
    gone = {line.name: line for line in found.changes.changed if line.kind == "gone"}
    if capture.name.startswith("h100_vit"):  # all of it is one step
        products = [one for one in document(capture)["traceEvents"] if is_product(one)]
        assert sum(line.base_ns for line in gone.values()) == round(sum(1000 * one["dur"] for one in products))
        assert sum(line.base_calls for line in gone.values()) == len(products)
    low, high = found.changes.step_ratio_interval or (0, 2)
    assert low <= 1 <= high  # within noise; where that is a tenth of the step, it hides what matters
    is_wide = max(1 - low, high - 1) > 0.1
    assert (found.verdict, found.outcome) == ("software change", "can't tell" if is_wide else "no clear difference")
    said = re.search(r"(\d+) functions are gone, which took ([\d.]+ \S+) per step", found.judged.why)
    assert said is not None
    assert (int(said[1]), said[2]) == (len(gone), format_duration(sum(line.base_ns for line in gone.values())))


@pytest.mark.parametrize("options", [(), ("--csv",)], ids=["as printed", "csv"])
def test_our_own_table_of_a_run_is_that_run(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    sample = Path(__file__).resolve().parents[3] / "samples" / "decode.json.gz"
    _, out, _ = run("kernels", sample, *options, capsys=capsys)
    table = tmp_path / f"k{options[0].replace('--', '.') if options else '.txt'}"
    table.write_text(out, "utf-8")
    found = compared(sample, table)
    unlike = [line.name for line in found.changes.changed if line.cls not in ("transfer", "idle", "overlap")]
    assert (found.verdict, unlike) == ("no difference", [])


def moments(path: Path) -> tuple[float, float]:
    timed = [each for each in document(path)["traceEvents"] if each.get("ph") == "X"]
    return min(each["ts"] for each in timed), max(each["ts"] + each["dur"] for each in timed)


@pytest.mark.parametrize("change", ["later", "world", "rank"])
def test_ranks_of_other_runs_may_be_a_change_of_the_program(change: str, shared_data: Path, tmp_path: Path) -> None:
    paths = [shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz" for rank in (0, 1)]
    data = document(paths[1])
    if change == "later":
        for each in data["traceEvents"]:
            if "ts" in each:
                each["ts"] = float(each["ts"]) + 60e6
    elif change == "world":
        data["distributedInfo"]["world_size"] = 64
    else:
        data["distributedInfo"]["rank"] = 0
    other = tmp_path / "other.json"
    other.write_text(json.dumps(data))
    found = compared(paths[0], other)
    assert found.verdict == "software change"
    notes = [*found.rank_notes()]
    assert [note.endswith("may be what each rank has to do.") for note in notes] == [True] * (change != "rank")


def test_other_ranks_are_named(shared_data: Path) -> None:
    paths = [shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz" for rank in (0, 1)]
    ranks = [document(path)["distributedInfo"]["rank"] for path in paths]
    said = (
        f"The base has rank {ranks[0]} and the candidate rank {ranks[1]} of one run, recorded at the same time: what "
        "differs is no change of the program. Open their folder to see which keeps the others waiting: inferometer "
        "timeline FOLDER."
    )
    found = compared(paths[0], paths[1])
    assert said in found.as_json()["remarks"]
    assert found.verdict == "ranks differ"
    windows = [moments(path) for path in paths]
    shared = min(end for _, end in windows) - max(start for start, _ in windows)
    assert shared > 0.9 * max(end - start for start, end in windows)
    assert [*compared(paths[0], paths[0]).rank_notes()] == []


def test_a_check_fails_where_only_one_run_has_times(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [
        {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "ts": 1e6 * i, "args": {"GPU": 50}} for i in range(20)
    ]
    whole = shared_data / "traces" / "kineto" / "h100_vit.json.gz"
    only = rewrite(whole, tmp_path / "counters.json.gz", lambda every: samples)
    code, out, _ = run("compare", whole, only, "--check", "--json", capsys=capsys)
    found = json.loads(out)
    assert (code, found["verdict"], found["base_step_ns"]) == (1, "cause not measured", None)


def test_a_check_fails_where_few_samples_hide_twice_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = Path(__file__).resolve().parents[3] / "samples" / "h200" / "proton_tree.hatchet"
    doubled = re.sub(
        r'("time \(ns\)": )(\d+)', lambda found: f"{found[1]}{2 * int(found[2])}", sample.read_text("utf-8")
    )
    slow = tmp_path / "slow.hatchet"
    slow.write_text(doubled, "utf-8")
    for pair, options, code in (
        ((sample, slow), (), 1),
        ((sample, slow), ("--max-regression", "120"), 0),
        ((slow, sample), (), 0),
        ((sample, sample), (), 0),
    ):
        assert run("compare", *pair, "--check", *options, capsys=capsys)[0] == code
