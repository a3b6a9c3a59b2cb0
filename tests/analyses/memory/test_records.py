"""Memory by a profiler's records: captures recomputed in plain Python, a program that runs here, cases by hand."""

import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.analyses.memory.history import find_recorded_history
from inferometer.analyses.memory.use import NEEDED, memory_use
from inferometer.errors import InputError
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import remarks_of

CAPTURES = ("h100_qwen1.5-0.5b", "h100_vit", "mi300_qwen1.5-0.5b", "mi300_vit",
            "mi300_sglang_qwen3-8b_graph_capture_bs32", "mi300_vllm_gpt-oss_graph_capture")  # fmt: skip
TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


class Peak:
    """What the raw records say of one device; `held`: the records of the blocks there at the peak."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        args = [each["args"] for each in records]
        self.before = args[0]["Total Allocated"] - args[0]["Bytes"]
        self.bytes = max(self.before, *(each["Total Allocated"] for each in args))
        self.end = args[-1]["Total Allocated"]
        self.held: dict[int, dict[str, Any]] = {}
        total = self.before
        for record in records if total < self.bytes else ():
            if record["args"]["Bytes"] > 0:
                self.held[record["args"]["Addr"]] = record
            else:
                self.held.pop(record["args"]["Addr"], None)
            total += record["args"]["Bytes"]
            if total == self.bytes:
                break


def events_of(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return json.loads(data, parse_float=Decimal)["traceEvents"]


def peaks_of(events: list[dict[str, Any]]) -> dict[str, Peak]:
    by_device = defaultdict(list)
    for event in events:
        if event["name"] == "[memory]":
            kind = event["args"]["Device Type"]
            by_device["cpu" if kind == 0 else f"gpu:{event['args']['Device Id']}"].append(event)
    return {device: Peak(records) for device, records in by_device.items()}


def ops_around(record: dict[str, Any], events: list[dict[str, Any]]) -> str:
    """The chain of ops that are open when a record is made, outermost first."""
    around = [
        event
        for event in events
        if event.get("cat") == "cpu_op"
        and event["tid"] == record["tid"]
        and event["ts"] <= record["ts"] < event["ts"] + event["dur"]
    ]
    around.sort(key=lambda event: (event["ts"], -event["dur"]))
    return " > ".join(event["name"] for event in around) or "(no op is open)"


def expect_as_recorded(path: Path) -> None:
    found = memory_use(inferometer.open(path, NEEDED), by="op")
    events = events_of(path)
    peaks = peaks_of(events)
    assert peaks
    assert [row["device"] for row in found.devices.to_dicts()] == sorted(peaks)
    for row in found.devices.to_dicts():
        peak = peaks[row["device"]]
        assert (row["peak_bytes"], row["before_bytes"], row["allocated_bytes"]) == (peak.bytes, peak.before, peak.end)
        assert row["mismatched_bytes"] == 0
        expected: Counter[str] = Counter()
        for record in peak.held.values():
            expected[ops_around(record, events)] += record["args"]["Bytes"]
        held = {each["holder"]: each["bytes"] for each in found.holders.to_dicts() if each["device"] == row["device"]}
        unnamed = held.pop("(given out before the recording)", 0)
        assert held == expected
        assert unnamed == peak.bytes - sum(expected.values())


@pytest.mark.parametrize("name", CAPTURES)
def test_the_peak_of_a_capture_and_the_ops_that_held_it(name: str, shared_data: Path) -> None:
    expect_as_recorded(shared_data / "traces" / "kineto" / f"{name}.json.gz")


def test_what_is_said_of_a_capture(shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"
    remarks = " ".join(inferometer.json_of(memory_use(inferometer.open(path, NEEDED)))["remarks"])
    last = [each["args"] for each in events_of(path) if each["name"] == "[memory]" and each["args"]["Device Type"]][-1]
    free = last["Total Reserved"] - last["Total Allocated"]
    assert f"{free / last['Total Reserved']:.1%}".replace("%", " %") + " of what gpu:0 has reserved is free" in remarks
    assert f"{peaks_of(events_of(path))['gpu:0'].before / 1e6:.3f} MB of gpu:0 were allocated before" in remarks


def test_the_frame_outside_pytorch_holds_what_was_allocated_below_it(shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"
    found = memory_use(inferometer.open(path, NEEDED))
    events = events_of(path)
    assert found.by == "frame"
    [rotary] = found.holders.filter(found.holders["holder"].str.contains("apply_rotary_pos_emb")).to_dicts()
    held = [
        record
        for record in peaks_of(events)["gpu:0"].held.values()
        if innermost_of_user(record, events) == rotary["holder"]
    ]
    assert (rotary["blocks"], rotary["bytes"]) == (len(held), sum(record["args"]["Bytes"] for record in held))


def innermost_of_user(record: dict[str, Any], events: list[dict[str, Any]]) -> str:
    around = [
        event
        for event in events
        if event.get("cat") == "python_function"
        and event["name"].startswith("transformers/")
        and event["tid"] == record["tid"]
        and event["ts"] <= record["ts"] < event["ts"] + event["dur"]
    ]
    return max(around, key=lambda event: event["ts"])["name"] if around else ""


PROGRAM = """
import sys, torch
from torch.profiler import profile, ProfilerActivity
kept = []
def grow(bytes):
    kept.append(torch.empty(bytes, dtype=torch.uint8))
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as p:
    for size in (1 << 16, 1 << 18):
        grow(size)
    del kept[0]
    grow(1 << 12)
