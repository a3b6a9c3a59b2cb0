"""Every number that `repeated_work` prints of loops in real captures, by walks over the files' own events."""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.truth.raw import Capture, Launch, ask, capture, duration, places, share, stretches

from inferometer.names import decode

RULE = "repeated_work"
LEFT_OUT = (
    *("memory", "collective", "gemm", "grouped_gemm", "conv"),
    *("attention", "attention_prefill", "attention_decode", "linear_attention"),
)
OTHERS = {1: "", 2: " and the kernel after it", 3: " and the two kernels after it"}
Loop = tuple[int, list[Launch]]  # launches a turn


def sign(launch: Launch) -> Any:
    return launch.name, launch.args.get("grid"), launch.args.get("block")


def find_loops(found: Capture) -> list[Loop]:
    """Eight equal turns or more without a pause, the shortest turns first; alone on the device, and three of a kind."""
    loops: list[Loop] = []
    taken: set[int] = set()
    parts = stretches(found)
    for length in (1, 2, 3):
        own = [(length, loop) for part in parts for loop in of_length(part, length, taken)]
        taken |= {id(each) for _, loop in own for each in loop}
        loops += own
    begun = [each.start_ns for part in parts for each in part]
    alone = [
        (length, loop)
        for length, loop in loops
        if sum(loop[0].start_ns <= each < loop[-1].end_ns for each in begun) <= 1.5 * len(loop)
    ]
    kinds = Counter((loop[0].name, length) for length, loop in alone)
    return [(length, loop) for length, loop in alone if kinds[loop[0].name, length] >= 3]


def of_length(part: list[Launch], length: int, taken: set[int]) -> list[list[Launch]]:
    def counts(each: Launch) -> bool:
        is_list = "multi_tensor_apply" in each.name
        return id(each) not in taken and not is_list and decode(each.name).family not in LEFT_OUT

    found, first = [], length
    while first < len(part):
        end = first
        while end < len(part) and all(map(counts, (part[end], part[end - length]))):
            if sign(part[end]) != sign(part[end - length]):
                break
            end += 1
        if end - first >= 7 * length:
            found.append(part[first - length : end])
        first = max(end, first) + 1
    return found


def wall(loop: list[Launch]) -> int:
    return loop[-1].end_ns - loop[0].start_ns


def busy(loop: list[Launch]) -> int:
    return sum(each.dur_ns for each in loop)


def saved(loops: list[Loop]) -> int:
    return sum(wall(loop) - busy(loop) // (len(loop) // length) for length, loop in loops)


def sentences(found: Capture, loops: list[Loop]) -> list[str]:
    where = places(found.path)
    kinds = defaultdict(list)
    for length, loop in loops:
        origins = {where[each.name, each.stream, each.start_ns] for each in loop[::length]}
        place = origins.pop() if len(origins) == 1 else None
        kinds[loop[0].name, length, place].append(loop)
    told = []
    for (name, length, place), own in sorted(kinds.items(), key=lambda item: -sum(map(wall, item[1])))[:3]:
        turns = median(len(loop) // length for loop in own)
        times = f"{len(own)} loops of {turns:g} turns (median)" if len(own) > 1 else f"1 loop of {turns} turns"
        at = f" in {place}" if place else ""
        told.append(f"{decode(name).short_name}{OTHERS[length]}{at}: {times}, {duration(sum(map(wall, own)))}.")
    return told


def test_each_sentence_is_what_the_file_says(shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / "v100_graph_branches.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    loops = find_loops(found)
    time_ns, gaps_ns = sum(wall(loop) for _, loop in loops), sum(wall(loop) - busy(loop) for _, loop in loops)
    turns = sorted({len(loop) // length for length, loop in loops})
    assert list(finding.evidence) == [
        (
            f"{len(loops)} loops of {turns[0]} to {turns[-1]} turns, {sum(len(loop) for _, loop in loops)} launches in "
            f"all, take {duration(time_ns)}{found.a_step(time_ns)}; {duration(gaps_ns)} of that is gaps between the "
            "launches."
        ),
        *sentences(found, loops),
        (
            "Whether a turn needs the one before it, the trace doesn't tell. If none does, one batched launch for "
            f"each loop saves the gaps, and at most {duration(saved(loops))}, "
            f"{share(saved(loops) / found.window_ns)} of the wall time, since it takes at least as long as one turn."
        ),
    ]
    assert finding.title == f"loops of equal launches take {share(time_ns / found.window_ns)} of the wall time"
    assert finding.size_ns == time_ns


@pytest.mark.parametrize(
    "file",
    [
        *("a100_idle_64", "a100_nccl", "h100_qwen1.5-0.5b", "h100_vit", "mi300_qwen1.5-0.5b", "mi300_resnet_ddp"),
        *("mi300_sglang_qwen3-8b_decode", "mi300_vllm_gpt-oss_decode", "rank0_sampled", "rank1_sampled"),
    ],
)
def test_it_is_silent_where_little_could_be_saved(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    assert saved(find_loops(found)) < 0.005 * found.window_ns
    assert ask(found.path, RULE) is None
