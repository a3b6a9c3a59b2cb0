import pytest
from tests.analyses.compare.run_traces import GEMM, HEAD, LAYER, adds_up, changes, kernel_run, kinds, line, timed_run
from tests.traces import trace_of

OTHER_TILE = "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT"
NORM, ADD, FUSED_NORM = "rms_norm_kernel", "add_kernel", "fused_add_rms_norm_kernel"


def layer(*replaced, by):
    """The layer with the kernels `replaced` gone and `by` in the place of the first."""
    at = [name for name, _ in LAYER].index(replaced[0])
    kept = [one for one in LAYER if one[0] not in replaced]
    return [*kept[:at], *by, *kept[at:]]


def pairs(found, kind):
    return [([k for k, _ in m.base], [k for k, _ in m.candidate]) for m in found.matches if m.kind == kind]


def test_a_product_whose_tile_changed_is_renamed_by_its_place():
    found = changes(kernel_run(), kernel_run(layer(GEMM, by=[(OTHER_TILE, 30_000)]), seed=1))
    assert pairs(found, "renamed") == [([GEMM], [OTHER_TILE])]
    renamed = found.contributions[0]
    assert (renamed.name, renamed.kind) == (f"{GEMM} -> {OTHER_TILE}", "renamed")
    assert renamed.basis == "in the same place of the launch order, with as many calls per step"
    assert renamed.delta_ns == pytest.approx(40_000, rel=0.05)
    assert adds_up(found)


def test_two_kernels_that_became_one_are_fused():
    candidate = kernel_run(layer("silu", "mul_kernel", by=[("silu_and_mul", 3_500)]), seed=1)
    found = changes(kernel_run(), candidate)
    assert pairs(found, "fused") == [(["silu", "mul_kernel"], ["silu_and_mul"])]
    fused = line(found, "silu + mul_kernel -> silu_and_mul")
    assert (fused.base_calls, fused.candidate_calls) == (4, 4)
    assert fused.delta_ns == pytest.approx(4 * (3_500 - 5_000), rel=0.05)
    assert adds_up(found)


def test_one_kernel_that_became_two_is_split():
    base = kernel_run(layer("silu", "mul_kernel", by=[("silu_and_mul", 3_500)]), seed=1)
    assert pairs(changes(base, kernel_run()), "split") == [(["silu_and_mul"], ["silu", "mul_kernel"])]


def test_a_product_that_is_called_once_here_and_three_times_in_a_row_there_is_split():
    def layer(product):
        return [("norm", 2_000), *product * 3, ("rope", 2_000), *product, ("silu", 3_000)]

    parts = [("tile_kernel", 5_000), ("sum_kernel", 6_000)]
    found = changes(kernel_run(layer([(GEMM, 10_000)])), kernel_run(layer(parts), seed=1))
    assert pairs(found, "split") == [([GEMM], ["tile_kernel", "sum_kernel"])]
    (split,) = [one for one in found.contributions if one.kind == "split"]
    assert split.delta_ns == pytest.approx(4 * 4 * 1_000, rel=0.15)


def test_what_is_fused_beside_a_renamed_product_is_found():
    by = [(OTHER_TILE, 20_000), ("silu_and_mul", 3_500)]
    found = changes(kernel_run(), kernel_run(layer(GEMM, "silu", "mul_kernel", by=by), seed=1))
    assert pairs(found, "renamed") == [([GEMM], [OTHER_TILE])]
    assert pairs(found, "fused") == [(["silu", "mul_kernel"], ["silu_and_mul"])]


def test_a_kernel_that_is_fused_in_part_of_its_calls_is_in_the_group_with_all_its_time():
    base = [("qkv_kernel", 9_000), (NORM, 2_000), ("flash_kernel", 7_000), (ADD, 1_000), (NORM, 2_000), ("down", 9_000)]
    candidate = [("qkv_kernel", 9_000), (NORM, 2_000), ("flash_kernel", 7_000), (FUSED_NORM, 2_500), ("down", 9_000)]
    found = changes(kernel_run(base), kernel_run(candidate, seed=1))
    assert pairs(found, "fused") == [([ADD, NORM], [FUSED_NORM, NORM])]
    (fused,) = [one for one in found.contributions if one.kind == "fused"]
    assert fused.shared == (NORM,)
    assert fused.delta_ns == pytest.approx(4 * (2_500 - 3_000), rel=0.1)
    assert adds_up(found)


def test_kernels_of_one_run_only_are_new_or_gone():
    more = kernel_run([*LAYER, ("write_log", 4_000)], gap_ns=0, seed=1)
    assert kinds(changes(kernel_run(gap_ns=0), more)) == {"write_log": "new"}
    assert kinds(changes(more, kernel_run(gap_ns=0))) == {"write_log": "gone"}


