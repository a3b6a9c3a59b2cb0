"""Every number that `low_occupancy` prints of real captures, by loops over the files' own events."""

from collections import Counter, defaultdict
from math import prod
from pathlib import Path
from statistics import median

import pytest
from tests.truth.raw import Capture, Launch, ask, capture, duration, places, share

from inferometer.names import decode

RULE = "low_occupancy"
MULTIPROCESSORS = {"a100": 108, "h100": 132, "mi250": 104, "mi300": 304, "v100": 80, "triton": 108}
STREAMING = ("elementwise", "norm", "activation", "copy", "reduction", "gather_scatter", "quantize", "rope")
BY_ROW = ("sampling", "softmax", "scan_sort", "random", "moe_routing")
BY_DESIGN = ("collective", "attention_metadata", "memory")


def units(path: Path) -> int | None:
    """What the makers say of these devices; of the two ranks, nothing says what they ran on."""
    return next((count for name, count in MULTIPROCESSORS.items() if path.name.startswith(name)), None)


def without_blocks(launch: Launch, path: Path) -> float:
    count = units(path)
    return max(0.0, 1 - prod(launch.args["grid"]) / count) if count else 0.0


def few_blocks(launch: Launch, path: Path) -> bool:
    return without_blocks(launch, path) > 0.6


def groups(found: Capture) -> list[list[Launch]]:
    """Launches of one kernel, count of blocks and threads that are long and fill little, the most lost time first."""
    alike = defaultdict(list)
    for each in found.launches:
        if each.kind == "kernel" and "grid" in each.args and "spin_kernel" not in each.name:
            alike[each.name, prod(each.args["grid"]), prod(each.args["block"])].append(each)
    kept = {}
    for (name, blocks, threads), members in alike.items():
        family, middle = decode(name).family, median(each.dur_ns for each in members)
        warps = [each.args["est. achieved occupancy %"] for each in members if "est. achieved occupancy %" in each.args]
        few_warps = bool(warps) and sum(warps) / len(warps) <= 15 and family in STREAMING
        if middle < 10_000 or total(members) < 0.005 * found.summed_ns or family in BY_DESIGN:
            continue
        if family in BY_ROW and (blocks >= 16 or middle < 100_000):
            continue
        if few_warps or few_blocks(members[0], found.path):
            kept[-lost(members, found.path), -total(members), name, blocks, threads] = members
    return [members for _, members in sorted(kept.items())]


def total(members: list[Launch]) -> int:
    return sum(each.dur_ns for each in members)


def lost(members: list[Launch], path: Path) -> float:
    return sum(each.dur_ns * without_blocks(each, path) for each in members)


def sentence(members: list[Launch], path: Path) -> str:
    first, where = members[0], places(path)
    blocks, threads = prod(first.args["grid"]), prod(first.args["block"])
    told = []
    if without_blocks(first, path):
        told.append(f"{blocks:,} {'block' if blocks == 1 else 'blocks'} for {units(path)} multiprocessors")
    if not few_blocks(first, path):
        told.append(f"{first.args['est. achieved occupancy %']} % occupancy by the profiler's estimate")
    told.append(f"{threads:,} {'thread' if threads == 1 else 'threads'} in a block")
    times = f"{len(members):,} launches, median {duration(median(each.dur_ns for each in members))}"
    told.append("once" if len(members) == 1 else times)
    ((place, count),) = Counter(where[each.name, each.stream, each.start_ns] for each in members).most_common(1)
    assert count == len(members)
    known = place is not None and not place.startswith("ProfilerStep")
    return (
        f"{decode(first.name).short_name}{f' in {place}' if known else ''}: {', '.join(told)}, "
        f"{duration(total(members))} in all."
    )


@pytest.mark.parametrize(
    ("file", "severity", "has"),
    [
        ("a100_event_sync", "medium", "reduce sum fp16 has fewer blocks than multiprocessors"),
        ("a100_nccl", "info", "cudnn bn_bw_1c11_kernel_new fp32 has fewer blocks than multiprocessors"),
        ("mi300_vit", "medium", "attn fwd (triton) has fewer blocks than multiprocessors"),
        ("h100_vit", "low", "cutlass conv bf16 tensorop 256x64x32 s4 has fewer blocks than multiprocessors"),
    ],
)
def test_each_sentence_is_what_the_file_says(file: str, severity: str, has: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    kinds = groups(found)
    time_ns = sum(map(total, kinds))
    without = sum(lost(members, found.path) for members in kinds) / found.summed_ns
    sentences = [sentence(members, found.path) for members in kinds[:3]]
    sentences.append(f"Together {duration(time_ns)}{found.a_step(time_ns)}.")
    sentences.append(
        f"While they run, multiprocessors without any of their blocks stand for {share(without)} of the GPU time, "
        "unless another stream uses them."
    )
    if not all(few_blocks(members[0], found.path) for members in kinds):
        sentences.append(
            "Whether few warps slow a kernel down, the trace doesn't tell: few may reach the memory's rate."
        )
    assert list(finding.evidence) == sentences
    told = f"long kernels of few blocks or warps take {share(time_ns / found.summed_ns)} of the GPU time: {has}"
    assert (finding.title, finding.size_ns, finding.severity) == (told, time_ns, severity)


@pytest.mark.parametrize(
    "file",
    [
        *("a100_simple_add", "h100_qwen1.5-0.5b", "mi250_minitoy", "mi300_qwen1.5-0.5b", "mi300_resnet_ddp"),
        *("mi300_sglang_qwen3-8b_decode", "mi300_vllm_gpt-oss_decode", "rank0_sampled", "rank1_sampled"),
        *("triton_example", "a100_idle_64", "v100_graph_branches"),
    ],
)
def test_it_is_silent_where_they_leave_little_unused(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    assert sum(lost(members, found.path) for members in groups(found)) < 0.03 * found.summed_ns
    assert ask(found.path, RULE) is None
