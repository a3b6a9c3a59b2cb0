"""Every number that `unfused_elementwise` prints of real captures, by loops over the files' own events."""

from collections import Counter, defaultdict
from fractions import Fraction
from math import prod
from pathlib import Path

import pytest
from tests.truth.chains import Chains, fusible_runs
from tests.truth.raw import Launch, ask, capture, duration, places, share, stretches

from inferometer.names import decode

RULE = "unfused_elementwise"


def find_chains(parts: list[list[Launch]]) -> Chains:
    """All chains of each kind that repeats, what fusing saves the most first."""
    rows = [each.name for part in parts for each in part]
    counts = Counter(rows)
    kinds: Chains = defaultdict(list)
    for run in fusible_runs(parts):
        if 3 <= len(run) <= 64:
            kinds[tuple(each.name for each in run)].append(run)
    often = {
        names: chains
        for names, chains in kinds.items()
        if len(chains) >= max(4, 3 * len(rows) * prod(counts[name] / len(rows) for name in names))
    }
    return dict(sorted(often.items(), key=lambda item: -saved(item[1])))


def total(chains: list[list[Launch]]) -> int:
    return sum(each.dur_ns for chain in chains for each in chain)


def longest(chains: list[list[Launch]]) -> int:
    return sum(max(each.dur_ns for each in chain) for chain in chains)


def saved(chains: list[list[Launch]]) -> int:
    return total(chains) - longest(chains)


def sentence(chains: list[list[Launch]], where: dict[tuple[str, int, int], str | None]) -> str:
    length, count = len(chains[0]), len(chains)
    names = [decode(each.name).short_name for each in chains[0]]
    told = ", ".join(names[:10]) + (", …" if length > 10 else "")
    times: Counter[str] = Counter()
    for chain in chains:
        for each in chain:
            if (place := where[each.name, each.stream, each.start_ns]) is not None:
                times[place] += each.dur_ns
    most = ""
    if times:
        place, time_ns = times.most_common(1)[0]
        most = f"; {share(time_ns / total(chains))} of it in {place}"
    return (
        f"{count:,} times {length} launches ({told}): {duration(total(chains))}, on average "
        f"{duration(Fraction(total(chains), count))}, of which the longest launch has "
        f"{duration(Fraction(longest(chains), count))}{most}."
    )


@pytest.mark.parametrize(
    "file",
    [
        *("a100_nccl", "mi300_resnet_ddp", "v100_graph_branches", "h100_qwen1.5-0.5b", "mi300_qwen1.5-0.5b"),
        "mi300_sglang_qwen3-8b_decode",
    ],
)
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    kinds = list(find_chains(stretches(found)).values())
    count, lengths = sum(map(len, kinds)), sorted({len(chains[0]) for chains in kinds})
    between = " to ".join(str(each) for each in dict.fromkeys((lengths[0], lengths[-1])))
    launches = sum(len(chain) for chains in kinds for chain in chains)
    time_ns, saved_ns = sum(map(total, kinds)), sum(map(saved, kinds))
    assert finding.title == (
        f"chains of unfused kernels (element-wise, norms, copies) take {share(time_ns / found.summed_ns)} of the GPU "
        "time"
    )
    where = places(found.path)
    assert list(finding.evidence) == [
        (
            f"{count:,} chains of {between} launches in a row, {launches:,} launches in all, take {duration(time_ns)}"
            f"{found.a_step(time_ns)}."
        ),
        *(sentence(chains, where) for chains in kinds[:3]),
        (
            "An estimate: a fused kernel needs about as long as the longest of its chain. Then "
            f"{duration(saved_ns)} would be saved, {share(saved_ns / found.summed_ns)} of the GPU time, and the gaps "
            "between the launches."
        ),
    ]
    assert finding.size_ns == time_ns


@pytest.mark.parametrize("file", ["h100_vit", "rank0_sampled", "a100_simple_add"])
def test_it_is_silent_where_little_would_be_saved(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    assert sum(map(saved, find_chains(stretches(found)).values())) < 0.03 * found.summed_ns
    assert ask(found.path, RULE) is None