def test_a_kernel_elsewhere_has_not_taken_the_place_of_one_that_is_gone():
    found = changes(kernel_run(), kernel_run([LAYER[0], ("write_log", 2_000), *LAYER[1:-1]], HEAD, seed=1))
    assert {name: kind for name, kind in kinds(found).items() if kind in ("new", "gone", "renamed")} == {
        "mul_kernel": "gone",
        "write_log": "new",
    }


def test_spellings_of_one_name_are_the_same_kernel():
    base = kernel_run([("void ns::norm<float>(float*, int)", 2_000), *LAYER])
    found = changes(base, kernel_run([("_ZN2ns4normIfEEvPfi", 2_000), *LAYER], seed=1))
    (match,) = [match for match in found.matches if match.base[0][0] != match.candidate[0][0]]
    assert (match.kind, match.basis) == ("same", "same name in another spelling")
    assert kinds(found) == {}


def test_other_template_arguments_under_the_same_short_name_are_renamed():
    old, new = (f"void flash::flash_fwd_splitkv_combine_kernel<Traits<128, {n}, 4>, 4, 1, true>(P)" for n in (64, 32))
    found = changes(kernel_run([*LAYER, (old, 2_000)]), kernel_run([*LAYER, (new, 2_000)], seed=1))
    assert pairs(found, "renamed") == [([old], [new])]


def test_without_an_order_words_and_families_tell_what_became_of_a_kernel():
    def run(kernels, seed):
        return timed_run({name: ("gpu:0", calls, 3_000) for name, calls in kernels}, seed=seed)

    both = [("flash_kernel", 64), ("softmax_kernel", 1)]
    found = changes(
        run([*both, ("silu", 64), ("mul_kernel", 64), (GEMM, 128)], 0),
        run([*both, ("silu_and_mul", 64), (OTHER_TILE, 128)], 1),
    )
    assert pairs(found, "fused") == [(["mul_kernel", "silu"], ["silu_and_mul"])]
    assert pairs(found, "renamed") == [([GEMM], [OTHER_TILE])]
    assert [match.basis for match in found.matches if match.kind == "renamed"] == [
        "the only gemm kernel with as many calls per step in either run"
    ]
    assert adds_up(found)


def test_two_products_with_as_many_calls_are_not_guessed_apart():
    both = {"flash_kernel": ("gpu:0", 64, 3_000)}
    tiles = [GEMM, OTHER_TILE, GEMM.replace("128x256", "64x64"), GEMM.replace("128x256", "192x64")]
    base, candidate = (both | dict.fromkeys(some, ("gpu:0", 64, 9000)) for some in (tiles[:2], tiles[2:]))
    found = changes(timed_run(base), timed_run(candidate))
    assert sorted(kinds(found).values()) == ["gone", "gone", "new", "new"]


def test_host_functions_are_matched_by_name_only():
    found = changes(timed_run({"oncpu": ("host", 9, 900)}), timed_run({"runq": ("host", 9, 900)}))
    assert {(match.kind, match.base or match.candidate) for match in found.matches} == {
        ("gone", (("oncpu", "host"),)),
        ("new", (("runq", "host"),)),
    }


def test_copies_beside_a_renamed_product_make_no_group():
    by = [("Memset (Device)", 1_000), (OTHER_TILE, 20_000)]
    found = changes(kernel_run(gap_ns=0), kernel_run(layer(GEMM, by=by), gap_ns=0, seed=1))
    assert pairs(found, "renamed") == [([GEMM], [OTHER_TILE])]
    assert kinds(found)["Memset (Device)"] == "new"


def test_every_function_of_either_run_is_in_one_match():
    base = kernel_run([*LAYER, ("old", 1_000)])
    candidate = kernel_run(layer("silu", "mul_kernel", by=[("silu_and_mul", 3_500), ("new", 100)]))
    found = changes(base, candidate)
    for side, run in (("base", base), ("candidate", candidate)):
        matched = [key[0] for match in found.matches for key in getattr(match, side)]
        assert sorted(matched) == sorted(set(run.launches.collect()["kernel"]))
    assert all(match.basis for match in found.matches)


def test_streams_are_ordered_apart():
    """What runs on another stream at the same time is no neighbour."""

    def run(names):
        rows = []
        for k in range(60):
            for i, name in enumerate(["a", *names, "z"]):
                rows.append({"kernel": name, "stream": 7, "start_ns": 1_000 * k + 100 * i, "dur_ns": 90})
            rows.append({"kernel": "beside", "stream": 8, "start_ns": 1_000 * k + 150, "dur_ns": 90})
        return trace_of(rows)

    found = changes(run(["silu", "mul_kernel"]), run(["silu_and_mul"]))
    assert pairs(found, "fused") == [(["silu", "mul_kernel"], ["silu_and_mul"])]
