"""Every number that `rank_imbalance` prints of planted faults, by loops over the events of the ranks' files."""

import gzip
from collections import defaultdict
from pathlib import Path

import pytest
from tests.kineto_files import COMPACT, call, dump, kernel
from tests.truth.planted import a_step, busy_ns, in_order, steps_of, write_planted
from tests.truth.raw import Launch, ask, capture, duration, share

from inferometer.names import decode

RULE = "rank_imbalance"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def talking(path: Path) -> dict[str, list[Launch]]:
    """Collectives of a rank by kernel, in the order of time."""
    by_kernel: dict[str, list[Launch]] = defaultdict(list)
    for each in in_order(path):
        if decode(each.name).family == "collective":
            by_kernel[each.name].append(each)
    return by_kernel


def compute_ns(path: Path) -> int:
    own = [each for each in capture(path).launches if each.kind == "kernel"]
    return busy_ns(each for each in own if decode(each.name).family != "collective")


def check(folder: Path, ranks: int, *, about_steps: bool) -> None:
    paths = [folder / f"rank{rank}.json.gz" for rank in range(ranks)]
    found = [talking(path) for path in paths]
    waited, lasts, compared = [0] * ranks, [0] * ranks, 0
    for name, launches in found[0].items():
        for together in zip(*(each[name] for each in found), strict=True):
            durations = [each.dur_ns for each in together]
            compared += 1
            if durations.count(min(durations)) == 1:
                last = durations.index(min(durations))
                lasts[last] += 1
                waited[last] += sum(durations) - ranks * min(durations)
        assert len(launches) > 2
    slow = max(range(ranks), key=lambda rank: waited[rank])
    each_ns = waited[slow] // (ranks - 1)
    windows = [capture(path).window_ns for path in paths]
    part = waited[slow] / (sum(windows) - windows[slow])
    computing = [compute_ns(path) for path in paths]
    above = computing[slow] / (sum(computing) / ranks) - 1
    who = "the other rank waited" if ranks == 2 else f"the {ranks - 1} other ranks waited, on average,"
    steps = a_step(each_ns, steps_of(paths[0])) if about_steps else ""
    from_mean = f"{share(abs(above))} {'below' if above < 0 else 'above'} the mean of all"
    late = "" if above > 0.02 else ": that doesn't make it late. Its host is, or it waits for something else"
    finding = ask(folder, RULE)
    assert finding is not None
    device = capture(paths[slow]).device
    assert finding.title == f"{device} of rank {slow} keeps the others waiting for {share(part)} of their time"
    assert list(finding.evidence) == [
        f"It came last in {lasts[slow]} of {compared} collectives; {who} {duration(each_ns)} for it{steps}.",
        f"It computes for {duration(computing[slow])}, {from_mean}{late}.",
        f"Matched across ranks: {compared} all_reduce.",
    ]
    assert (finding.size_ns, finding.share) == (each_ns, part)
    where = "inferometer timeline FOLDER_OF_RANKS" if late else "inferometer compare FILE_OF_A_QUICK_RANK"
    assert where in finding.next


@pytest.mark.parametrize("ranks", [2, 4])
def test_each_sentence_is_what_the_files_say(ranks: int, tmp_path: Path) -> None:
    write_planted(tmp_path, "slow-rank", world=ranks, steps=4)
    check(tmp_path, ranks, about_steps=True)


def test_a_rank_that_is_late_without_computing_longer(tmp_path: Path) -> None:
    for rank in (0, 1):
        late = 200 * rank
        events = []
        for step in range(60):
            at, leaves = 1_000 * step, 1_000 * step + 960
            work = [("k", at + late, 500 - late // 4), (NCCL, at + 500 + late, leaves - at - 500 - late)]
            for number, (name, begins, lasts) in enumerate(work, start=2 * step + 1):
                place = {"stream": 7 + 13 * (name == NCCL), "device": rank, "correlation": number}
                events += [call(ts=str(begins - 8), correlation=number)]
                events += [kernel(name, str(begins), str(lasts), **place)]
        document = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json.gz").write_bytes(gzip.compress(dump(document, COMPACT).encode()))
    check(tmp_path, 2, about_steps=False)
