"""Snapshots of PyTorch's allocator: written here in its layout, as pickles of every protocol and as JSON."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.traces import counted, rows
from tools.make_memory_snapshot import encode, make_snapshot

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.base import known_formats

FRAME = {"filename": "/app/a.py", "line": 3, "name": "go"}


def opened(tmp_path: Path, snapshot: object, suffix: str = ".pickle", protocol: int = 4) -> Trace:
    path = tmp_path / f"snapshot{suffix}"
    path.write_bytes(encode(snapshot, suffix, protocol))  # type: ignore[arg-type]
    return inferometer.open(path)


def segment(*blocks: object, **more: object) -> dict[str, Any]:
    found = {"device": 0, "address": 4096, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0)}
    return found | {"total_size": 1, "blocks": [*blocks]} | more


def block(size: int = 512, **more: object) -> dict[str, Any]:
    return {"size": size, "requested_size": 500, "state": "active_allocated", "frames": [FRAME]} | more


@pytest.mark.parametrize(("suffix", "protocol"), [(".pickle", 2), (".pickle", 5), (".json", 0)])
def test_every_form_gives_all_rows(tmp_path: Path, suffix: str, protocol: int) -> None:
    snapshot, _ = make_snapshot(events=60, keep=40)
    trace = opened(tmp_path, snapshot, suffix, protocol)
    [made] = snapshot["segments"]
    assert rows(trace, "memory_blocks", "address", "bytes", "state") == [
        (each["address"], each["size"], each["state"]) for each in made["blocks"]
    ]
    assert rows(trace, "memory_events", "action", "address", "bytes", "time_ns") == [
        (each["action"], each["addr"], each["size"], each["time_us"] * 1000) for each in snapshot["device_traces"][0]
    ]
    assert counted(trace) == {}


def test_stacks_are_one_tree_from_callers_to_called(tmp_path: Path) -> None:
    outer = {"filename": "/app/main.py", "line": 1, "name": "<module>"}
    trace = opened(
        tmp_path, {"segments": [segment(block(frames=[FRAME, outer]), block(frames=[outer]), block(frames=[]))]}
    )
    assert rows(trace, "call_paths", "path_id", "parent_id", "name", "depth") == [
        (0, None, "/app/main.py:1 <module>", 0),
        (1, 0, "/app/a.py:3 go", 1),
    ]
    assert rows(trace, "memory_blocks", "path_id") == [1, 0, None]


def test_blocks_of_old_files_have_a_history_and_no_address(tmp_path: Path) -> None:
    old = {"size": 1024, "state": "active_allocated", "history": [{"real_size": 900, "frames": [FRAME]}]}
    free = {"size": 512, "state": "inactive"}
    trace = opened(tmp_path, {"segments": [segment(old, free, old)]})
    assert rows(trace, "memory_blocks", "address", "requested_bytes", "path_id") == [
        (4096, 900, 0),
        (5120, None, None),
        (5632, 900, 0),
    ]


def test_states_pools_and_addresses_as_they_are_written(tmp_path: Path) -> None:
    waiting = block(state="active_awaiting_free", address=2**64 - 512)
    trace = opened(tmp_path, {"segments": [segment(waiting, segment_pool_id=(0, 3), device=1, segment_type="small")]})
    assert rows(trace, "memory_blocks", "device", "state", "pool", "address") == [
        ("gpu:1", "active_pending_free", "small (0, 3)", -512)
    ]


def test_what_can_not_be_read_is_counted(tmp_path: Path) -> None:
    snapshot = {
        "segments": [segment(block(), block(size=-1), {}, 5), {"blocks": []}, 7],
        "device_traces": [[{"action": "dance", "addr": 1, "size": 2}, {"addr": 3}, {"action": "oom"}], 4],
    }
    trace = opened(tmp_path, snapshot)
    assert counted(trace) == {"unreadable_row": 6, "unknown_action": 1}
    assert rows(trace, "memory_events", "action", "order", "bytes") == [("dance", 0, 2), ("oom", 2, None)]


@pytest.mark.parametrize("document", [[], {}, {"segments": {}}, {"segments": None}, 5])
def test_what_is_no_snapshot_is_an_error(tmp_path: Path, document: object) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(document))
    with pytest.raises(FormatError, match="expected a dict with a list of segments"):
        inferometer.open(path, format="torch-memory")


def test_one_segment_named_again_and_again_is_refused(tmp_path: Path) -> None:
    one = segment(*[block()] * 1000)
    with pytest.raises(FormatError, match="names the same ones again and again"):
        opened(tmp_path, {"segments": [one] * 1000, "device_traces": []})


def test_frames_that_are_shared_are_looked_at_once(tmp_path: Path) -> None:
    frames = [FRAME] * 900
    trace = opened(tmp_path, {"segments": [segment(*(block(frames=frames) for _ in range(500)))]})
    assert set(rows(trace, "memory_blocks", "path_id")) == {899}


def test_a_pickle_of_something_else_is_not_taken(tmp_path: Path) -> None:
    for value in ({"weights": [1, 2]}, ["segments", "blocks"], {"segments": 1}):
        head = pickle.dumps(value)
        assert not any(fmt.sniff(head) for fmt in known_formats().values()), value


@pytest.mark.parametrize("suffix", [".pickle", ".json"])
def test_cut_at_every_byte_is_an_error(tmp_path: Path, suffix: str) -> None:
    data = encode({"segments": [segment(block())], "device_traces": [[]]}, suffix)
    path = tmp_path / "cut"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(FormatError):
            inferometer.open(path, format="torch-memory")
