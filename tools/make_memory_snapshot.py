"""Writes a snapshot of PyTorch's allocator that is known exactly, in the layout of `torch.cuda.memory._snapshot()`.

    python -m tools.make_memory_snapshot OUT [--seed N] [--events N] [--keep N]

OUT ends in .pickle or .json. Blocks live and die at random; of the events only the last `--keep` are written, as
PyTorch keeps them. `make_snapshot` gives the truth next to it: bytes after each event that was kept, and who held them.
"""

import argparse
import json
import pickle
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

_ROUND = 512
_BASE = 0x7F0000000000
_STACKS = ("weights", "attention", "mlp", "optimizer")


@dataclass
class Truth:
    """`curve[i]`: bytes after i of the events that were kept; `held[i]`: the same by function."""

    curve: list[int] = field(default_factory=list)
    held: list[Counter[str]] = field(default_factory=list)
    requested: int = 0
    free: int = 0


def stack(name: str) -> list[dict[str, Any]]:
    """Innermost frame first: C++, PyTorch's Python, the program's function of this name, its main."""
    return [
        {"filename": "", "line": 0, "name": "c10::cuda::allocate"},
        {"filename": "/venv/lib/torch/nn/functional.py", "line": 7, "name": "linear"},
        {"filename": "/app/model.py", "line": 10 + len(name), "name": name},
        {"filename": "/app/main.py", "line": 3, "name": "<module>"},
    ]


def make_snapshot(seed: int = 0, events: int = 400, keep: int = 200) -> tuple[dict[str, Any], Truth]:
    """A snapshot of one device, and what is in it."""
    rng, stacks = Random(seed), {name: stack(name) for name in _STACKS}
    blocks: list[dict[str, Any]] = []
    living: list[int] = []
    trace: list[dict[str, Any]] = []
    states: list[Counter[str]] = []  # by function, after each event
    owner: dict[int, str] = {}  # of each living block
    now = 1_700_000_000_000_000
    while len(trace) < events:
        begun = len(trace)
        now += rng.randrange(1, 50)
        if living and rng.random() < 0.45:
            block = blocks[living.pop(rng.randrange(len(living)))]
            frames = stacks[owner[block["address"]]]
            trace += [_event(action, block, now, frames) for action in ("free_requested", "free_completed")]
            block |= {"state": "inactive", "requested_size": 0, "frames": []}
            del owner[block["address"]]
        else:
            name, asked = rng.choice(_STACKS), rng.randrange(1, 5 * _ROUND)
            size = -(-asked // _ROUND) * _ROUND
            address = blocks[-1]["address"] + blocks[-1]["size"] if blocks else _BASE
            block = {"address": address, "size": size, "requested_size": asked, "state": "active_allocated"}
            blocks.append(block | {"frames": stacks[name]})
            living.append(len(blocks) - 1)
            owner[address] = name
            trace.append(_event("alloc", block, now, stacks[name]))
        sizes = {block["address"]: block["size"] for block in blocks if block["address"] in owner}
        held: Counter[str] = Counter()
        for address, name in owner.items():
            held[name] += sizes[address]
        before = states[-1] if states else Counter[str]()
        states += [before] * (len(trace) - begun - 1) + [held]
    return _written(blocks, trace, keep), _truth(blocks, states, len(trace), keep)


def _event(action: str, block: dict[str, Any], now: int, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "action": action,
        "addr": block["address"],
        "size": block["size"],
        "stream": 0,
        "time_us": now,
        "frames": frames,
    }


def _written(blocks: list[dict[str, Any]], trace: list[dict[str, Any]], keep: int) -> dict[str, Any]:
    total = sum(block["size"] for block in blocks)
    active = sum(block["size"] for block in blocks if block["state"] != "inactive")
    segment = {
        "device": 0,
        "address": _BASE,
        "total_size": total,
        "allocated_size": active,
        "active_size": active,
        "requested_size": sum(block["requested_size"] for block in blocks),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    return {
        "segments": [segment],
        "device_traces": [trace[max(0, len(trace) - keep) :]],
        "allocator_settings": {"expandable_segments": False},
        "external_annotations": [],
    }


def _truth(blocks: list[dict[str, Any]], states: list[Counter[str]], events: int, keep: int) -> Truth:
    first = max(0, events - keep)
    each = [states[first - 1] if first else Counter[str](), *states[first:]]
    return Truth(
        curve=[sum(held.values()) for held in each],
        held=each,
        requested=sum(block["requested_size"] for block in blocks if block["state"] != "inactive"),
        free=sum(block["size"] for block in blocks if block["state"] == "inactive"),
    )


def encode(snapshot: dict[str, Any], suffix: str, protocol: int = 4) -> bytes:
    """As a file that ends so."""
    return json.dumps(snapshot).encode() if suffix == ".json" else pickle.dumps(snapshot, protocol)


def main() -> None:
    """Write one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for name, default in (("seed", 0), ("events", 400), ("keep", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    snapshot, truth = make_snapshot(asked.seed, asked.events, asked.keep)
    asked.out.write_bytes(encode(snapshot, asked.out.suffix))
    print(f"peak {max(truth.curve):,} bytes, at the end {truth.curve[-1]:,}")


if __name__ == "__main__":
    main()
