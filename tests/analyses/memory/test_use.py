"""The peak, who held it and what lies idle: against a generator that knows each byte, and cases by hand."""

from pathlib import Path

import pytest
from tools.make_memory_snapshot import encode, make_snapshot, stack

import inferometer
from inferometer.analyses.memory.history import Lifetime, find_history
from inferometer.analyses.memory.holders import By
from inferometer.analyses.memory.use import memory_use
from inferometer.errors import InputError

ALL, SOME = {"events": 300, "keep": 400}, {"events": 300, "keep": 120}


@pytest.mark.parametrize("size", [ALL, SOME], ids=["all events", "the last ones"])
@pytest.mark.parametrize("seed", range(4))
def test_the_peak_and_its_holders_are_those_of_the_generator(tmp_path: Path, seed: int, size: dict[str, int]) -> None:
    snapshot, truth = make_snapshot(seed, **size)
    path = tmp_path / "a.pickle"
    path.write_bytes(encode(snapshot, ".pickle"))
    found = memory_use(inferometer.open(path))
    [device] = found.devices.to_dicts()
    assert device["peak_bytes"] == max(truth.curve)
    assert truth.curve[device["peak_event"]] == device["peak_bytes"]
    assert device["allocated_bytes"] == truth.curve[-1]
    assert device["reserved_bytes"] == truth.curve[-1] + truth.free == device["allocated_bytes"] + device["free_bytes"]
    assert device["requested_bytes"] == truth.requested
    assert device["rounding_bytes"] == truth.curve[-1] - truth.requested
    assert device["mismatched_bytes"] == 0
    held = {row["holder"]: row["bytes"] for row in found.holders.to_dicts()}
    assert sum(held.values()) == device["peak_bytes"]
    expected = {
        f"/app/model.py:{10 + len(name)} {name}": n for name, n in truth.held[device["peak_event"]].items() if n
    }
    unknown = held.pop("(no stack was recorded)", 0)  # freed later, and allocated before the first event
    assert size is SOME or unknown == 0
    assert sum(expected.values()) - sum(held.values()) == unknown
    assert all(held.get(name, 0) <= n for name, n in expected.items())
    assert found.series["bytes"].max() == device["peak_bytes"]
    assert sum(share for share in found.holders["share"]) == pytest.approx(1)


DEEP = (
    "c10::cuda::allocate < /venv/lib/torch/nn/functional.py:7 linear < /app/model.py:13 mlp < /app/main.py:3 <module>"
)


@pytest.mark.parametrize(
    ("by", "holder"), [("frame", "/app/model.py:13 mlp"), ("file", "/app/model.py"), ("stack", DEEP)]
)
def test_what_a_holder_is_called(tmp_path: Path, by: By, holder: str) -> None:
    block = {"size": 512, "requested_size": 1, "state": "active_allocated", "frames": stack("mlp")}
    path = tmp_path / "a.json"
    path.write_bytes(encode({"segments": [{"device": 0, "address": 1, "blocks": [block], "total_size": 512}]}, ".json"))
    found = memory_use(inferometer.open(path), by=by)
    assert found.holders.rows() == [(None, "gpu:0", holder, 512, 1, 1.0)]
    assert "its peak is the state at the end" in " ".join(inferometer.json_of(found)["remarks"])


def test_a_block_lives_until_the_allocator_has_it_back() -> None:
    events = [("alloc", 1, 10, 7), ("free_requested", 1, 10, 7), ("alloc", 2, 5, 8), ("free_completed", 1, 10, 7)]
    found = find_history(events, [(2, 5, 8)])
    assert found.curve == [0, 10, 10, 15, 5]
    assert found.at(found.peak) == [Lifetime(10, 0, 3, 7), Lifetime(5, 2, None, 8)]


def test_what_lived_before_the_first_event_is_in_the_curve_from_the_start() -> None:
    found = find_history([("free_completed", 1, 10, 7), ("alloc", 3, 1, 8)], [(2, 5, 9), (3, 1, 8)])
    assert found.curve == [15, 5, 6]
    assert found.at(0) == [Lifetime(10, -1, 0), Lifetime(5, -1, None, 9)]
    assert found.mismatched_bytes == 0


@pytest.mark.parametrize(
    ("events", "blocks", "mismatched"),
    [([("alloc", 1, 10, None)], [], 10), ([("alloc", 1, 10, None)], [(1, 12, None)], 2),
     ([("alloc", 1, 10, None), ("alloc", 1, 20, None)], [(1, 20, None)], 0)],
)  # fmt: skip
def test_events_and_the_state_at_the_end_may_disagree(
    events: list[tuple[str, int, int, None]], blocks: list[tuple[int, int, None]], mismatched: int
) -> None:
    found = find_history(events, blocks)
    assert found.mismatched_bytes == mismatched
    assert found.curve[-1] == events[-1][2]


def test_a_trace_without_memory_is_an_error() -> None:
    sample = Path(__file__).parents[3] / "samples" / "decode.json.gz"
    with pytest.raises(InputError, match="expected what an allocator of device memory held, found none"):
        memory_use(inferometer.open(sample, {"memory_blocks", "memory_events", "call_paths"}))
