"""Every number that `exposed_copies` prints of real captures, from the files' own events."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.truth.raw import Launch, ask, capture, duration, exposed, share, size

RULE = "exposed_copies"
USERS_FILE = "train_ddp.py("
LARGE_BYTES = 1 << 20


def name(launch: Launch) -> str:
    frames = [name for kind, name in launch.callers if kind == "frame" and USERS_FILE in name]
    told = " in ".join([*launch.ops[:1], *frames[-1:]])
    return f"{launch.name} by {told}" if told else launch.name


def sentence(copies: list[Launch], exposed_ns: int) -> str:
    of, caller = name(copies[0]), "" if " by " in name(copies[0]) else " by an unknown caller"
    part = ", part of communication" if copies[0].serves else ""
    known = [each for each in copies if each.kind == "memcpy" and each.args.get("bytes") and each.dur_ns]
    moved = sum(int(each.args["bytes"]) for each in known)
    words = ""
    if moved:
        words = "; they move " if len(known) == len(copies) else f"; {len(known)} of them are known to move "
        words += size(moved)
        if moved >= LARGE_BYTES * len(known):
            words += f" at {size(moved / sum(each.dur_ns for each in known) * 1e9)}/s"
    return f"{of}{caller}{part}: {len(copies):,} times, exposed for {duration(exposed_ns)}{words}."


@pytest.mark.parametrize("file", ["mi300_resnet_ddp", "v100_graph_branches", "a100_idle_64"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    kernels = [each for each in found.launches if each.kind == "kernel"]
    copies = [each for each in found.launches if each.kind != "kernel"]
    exposed_ns = exposed(kernels, {"all": copies})["all"]
    groups = defaultdict(list)
    for each in copies:
        groups[name(each), each.serves].append(each)
    times = sorted(exposed(kernels, groups).items(), key=lambda item: -item[1])
    (first, _), first_ns = times[0]
    sets = " and sets memory" if any(ns and groups[key][0].kind == "memset" for key, ns in times) else ""
    how = "mostly" if 2 * first_ns > exposed_ns else "the most of it in"
    assert finding.title == (
        f"{found.device} only copies{sets} for {share(exposed_ns / found.window_ns)} of its time, {how} {first}"
    )
    assert list(finding.evidence) == [
        f"Nothing else runs during {duration(exposed_ns)} of copies and sets{found.a_step(exposed_ns)}.",
        *(sentence(groups[key], ns) for key, ns in times[:3] if 10 * ns >= exposed_ns),
    ]
    assert (finding.size_ns, finding.share) == (exposed_ns, exposed_ns / found.window_ns)


@pytest.mark.parametrize("file", ["a100_nccl", "rank0_sampled", "h100_qwen1.5-0.5b"])
def test_it_is_silent_where_less_than_a_fiftieth_is_exposed(file: str, shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    kernels = [each for each in found.launches if each.kind == "kernel"]
    copies = [each for each in found.launches if each.kind != "kernel"]
    assert exposed(kernels, {"all": copies})["all"] < 0.02 * found.window_ns
    assert ask(found.path, RULE) is None
