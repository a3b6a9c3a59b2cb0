"""Every number that `exposed_collectives` prints of real captures, from the files' own events."""

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from tests.truth.raw import Capture, Launch, ask, capture, duration, exposed, share, size

from inferometer.names import decode

RULE = "exposed_collectives"
WORDS = {
    "allreduce": "all-reduce",
    "broadcast": "broadcast",
    "nccl:all_reduce": "all-reduce",
    "nccl:all_to_all": "all-to-all",
    "nccl:_all_gather_base": "all-gather",
    "nccl:_reduce_scatter_base": "reduce-scatter",
}
BYTES = {"BFloat16": 2, "Float": 4, "Long": 8}
NEXT = {
    "rank0_sampled": "Let two micro-batches take turns",
    "rank1_sampled": "Let two micro-batches take turns",
    "v100_graph_branches": "Let two micro-batches take turns",
    "a100_idle_64": "Record how much it exchanges, and the other ranks: a long all-reduce either moves much",
    "mi300_resnet_ddp": "Let it run while something still computes (data parallel: smaller buckets, bucket_cap_mb)",
}


def word(launch: Launch) -> tuple[str, bool]:
    """Which collective it is, and whether only its caller says so."""
    recorded = launch.args.get("Collective name")
    if recorded is not None:
        return WORDS[recorded], False
    called = [WORDS[name] for _, name in launch.callers if name in WORDS]
    by_name = "send-recv" if "SendRecv" in launch.name else "communication"
    return (called[-1], True) if called else (by_name, False)


def message(launches: list[Launch]) -> str:
    first = launches[0]
    collective, by_caller = word(first)
    args, about = first.args, ["size not recorded"]
    rate = "."
    total_ns = sum(each.dur_ns for each in launches)
    if "dtype" in args:
        moved = max(args["In msg nelems"], args["Out msg nelems"]) * BYTES[args["dtype"]]
        about = [f"{size(moved)} each", args["dtype"], f"{args['Group size']} ranks"]
        rate = (
            f"; {size(moved * len(launches) / total_ns * 1e9)} of message per second, waiting for other ranks included."
        )
    about += ["as its caller names it"] if by_caller else []
    return (
        f"{collective} ({', '.join(about)}; {decode(first.name).short_name}): {len(launches)} times, on average "
        f"{duration(Fraction(total_ns, len(launches)))}, exposed for %s{rate}"
    )


def computing(found: Capture) -> list[Launch]:
    return [each for each in found.launches if each.kind == "kernel" and not each.is_communication]


@pytest.mark.parametrize("name", NEXT)
def test_each_sentence_is_what_the_file_says(name: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{name}.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    talking = [each for each in found.launches if each.is_communication]
    exposed_ns = exposed(computing(found), {"all": talking})["all"]
    by_message, by_word = defaultdict(list), defaultdict(list)
    for each in talking:
        about = [str(each.args.get(key)) for key in ("In msg nelems", "Out msg nelems", "dtype", "Group size")]
        by_message[(*word(each), *about)].append(each)
        by_word[word(each)[0]].append(each)
    times = exposed(computing(found), by_message)
    of_words = exposed(computing(found), by_word)
    most = max(of_words, key=of_words.__getitem__)
    how = "mostly" if 2 * of_words[most] > exposed_ns else "the most of it"
    part = share(exposed_ns / found.window_ns)
    shown = sorted(times.items(), key=lambda item: -item[1])[:3]
    sentences = [
        f"Kernels communicate and none computes for {duration(exposed_ns)}{found.a_step(exposed_ns)}.",
        *(message(by_message[key]) % duration(ns) for key, ns in shown if 10 * ns >= exposed_ns),
        "Other ranks aren't in the trace: whether it waits for them or moves data isn't known.",
    ]
    words = ("copy", "cast", "transpose")
    staging = [
        each.dur_ns
        for each in found.launches
        if each.serves
        and ((each.kind == "memcpy" and "DtoD" in each.name) or decode(each.name).family == "copy")
        and not each.is_communication
        and (each.kind == "memcpy" or any(part in decode(each.name).short_name for part in words))
    ]
    if len(staging) > 1 and sum(staging) >= 0.01 * exposed_ns:
        made = f"{len(staging)} copies and casts that calls of communication make take {duration(sum(staging))}."
        sentences.append(f"Besides them, {made}")
    assert finding.title == (
        f"{found.device} communicates while nothing computes for {part} of its time, {how} in {most}"
    )
    assert list(finding.evidence) == sentences
    assert (finding.size_ns, finding.share) == (exposed_ns, exposed_ns / found.window_ns)
    assert finding.next.startswith(NEXT[name])


@pytest.mark.parametrize("name", ["a100_nccl"])
def test_it_is_silent_where_less_than_a_twelfth_is_exposed(name: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{name}.json.gz")
    talking = [each for each in found.launches if each.is_communication]
    assert exposed(computing(found), {"all": talking})["all"] < 0.08 * found.window_ns
    assert ask(found.path, RULE) is None


def test_two_ranks_that_leave_apart_are_not_compared(shared_data: Path, tmp_path: Path) -> None:
    captures = shared_data / "traces" / "kineto"
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json.gz").write_bytes((captures / f"rank{rank}_sampled.json.gz").read_bytes())
    ranks = [capture(captures / f"rank{rank}_sampled.json.gz") for rank in (0, 1)]
    finding, alone = ask(tmp_path, RULE), ask(ranks[0].path, RULE)
    assert finding is not None
    assert alone is not None
    assert finding.title == alone.title.replace("gpu:0", "gpu:0 of rank 0")
    assert finding.evidence[:-1] == alone.evidence[:-1]
    assert finding.evidence[-1] == (
        "None of it could be matched with other ranks': whether it waits for them or moves data isn't known."
    )
    for collective in ("all-reduce", "all-to-all"):  # four each; of all-gathers there are two, too few to tell
        both = [[each for each in found.launches if word(each)[0] == collective] for found in ranks]
        steps = [[b.end_ns - a.end_ns for a, b in pairwise(sorted(own, key=lambda e: e.start_ns))] for own in both]
        apart = median(abs(first - second) for first, second in zip(*steps, strict=True))
        assert apart > max(5_000, 0.1 * median(each.dur_ns for own in both for each in own))
