"""Every number that `casts_and_copies` prints of real captures, by loops over the files' own events."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from tests.truth.chains import is_fusible, runs
from tests.truth.raw import Capture, Launch, ask, capture, duration, places, share, size, stretches

from inferometer.names import decode

RULE = "casts_and_copies"
ATTENTION = ("attention", "attention_prefill", "attention_decode", "linear_attention")
PRODUCTS = ("gemm", "grouped_gemm", "conv")
AROUND = (*ATTENTION, *PRODUCTS, "gemm_epilogue", "attention_combine")
REASONS = (
    "before a product, convolution or attention",
    "after a product, convolution or attention",
    "to fp32 and back",
)
Group = tuple[str, str | None, str]


def is_cast_or_copy(launch: Launch) -> bool:
    known = decode(launch.name)
    words = known.short_name.lower()
    if launch.serves:
        return False
    if known.family == "memory":
        return "dtod" in words
    copies = known.family == "copy" and known.library != "inductor"
    leaves_out = ("fill", "concat", "foreach", "kv", "pad")
    return (
        copies
        and any(word in words for word in ("cast", "copy", "transpose", "contiguous"))
        and not any(word in words for word in leaves_out)
    )


def goes_up(launch: Launch) -> bool:
    known = decode(launch.name)
    dtype = known.dtype or ""
    return is_cast_or_copy(launch) and (dtype.endswith(">fp32") or (dtype == "fp32" and "cast" in known.short_name))


def goes_down(launch: Launch) -> bool:
    return is_cast_or_copy(launch) and (decode(launch.name).dtype or "").startswith("fp32>")


def reasons(parts: list[list[Launch]]) -> dict[int, str]:
    """Why each launch counts, by its id."""
    found: dict[int, str] = {}
    for part in parts:
        for run in runs(part, lambda each: is_fusible(each) or decode(each.name).family == "softmax"):
            if any(map(goes_up, run)) and any(map(goes_down, run)):
                found |= {id(each): REASONS[2] for each in run if goes_up(each) or goes_down(each)}
        position = {id(each): number for number, each in enumerate(part)}
        for run in runs(part, is_cast_or_copy):
            after = part[position[id(run[0])] - 1 : position[id(run[0])]]
            ahead = part[position[id(run[-1])] + 1 :][:1]
            for neighbours, reason in ((after, REASONS[1]), (ahead, REASONS[0])):
                if any(decode(each.name).family in AROUND for each in neighbours):
                    found |= {id(each): reason for each in run}
    return found


def find_groups(found: Capture) -> dict[Group, list[Launch]]:
    """What counts by kernel, place and reason, the most time first; no capture here casts logits to sample."""
    parts, where = stretches(found), places(found.path)
    rows = [each for part in parts for each in part]
    families = ATTENTION if any(decode(each.name).family in ATTENTION for each in rows) else PRODUCTS
    seen, marks = 0, {}
    for each in rows:
        seen += decode(each.name).family in families
        marks[id(each)] = seen
    groups: dict[Group, list[Launch]] = defaultdict(list)
    why = reasons(parts)
    for each in rows:
        if id(each) in why:
            groups[each.name, where[each.name, each.stream, each.start_ns], why[id(each)]].append(each)
    kept = {}
    for key, members in groups.items():
        steps = [marks[id(b)] - marks[id(a)] for a, b in pairwise(members)]
        between = median([step for step in steps if step > 0] or [float("inf")])
        large = key[2] == REASONS[0] and total(members) >= 0.1 * found.summed_ns
        if len(members) >= 4 and (between <= (1.5 if families == ATTENTION else 8) or large):
            kept[key] = members
    return dict(sorted(kept.items(), key=lambda item: -total(item[1])))


def total(launches: list[Launch]) -> int:
    return sum(each.dur_ns for each in launches)


@pytest.mark.parametrize("file", ["mi300_resnet_ddp", "h100_qwen1.5-0.5b", "mi300_qwen1.5-0.5b"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    groups = find_groups(found)
    members = [each for group in groups.values() for each in group]
    sentences = [
        (
            f"{len(members):,} launches that only change a type or a layout take {duration(total(members))}"
            f"{found.a_step(total(members))}."
        ),
    ]
    for (name, place, reason), own in list(groups.items())[:3]:
        where = f" in {place}" if place else ""
        sentences.append(f"{decode(name).short_name}{where}, {reason}: {len(own):,} launches, {duration(total(own))}.")
    moved = [each.args["bytes"] for each in members if each.kind == "memcpy" and "bytes" in each.args]
    if moved:
        sentences.append(f"Of them, {len(moved):,} copies from device to device are known to move {size(sum(moved))}.")
    assert finding.title == f"casts and copies take {share(total(members) / found.summed_ns)} of the GPU time"
    assert list(finding.evidence) == sentences
    assert finding.size_ns == total(members)


@pytest.mark.parametrize("file", ["a100_nccl", "v100_graph_branches", "mi300_sglang_qwen3-8b_decode", "h100_vit"])
def test_it_is_silent_where_they_take_less_than_a_fiftieth(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    assert sum(map(total, find_groups(found).values())) < 0.02 * found.summed_ns
    assert ask(found.path, RULE) is None
