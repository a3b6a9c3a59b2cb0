"""Every number that `split_k_reductions` prints of planted faults, by loops over the files' own events."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.truth.planted import a_step, steps_of, write_planted
from tests.truth.raw import Launch, ask, capture, duration, places, share, stretches

from inferometer.names import decode

RULE = "split_k_reductions"
PRODUCTS = ("gemm", "grouped_gemm", "conv")


def is_reduction(launch: Launch) -> bool:
    return "splitKreduce" in launch.name or "PostGSU" in launch.name


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_each_sentence_is_what_the_file_says(mode: str, tmp_path: Path) -> None:
    path = write_planted(tmp_path, "split-k", layers=6, mode=mode, prefill_every=5)
    found, steps, place_of = capture(path), steps_of(path), places(path)
    groups: dict[tuple[str | None, str], list[tuple[Launch, Launch]]] = defaultdict(list)
    for part in stretches(found):
        for number, each in enumerate(part):
            if is_reduction(each):
                before = part[number - 1]
                assert number > 0
                assert decode(before.name).family in PRODUCTS
                groups[place_of.get((each.name, each.stream, each.start_ns)), before.name].append((before, each))
    reduces = [each for each in found.launches if is_reduction(each)]
    products_ns = sum(before.dur_ns for pairs in groups.values() for before, _ in pairs)
    took_ns = sum(each.dur_ns for each in reduces)
    around_ns = sum(each.dur_ns for step in steps if any(map(is_reduction, step.launches)) for each in step.launches)
    assert sum(map(len, groups.values())) == len(reduces)
    assert around_ns < found.summed_ns  # a prefill splits no product

    sums = sorted(groups.items(), key=lambda item: -sum(each.dur_ns for _, each in item[1]))
    sentences = []
    for (place, product), pairs in sums[:3]:
        own_ns, before_ns = sum(each.dur_ns for _, each in pairs), sum(each.dur_ns for each, _ in pairs)
        sentences.append(
            f"{len(pairs)} reductions after {decode(product).short_name}{f' in {place}' if place else ''}: "
            f"{duration(own_ns)}, {share(own_ns / before_ns)} of the products' time."
        )
    finding = ask(path, RULE)
    assert finding is not None
    assert finding.title == f"split-K reductions take {share(took_ns / around_ns)} of the GPU time of their steps"
    assert list(finding.evidence) == [
        (
            f"{len(reduces)} reductions take {duration(took_ns)}{a_step(took_ns, steps)}, the products before them "
            f"{duration(products_ns)}."
        ),
        *sentences,
    ]
    place = sums[0][0][0]
    assert finding.next == (
        f"Tune the products for their shape{f' in {place}' if place else ''}: fewer parts, or a kernel that adds up in "
        "place (stream-K)."
    )
    assert (finding.size_ns, finding.share, bool(place)) == (took_ns, took_ns / around_ns, mode == "eager")
