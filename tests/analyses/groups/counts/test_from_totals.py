"""Groups from printed sums: by counts only, with what the counts can't say."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.groups.groups import Groups, find_groups
from inferometer.reports.views.view import remarks_of

SPLIT_K = "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
WIDER = "nvjet_tst_128x16_64x11_2x1_v_bz_splitK_TNT"
REDUCE = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)"


def totals(*rows: tuple[str, int], **more: Any) -> list[dict[str, Any]]:
    return [{"section": 0, "kernel": kernel, "count": count, "total_ns": 10 * count, **more} for kernel, count in rows]


def test_followers_as_many_as_their_leaders_are_a_group_by_counts_only() -> None:
    found = find_groups(trace_of(totals=totals((SPLIT_K, 60), (WIDER, 40), (REDUCE, 100), ("other_kernel", 7))))
    (group,) = found.groups
    assert [(member.role, member.count) for member in group.members] == [("split-K GEMM", 100), ("splitK reduce", 100)]
    assert (group.verdict, group.confidence, group.total_ns) == ("counts only", None, 2_000)
    assert group.evidence[0].startswith("By counts only: 2 split-K GEMM kernels have 100 launches")
    assert "by counts only" in remarks_of(found)[0]


def test_a_sum_that_does_not_come_out_is_refused_with_the_number_missing() -> None:
    found = find_groups(trace_of(totals=totals((SPLIT_K, 60), (REDUCE, 100))))
    assert found.groups == ()
    assert "40 split-K GEMM missing" in found.refused[0].why


def test_sections_are_never_added_up() -> None:
    rows = totals((SPLIT_K, 60)) + [row | {"section": 1} for row in totals((REDUCE, 60))]
    assert find_groups(trace_of(totals=rows)).groups == ()
    rows += [row | {"section": 1} for row in totals((WIDER, 60))]
    assert [group.section for group in find_groups(trace_of(totals=rows)).groups] == [1]


def test_a_followers_time_is_shared_out_only_if_asked() -> None:
    trace = trace_of(totals=totals((SPLIT_K, 75), (WIDER, 25), (REDUCE, 100)))
    assert find_groups(trace).groups[0].modelled == ()
    shares = find_groups(trace, split=True).groups[0].modelled
    assert shares == ({"kernel": SPLIT_K, "modelled_ns": 750}, {"kernel": WIDER, "modelled_ns": 250})


def with_others(n: int) -> Groups:
    """Two variants of one kernel whose sum is another's count, among `n` kernels with counts of their own."""
    others = [(f"other_{chr(97 + i // 26)}{chr(97 + i % 26)}", 1_000 + i) for i in range(n)]
    return find_groups(trace_of(totals=totals(("tile_32", 11), ("tile_64", 30), ("closing", 41), *others)))


def test_a_sum_without_a_rule_is_told_only_where_chance_would_hardly_make_it() -> None:
    (group,) = with_others(150).groups
    assert [member.kernels for member in group.members] == [["tile_64", "tile_32"], ["closing"]]
    assert "consistent, no proof: 1 sums tried, chance 0.007" in group.evidence[0]
    assert group.call is None
    (refusal,) = with_others(50).refused
    assert "one fits by chance with about 0.02" in refusal.why


@pytest.fixture(scope="module")
def seed(seeds: Path) -> Groups:
    return find_groups(inferometer.open(seeds / "002_9d4567749f1494f6.txt"))


def why(found: Groups, words: str) -> str:
    (refusal,) = [each for each in found.refused if words in each.why]
    return refusal.why


def test_seed_002_has_the_groups_that_its_author_asked_about(seed: Groups) -> None:
    assert [(group.name, [(member.role, member.count) for member in group.members]) for group in seed.groups] == [
        ("split-K GEMM", [("split-K GEMM", 2_880), ("splitK reduce", 2_880)]),
        (
            "FlashAttention 3 varlen, split",
            [("attention metadata", 2_304), ("attention split", 2_304), ("attention combine", 2_304)],
        ),
        ("FlashAttention 3 varlen", [("attention metadata", 64), ("attention", 64)]),
        ("scan", [("cub scan init", 68), ("cub scan", 68)]),
        ("scan", [("cub scan init", 2), ("cub scan", 2)]),
    ]
    gemm = seed.groups[0]
    assert len(gemm.members[0].parts) == 31
    assert gemm.call is not None
    assert "cublasGemmEx" in gemm.call
    assert [line["line"] for line in gemm.asked] == [263, 264]
    assert [line["line"] for line in seed.groups[1].asked] == [268]


def test_the_unsplit_forward_of_seed_002_has_64_launches_of_the_four_warp_metadata(seed: Groups) -> None:
    split, plain = seed.groups[1:3]
    (part,) = plain.members[0].parts
    assert "prepare_varlen_num_blocks_kernel<(int)4" in part.kernel
    assert (part.count, part.of, part.total_ns) == (64, 576, None)
    counts = Counter({part.kernel.split("(int)")[1][:2].strip(","): part.count for part in split.members[0].parts})
    assert counts == {"8": 1_024, "4": 512, "1": 448, "2": 256, "16": 64}
    assert "31 sequences a warp" in plain.evidence[1]


def test_false_friends_of_seed_002_are_refused_with_the_reason(seed: Groups) -> None:
    assert "a coincidence" in why(seed, "1,024 + 576 + 448 + 256 = 2,304")
    assert "alternatives" in why(seed, "64 + 2,304 = 2,368")
    (copy,) = [each for each in seed.refused if each.count == 2_304 and len(each.kernels) == 1]
    assert "direct_copy_kernel" in copy.kernels[0]
    assert "About 63 of 2,304 are far longer" in copy.why
    cycle = why(seed, "Layer cycle")
    assert re.search(r"silu_and_mul.* 2,368, add \+ rms_norm.* 4,736, index_put.* 4,736\)", cycle)
    assert re.search(r"silu_and_mul.* 65, add \+ rms_norm.* 127, index_put.* 122\.$", cycle)
    assert "83 of 201 kernels have 64 launches" in why(seed, "kernels have 64 launches")
    assert "twice as often" in why(seed, "kernels have 30 launches")
    assert "several ops" in why(seed, "kernels have 74 launches")


def test_time_of_seed_002_is_in_one_group_at_most(seed: Groups) -> None:
    counted = Counter(part.kernel for group in seed.groups for m in group.members for part in m.parts if part.total_ns)
    assert set(counted.values()) == {1}
