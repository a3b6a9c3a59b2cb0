"""Faults that can be planted: what each is, where it can be, and the rule of `inferometer findings` that names it.

How a fault is built lies where its work lies: `planted` makes nodes, `player` what changes with time, `ranks` who waits
for whom.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Fault = Literal[
    "none",
    "host-late",
    "sync-points",
    "launch-storm",
    "graph-breaks",
    "casts",
    "unfused-norm",
    "split-k",
    "exposed-copy",
    "slow-collectives",
    "slow-rank",
    "slow-layer",
    "attention-growth",
    "warm-up",
    "low-occupancy",
    "serial-stream",
    "repeated-work",
]


class Planted(NamedTuple):
    """What a fault is, in words, the rule that should name it, and what it needs of a trace."""

    words: str
    rule: str
    modes: tuple[Literal["eager", "graph"], ...] = ("eager", "graph")
    world: int = 1  # at least so many ranks
    batches: int = 1  # at least so many batch sizes


FAULTS: Final[dict[Fault, Planted]] = {
    "host-late": Planted("each decode step waits for the device, then works in Python while it idles", "idle_device"),
    "sync-points": Planted(
        "two .item() in every layer; where decode is a graph, three a request after it", "sync_points"
    ),
    "launch-storm": Planted(
        "before each decode step, penalties for 128 words, one at a time, four tiny kernels each", "launch_bound"
    ),
    "graph-breaks": Planted("every second batch size has no graph and runs eagerly", "graph_breaks", ("graph",), 1, 2),
    "casts": Planted("input and output of each o_proj go to float32 and back", "casts_and_copies"),
    "unfused-norm": Planted("RMSNorm as PyTorch's own operators, nine kernels", "unfused_elementwise"),
    "split-k": Planted("matmuls of decode split their depth 64 times, and sum it all up", "split_k_reductions"),
    "exposed-copy": Planted("64 MB from the host in every decode step, on the stream that computes", "exposed_copies"),
    "slow-collectives": Planted("all-reduces at a twentieth of the rate, as over PCIe", "exposed_collectives", world=2),
    "slow-rank": Planted("the last rank computes 1.3 times as long, and the others wait", "rank_imbalance", world=2),
    "slow-layer": Planted("down_proj of one layer takes four times as long", "slow_sibling"),
    "attention-growth": Planted("attention of decode takes 5 % longer with every step", "attention_growth"),
    "warm-up": Planted("the first step compiles and times eight kernels", "first_step_warm_up"),
    "low-occupancy": Planted("one block of threads looks for the largest of all probabilities", "low_occupancy"),
    "serial-stream": Planted(
        "each MLP has a stream of its own, which waits for the other and is waited for",
        "serialised_stream",
        ("eager",),
    ),
    "repeated-work": Planted("the sampler draws for one request at a time", "repeated_work"),
}


def rule_of(fault: Fault) -> str | None:
    """The rule that names the fault; None without one."""
    return FAULTS[fault].rule if fault in FAULTS else None