p.export_chrome_trace(sys.argv[1])
"""


@TORCH
def test_a_program_that_runs_here_held_what_it_was_told_to(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=True, capture_output=True)
    found = memory_use(inferometer.open(path, NEEDED), by="op")
    [device] = found.devices.to_dicts()
    assert device["device"] == "cpu"
    assert device["peak_bytes"] == (1 << 16) + (1 << 18)
    assert device["allocated_bytes"] == (1 << 18) + (1 << 12)
    assert found.holders.rows() == [(None, "cpu", "aten::empty", (1 << 16) + (1 << 18), 2, 1.0)]
    expect_as_recorded(path)


def test_the_curve_is_that_of_the_totals() -> None:
    events = [("free", 1, 10, None), ("alloc", 2, 30, 7), ("oom", None, 99, None), ("free", 2, 30, 8)]
    found = find_recorded_history(events, [90, 120, 120, 90])
    assert found.curve == [100, 90, 120, 120, 90]
    assert (found.peak, found.mismatched_bytes) == (2, 0)
    assert [(life.bytes, life.holder) for life in found.at(2)] == [(30, 7)]
    assert found.unnamed_at(2) == 90


def test_totals_win_over_records_that_are_missing() -> None:
    found = find_recorded_history([("alloc", 1, 10, 7), ("alloc", 2, 10, 7)], [10, 50])
    assert (found.curve, found.mismatched_bytes, found.unnamed_at(2)) == ([0, 10, 50], 30, 30)


def test_records_without_blocks_have_a_peak_that_nobody_holds() -> None:
    found = find_recorded_history([("sample", None, None, None)] * 2, [70, None])
    assert (found.curve, found.mismatched_bytes, found.unnamed_at(0)) == ([70, 70, 70], 0, 70)


def record(rank: int) -> dict[str, Any]:
    args = {"Bytes": 8 + rank, "Addr": 1, "Total Allocated": 8 + rank, "Device Type": 1, "Device Id": 0}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": args}


def test_ranks_have_their_own_memory(tmp_path: Path) -> None:
    for rank in range(2):
        trace = {"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": [record(rank)]}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    found = memory_use(inferometer.open(tmp_path, NEEDED))
    assert found.devices.select("rank", "device", "peak_bytes").rows() == [(0, "gpu:0", 8), (1, "gpu:0", 9)]
    assert "gpu:0 of rank 1 ends with 9 B more than it began with." in inferometer.json_of(found)["remarks"]


def test_a_snapshot_has_no_ops(tmp_path: Path) -> None:
    block = {"size": 512, "state": "active_allocated"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"segments": [{"device": 0, "address": 1, "blocks": [block], "total_size": 512}]}))
    with pytest.raises(InputError, match="to group a snapshot by, found op"):
        memory_use(inferometer.open(path, NEEDED), by="op")


def test_totals_that_can_t_be_are_shown_all_the_same(tmp_path: Path) -> None:
    args = [{"Bytes": size, "Addr": 1, "Total Allocated": total, "Device Type": 1, "Device Id": 0}
            for size, total in ((512, 0), (2**63, -(2**62)), (-1, 2**64), ("x", 7))]  # fmt: skip
    events = [record(0) | {"ts": ts, "args": each} for ts, each in enumerate(args)]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    found = memory_use(inferometer.open(tmp_path / "t.json", NEEDED))
    [device] = found.devices.to_dicts()
    assert (device["before_bytes"], device["peak_bytes"]) == (-512, 7)
    assert not [remark for remark in remarks_of(found) if "before the recording" in remark]
    assert "\u2588" in render_terminal(found, is_terminal=False)
