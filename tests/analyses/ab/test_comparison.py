"""An A/B by call path: what each path took, whether it differs, where that comes from, and what is reported."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.analyses.ab.runs import Call, interleaved, measured, noisy_run, op, passes_of

from inferometer.analyses.ab.comparison import PathComparison, compare_paths
from inferometer.analyses.ab.measurement import AGREEMENT, BUSY, CALLS, ERRORS, PASSES, PathMeasurement
from inferometer.analyses.ab.root import median_interval
from inferometer.analyses.ab.rows import PathRow
from inferometer.errors import InputError
from inferometer.reports.delimited import render_csv
from inferometer.reports.markdown import render_markdown
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import facts_of, remarks_of

STYLE = re.compile(r"\x1b\[[0-9;]*m")
FACTS = {"model": "tiny-llama", "device": "cpu", "dtype": "float32", "batch": 2, "prompt_tokens": 16, "new_tokens": 5}


def simple(own: Sequence[int], leaf: Sequence[int], backend: str | None = None) -> list[Call]:
    """A root that takes `own` by itself and calls `norm` once, for each repetition."""
    return [Call("root", mine, [op("norm", below, backend)]) for mine, below in zip(own, leaf, strict=True)]


def row_of(found: PathComparison, path: str) -> PathRow:
    return next(row for row in found.rows if row.path == path)


def noisy_pair(seed: int, *, slow: Mapping[str, float], rare: float = 0.003, repetitions: int = 10) -> PathMeasurement:
    draw = np.random.default_rng(seed)

    def run(arm: str, level: float) -> Call:
        return noisy_run(draw, slow=slow if arm == "triton" else {}, rare=rare, level=level)

    return measured(interleaved(draw, run, repetitions=repetitions, drift=0.02))


def adds_up(found: PathComparison) -> None:
    """Own times and their differences make those of every path, exactly, in whole nanoseconds."""
    rows = found.as_json()["paths"]
    depths = [row["depth"] for row in rows]
    for i, row in enumerate(rows):
        end = next((j for j in range(i + 1, len(rows)) if depths[j] <= depths[i]), len(rows))
        below = rows[i:end]
        for arm, own in row["arms"].items():
            for total, part in (("host_ns", "host_self_ns"), ("time_ns", "self_ns"), ("steady_ns", "steady_self_ns")):
                assert isinstance(own[total], int)
                assert own[total] == sum(each["arms"][arm][part] for each in below if arm in each["arms"])
        for arm, versus in row["candidates"].items():
            assert versus["difference_ns"] == sum(each["candidates"][arm]["self_difference_ns"] for each in below)
    for arm, differences in found.as_json()["differences"].items():
        assert len({each["path"] for each in differences}) == len(differences), arm


def test_times_are_means_of_repetitions_and_own_times_add_up_to_the_root() -> None:
    found = compare_paths(
        measured({"torch": simple([10, 11, 11], [100, 101, 101]), "triton": simple([7] * 3, [50] * 3)})
    )
    root, norm = found.rows
    assert (root.arms["torch"].host_ns, root.arms["torch"].self_ns) == (111, 11)
    assert norm.arms["torch"].host_ns == 100  # 100.67, but 111.33 in all is 111, of which 10.67 is 11
    assert root.arms["torch"].interval_ns == pytest.approx((111.333 - 2.868, 111.333 + 2.868), abs=0.01)
    assert (norm.arms["torch"].median_call_ns, norm.arms["torch"].p95_call_ns) == (101, 101)
    assert norm.arms["torch"].share == pytest.approx(100 / 111)
    assert found.clock == "host"
    adds_up(found)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_times_are_conserved_to_the_nanosecond_whatever_is_pooled(on_gpu: bool) -> None:
    draw = np.random.default_rng(0)
    arms = {arm: [noisy_run(draw, slow={}, rare=0.02) for _ in range(7)] for arm in ("torch", "triton", "compile")}
    for pool_layers in (True, False):
        found = compare_paths(measured(arms, on_gpu=on_gpu), pool_layers=pool_layers)
        adds_up(found)
        for arm, calls in arms.items():
            total = sum(_whole(call) for call in calls) / 7
            assert found.rows[0].arms[arm].time_ns == pytest.approx(total, abs=2)


def _whole(call: Call) -> int:
    return call.own_ns + sum(map(_whole, call.below))


def test_on_a_gpu_spans_are_compared_and_on_a_cpu_all_clocks_are_the_hosts() -> None:
    arms = {
        "torch": simple([1000] * 5, [9000, 9010, 9020, 9010, 9000]),
        "triton": simple([1000] * 5, [4500] * 5, "triton"),
    }
    busy = pl.DataFrame(
        [("torch", "root", 2, 14_000, 600, 6, 4_096), ("triton", "root.norm", 1, 4_000, 0, 1, None)], BUSY, orient="row"
    )
    gpu, cpu = compare_paths(measured(arms, on_gpu=True, busy=busy)), compare_paths(measured(arms))
    assert (gpu.clock, cpu.clock) == ("span", "host")
    assert row_of(gpu, "root.norm").arms["torch"].host_ns == 901  # launching, of the mean 900.8
    on_gpu, on_cpu = (row_of(each, "root").arms["torch"] for each in (gpu, cpu))
    assert (on_gpu.span_ns, on_gpu.time_ns) == (10_008, 10_008)
    assert (on_gpu.device_busy_ns, on_gpu.kernels) == (7_000, 3)  # the recorded pass called it twice
    assert (on_gpu.gap_ns, on_gpu.allocated_bytes) == (300, 2_048)
    assert row_of(gpu, "root.norm").arms["triton"].allocated_bytes is None
    assert (on_cpu.host_ns, on_cpu.span_ns, on_cpu.device_busy_ns, on_cpu.kernels) == (10_008, 10_008, 10_008, None)
    assert row_of(gpu, "root.norm").arms["torch"].device_busy_ns is None  # not recorded, and not taken from elsewhere
    assert "times of launching" in " ".join(remarks_of(gpu))
    assert "are the same" in " ".join(remarks_of(cpu))
    assert ("Compared", "device span, 5 repetitions") in facts_of(gpu)


def test_where_the_device_was_held_whole_runs_are_told_beside_its_own_time() -> None:
    """Spans without the gaps of launching, and what users see, which has them."""
    arms = {"torch": simple([10] * 5, [90] * 5), "triton": simple([10] * 5, [45] * 5)}
    phases = [("torch", 5_000_000, 5_500_000), ("triton", 7_500_000, 9_000_000)]
    passes = pl.DataFrame(
        [(arm, n, "decode", plain + n, scoped) for arm, plain, scoped in phases for n in range(5)],
        PASSES,
        orient="row",
    )
    facts = {**FACTS, "short_waits": {"torch": 0.0, "triton": 0.027}}
    found = compare_paths(replace(measured(arms, on_gpu=True), passes=passes, facts=facts))
    (verdict,) = [text for name, text in facts_of(found) if name == "Verdict"]
    assert verdict.startswith("triton: faster, 0.")
    assert "; run as it is, launches included, 1.5 times (1.500 to 1.500), slower; " in verdict
    said = " ".join(remarks_of(found))
    assert "spans have no gaps that launching makes. Whole runs have them." in said
    assert "triton: the host was late in 2.7 % of the stretches" in said
    assert "torch: the host was late" not in said
    assert [each.overhead for each in found.passes] == [None, None]  # the waits are in it
    found = compare_paths(replace(measured(arms, on_gpu=True), passes=passes))
    assert "A span has gaps between kernels in it." in " ".join(remarks_of(found))
    assert "launches included" not in dict(facts_of(found))["Verdict"]


def test_spans_of_some_calls_alone_are_not_compared() -> None:
    made = measured({"torch": simple([10] * 3, [90] * 3), "triton": simple([10] * 3, [90] * 3)}, on_gpu=True)
    some = made.calls.with_columns(pl.when(pl.col("path") == "root").then("span_ns").alias("span_ns"))
    found = compare_paths(PathMeasurement(made.arms, some, made.passes))
    assert found.clock == "host"
    assert found.rows[0].arms["torch"].span_ns is None
    assert "6 calls have no device span" in " ".join(remarks_of(found))


def test_a_path_of_one_arm_has_no_ratio_and_counts_with_its_caller() -> None:
    base = [Call("root", 100 + i, [op("norm", 500 + i), op("add", 100), op("mlp", 1000 + 5 * i)]) for i in range(6)]
    fused = [Call("root", 100 - i, [op("add_norm", 400 + i, "triton"), op("mlp", 1000 + 5 * i)]) for i in range(6)]
    found = compare_paths(measured({"torch": base, "triton": fused}))
    assert [row.name for row in found.rows] == ["root", "norm", "add", "add_norm", "mlp"]
    norm, new = (row_of(found, f"root.{name}").versus["triton"] for name in ("norm", "add_norm"))
    assert (norm.ratio, norm.verdict, norm.absent) == (None, None, "not called by triton")
    assert (new.ratio, new.verdict, new.absent) == (None, None, "not called by torch")
    assert (norm.is_own, new.is_own) == (False, False)
    (difference,) = found.differences["triton"]
    assert (difference.path, difference.gone, difference.new) == ("root", ("norm", "add"), ("add_norm",))
    assert (difference.base_ns, difference.candidate_ns, difference.difference_ns) == (705, 500, -205)
    assert difference.share == 1
    json_norm = next(row for row in found.as_json()["paths"] if row["name"] == "norm")
    assert list(json_norm["arms"]) == ["torch"]
    assert (json_norm["ratio"], json_norm["verdict"]) == (None, None)
    page = render_terminal(found, is_terminal=False)
    assert re.search(r"root \(norm, add -> add_norm\)", page)
    assert re.search(r"502 ns +- +- +- +gone", page)
    assert "gone: not called by the candidate. new: not called by torch." in page
    adds_up(found)


def test_a_region_compiled_into_one_is_compared_as_one() -> None:
    apart = [Call("root", 10, [Call("mlp", 50, [op(name, 100 + i) for name in "abcd"])]) for i in range(5)]
    whole = [Call("root", 10, [Call("mlp", 300 + i)]) for i in range(5)]
    found = compare_paths(measured({"torch": apart, "compile": whole}))
    (difference,) = found.differences["compile"]
    assert (difference.path, difference.difference_ns) == ("root.mlp", 302 - 458)
    assert "mlp (without a, b, c and 1 more)" in render_terminal(found, is_terminal=False)
    assert row_of(found, "root.mlp").versus["compile"].verdict == "faster"


def test_the_backend_of_every_path_is_that_which_ran_with_counts_where_it_was_several() -> None:
    refused = "torch (triton: head size 80)"
    runs = [
        Call("root", 10, [op("attention", 100, refused), op("attention", 100, "triton"), op("attention", 90, refused)])
    ]
    found = compare_paths(measured({"torch": [Call("root", 10, [op("attention", 100)] * 3)], "triton": runs}))
    row = row_of(found, "root.attention")
    assert row.arms["torch"].backend == "torch"
    assert row.arms["triton"].backend == f"{refused} x 2, triton x 1"
    assert row_of(found, "root").arms["triton"].backend is None
    assert f"triton: attention ran on {refused}." in remarks_of(found)


def test_layers_are_added_up_with_the_shortest_and_the_longest_beside() -> None:
    def run(*times: int) -> Call:
        return Call("root", 5, [Call(f"layers.{i}", 0, [op("mlp", ns)]) for i, ns in enumerate(times)])

    runs = [run(100, 300, 80), run(110, 200, 90), run(120, 5_000, 70)]  # one call of layer 1 was interrupted
    measurement = measured({"torch": runs, "triton": runs})
    pooled = row_of(compare_paths(measurement), "root.layers.*.mlp").arms["torch"]
    assert pooled.calls == 3
    assert pooled.layers is not None
    assert (pooled.layers.count, pooled.layers.min_layer, pooled.layers.min_ns) == (3, "2", 80)
    assert (pooled.layers.max_layer, pooled.layers.max_ns) == ("1", 300)
    apart = compare_paths(measurement, pool_layers=False)
    assert row_of(apart, "root.layers.1.mlp").arms["torch"].layers is None
    assert [row.depth for row in apart.rows] == [0, 1, 2, 1, 2, 1, 2]
    assert "--layers apart" in render_terminal(compare_paths(measurement), is_terminal=False)


def test_an_interruption_hides_no_difference_and_is_still_in_the_time() -> None:
    def run(i: int, each: int, waits: int) -> Call:
        return Call("root", 100 + i % 2, [op("norm", each + i - k + (waits if k == 3 else 0)) for k in range(20)])

    arms = {
        "torch": [run(i, 1000, 4_000_000 if i == 4 else 0) for i in range(6)],
        "triton": [run(-i, 1200, 9_000_000 if i in (0, 2) else 0) for i in range(6)],
    }
    found = compare_paths(measured(arms))
    norm = row_of(found, "root.norm")
    assert {row.versus["triton"].verdict for row in found.rows} == {"slower"}
    assert norm.arms["torch"].time_ns - norm.arms["torch"].steady_ns == pytest.approx(
        (4_000_000 - 2 * 1100) / 6, abs=200
    )
    assert norm.arms["torch"].steady_ns == pytest.approx(20 * 993 + 2 * 1100 / 6, abs=200)  # it keeps 3 usual times
    assert [each.path for each in found.differences["triton"]] == ["root.norm"]
    (said,) = [each for each in remarks_of(found) if "Interruptions" in each]
    assert re.search(r"9\d\.\d % of torch, 9\d\.\d % of triton", said)
    adds_up(found)


def test_what_interrupts_a_much_faster_or_slower_arm_is_taken_out_by_its_own_usual_time() -> None:
    def run(i: int, each: int, waits: int) -> Call:
        return Call("root", each + waits * (i == 2), [op("norm", each + (waits if k == i else 0)) for k in range(20)])

    arms = {"torch": [run(i, 1000, 40_000) for i in range(5)], "interpreted": [run(i, 90_000, 0) for i in range(5)]}
    arms["compile"] = [run(i, 500, 9_000) for i in range(5)]
    root, norm = compare_paths(measured(arms)).rows
    # a call of 3 usual times stays in each repetition, and of the root's own time in one
    assert norm.arms["torch"].steady_ns == pytest.approx(19 * 1000 + 3 * 1000, rel=0.02)
    assert norm.arms["compile"].steady_ns == pytest.approx(19 * 500 + 3 * 1000, rel=0.1)  # one limit with the base
    assert norm.arms["interpreted"].steady_ns == norm.arms["interpreted"].time_ns == 20 * 90_000
    assert root.arms["torch"].steady_self_ns == pytest.approx(1000 * (4 + 3) / 5, rel=0.02)


def test_a_call_that_is_long_in_every_repetition_is_no_interruption() -> None:
    def run(i: int, extra: int) -> Call:
        return Call("root", 100, [op("norm", 1000 + i), op("norm", 100_000 + extra + i), op("norm", 1000 - i)])

    arms = {"torch": [run(i, 0) for i in range(6)], "triton": [run(-i, 30_000) for i in range(6)]}
    norm = row_of(compare_paths(measured(arms)), "root.norm")
    assert norm.arms["triton"].steady_ns == norm.arms["triton"].time_ns
    assert norm.versus["triton"].verdict == "slower"


def test_equal_arms_rarely_differ_though_calls_are_interrupted_and_the_machine_drifts() -> None:
    found = [compare_paths(noisy_pair(seed, slow={})) for seed in range(24)]
    false = sum(any(row.versus["triton"].verdict in ("faster", "slower") for row in each.rows) for each in found)
    assert false <= 4  # of 24, where 5 % are allowed: more in one of 500


def test_a_planted_delay_is_found_first_with_its_size_and_its_callers_agree() -> None:
    ratios_held = sizes_held = 0
    for seed in range(12):
        found = compare_paths(noisy_pair(100 + seed, slow={"silu_mul": 1.5}))
        first = found.differences["triton"][0]
        assert first.path == "completion.generate.decode.forward.layers.*.mlp.silu_mul"
        assert not {each.path for each in found.differences["triton"]} & set(_callers(first.path))
        row = row_of(found, first.path)
        versus = row.versus["triton"]
        assert versus.verdict == "slower"
        assert versus.interval is not None
        assert first.interval_ns is not None
        planted_ns = 0.5 * 6 * 20_000
        ratios_held += versus.interval[0] <= 1.5 <= versus.interval[1]
        sizes_held += first.interval_ns[0] <= planted_ns <= first.interval_ns[1]
        adds_up(found)
    assert ratios_held >= 9  # 95 % of 12 are 11.4; fewer than 9 in one of 400
    assert sizes_held >= 9


def _callers(path: str) -> list[str]:
    names = path.split(".")
    return [".".join(names[:i]) for i in range(1, len(names))]


@pytest.mark.parametrize(("repetitions", "verdict"), [(1, "too few"), (2, "too few"), (3, "slower")])
def test_fewer_than_three_repetitions_say_nothing(repetitions: int, verdict: str) -> None:
    arms = {
        "torch": simple([10, 11, 12][:repetitions], [500, 501, 500][:repetitions]),
        "triton": simple([10, 12, 11][:repetitions], [5000, 5001, 5000][:repetitions]),
    }
    found = compare_paths(measured(arms))
    versus = row_of(found, "root.norm").versus["triton"]
    assert versus.verdict == verdict
    assert (versus.interval is None) is (repetitions < 3)
    assert bool(found.differences["triton"]) is (repetitions == 3)
    assert any("too few" in each for each in remarks_of(found)) is (repetitions < 3)


def test_only_repetitions_that_all_arms_have_are_compared() -> None:
    found = compare_paths(measured({"torch": simple([10] * 4, [50] * 4), "triton": simple([10] * 3, [50] * 3)}))
    assert found.repetitions == 3
    assert "1 repetitions that not all arms have are left out." in remarks_of(found)


def test_a_path_that_is_not_called_in_every_repetition_is_compared_where_both_call_it() -> None:
    rare = [Call("root", 10, [op("cache", 100 + i)] if i != 1 else []) for i in range(5)]
    found = compare_paths(measured({"torch": rare, "triton": simple([10] * 5, [9] * 5)}))
    both = compare_paths(
        measured({"torch": rare, "triton": [Call("root", 10, [op("cache", 300 - i)]) for i in range(5)]})
    )
    assert row_of(found, "root.cache").arms["torch"].calls == 0.8
    versus = row_of(both, "root.cache").versus["triton"]
    assert (versus.pairs, versus.verdict) == (4, "slower")
    assert "Not called in every repetition: root.cache." in render_terminal(both, is_terminal=False)


def test_errors_are_the_worst_below_a_path_and_a_wrong_answer_is_said_before_any_time() -> None:
    def run(i: int) -> Call:
        layers = [Call(f"layers.{k}", 1, [op("norm", 100 + i), op("mlp", 50)]) for k in range(2)]
        return Call("root", 1, [*layers, op("head", 70)])

    arms = {"torch": [run(i) for i in range(3)], "triton": [run(-i) for i in range(3)]}
    errors = [
        ("triton", "root.layers.0.norm", 3, 1e-6, 1e-7, 1e-5, None, None),
        ("triton", "root.layers.1.norm", 3, 0.5, 0.25, 1e-5, 2, "the error is 0.25, expected at most 1e-05"),
        ("triton", "root.head", 3, 1.0, float("nan"), 1e-2, None, None),
        ("triton", "root.elsewhere", 1, 9.0, 9.0, 1e-5, None, None),
    ]
    found = compare_paths(measured(arms, errors=pl.DataFrame(errors, ERRORS, orient="row")))
    of = {row.path: row.versus["triton"].error for row in found.rows}
    assert of["root.layers.*.norm"].max_error == of["root.layers.*"].max_error == 0.5
    assert of["root.layers.*.mlp"].max_error is None
    assert of["root"].max_error == 1.0
    assert np.isnan(of["root"].normalised_error or 0)  # no number is worse than any
    assert (of["root.layers.*"].tolerance, of["root"].tolerance) == (1e-5, None)
    assert of["root"].failure == errors[1][7]
    assert not found.is_good
    assert remarks_of(found)[0].startswith("triton is WRONG at root.layers.*.norm, call 2: the error is 0.25")
    assert dict(facts_of(found))["Verdict"] == "triton: WRONG at the root; wrong answers at 1 path."
    assert "Checked, but not called in the timed passes: root.elsewhere." in remarks_of(found)
    page = render_terminal(found, is_terminal=False)
    assert re.search(r"WRONG .*· · norm", page)
    assert re.search(r"WRONG .* root *$", page, re.MULTILINE)
    assert not re.search(r"WRONG .*· layers", page)


def whole_run() -> PathMeasurement:
    """Three arms, with everything that a measurement may have."""
    draw = np.random.default_rng(3)
    slow = {"torch": {}, "triton": {"attention": 1.5}, "rms_norm=triton,attention=compile": {"attention": 0.5}}
    arms = {arm: [noisy_run(draw, slow=each, rare=0.001) for _ in range(6)] for arm, each in slow.items()}
    passes = {
        arm: {
            "prefill": [(int(1e6 * f), int(1.1e6 * f)) for f in (1, 1.01, 0.99, 1.02, 1, 0.98)],
            "decode": [(int(4e6 * f), int(4.2e6 * f)) for f in (1, 1.02, 0.99, 1.01, 1, 0.98)],
        }
        for arm in slow
    }
    agreement = [(arm, 32, 32 - i, 0, 1e-9, 2e-8, 1e-5) for i, arm in enumerate(list(slow)[1:])]
    return measured(
        arms,
        passes=passes_of(passes),
        agreement=pl.DataFrame(agreement, AGREEMENT, orient="row"),
        facts={**FACTS, "order": [["torch", "triton"], ["triton", "torch"]]},
        ended="interrupted in repetition 7",
        refused={"triton": ["triton has no linear"]},
        stores={"torch": "runs/torch.ifm"},
        notes=["Kernels are interpreted: their times say nothing."],
    )


def test_tokens_per_second_come_from_passes_without_scopes_and_scopes_have_a_cost() -> None:
    found = compare_paths(whole_run())
    json_ = found.as_json()
    phases = json_["root"]["arms"]["torch"]["phases"]
    assert list(phases) == ["prefill", "decode", "whole"]
    assert phases["prefill"]["tokens_per_s"] == pytest.approx(2 * 16 / 1e-3)
    assert phases["decode"]["tokens_per_s"] == pytest.approx(2 * 4 / 4e-3)  # prefill gives the first of 5
    assert phases["whole"]["tokens_per_s"] == pytest.approx(2 * 5 / 5e-3)
    assert phases["decode"]["ratio"] is None
    assert json_["root"]["arms"]["triton"]["phases"]["decode"]["verdict"] == "same"
    cost = json_["overhead"]["triton"]["prefill"]
    assert cost["ratio"] == pytest.approx(1.1, abs=1e-5)
    assert cost["interval"] == pytest.approx((1.1, 1.1), abs=1e-5)
    assert json_["overhead"]["torch"]["whole"]["ratio"] == pytest.approx(5.3 / 5, abs=1e-3)
    assert json_["root"]["arms"]["triton"]["agreement"]["equal"] == 32
    assert json_["root"]["arms"]["torch"]["agreement"] is None


def test_without_the_number_of_tokens_there_is_no_rate() -> None:
    runs = {"torch": simple([10] * 3, [50] * 3), "triton": simple([10] * 3, [50] * 3)}
    passes = passes_of({arm: {"decode": [(100, 110)] * 3} for arm in runs})
    found = compare_paths(measured(runs, passes=passes))
    assert [(each.phase, each.tokens_per_s) for each in found.passes] == [("decode", None)] * 2


def test_json_is_whole_and_plain() -> None:
    found = compare_paths(whole_run())
    data: dict[str, Any] = json.loads(msgspec.json.encode(found.as_json()))
    assert data["arms"] == ["torch", "triton", "rms_norm=triton,attention=compile"]
    assert set(data) >= {"arms", "paths", "root", "overhead", "ended", "refused", "stores"}
    for path in data["paths"]:
        assert set(path) >= {"path", "depth", "calls", "arms", "ratio", "interval", "verdict", "max_error"}
        assert set(path["candidates"]) == set(data["arms"][1:])
        assert path["ratio"] == path["candidates"]["triton"]["ratio"]
        for own in path["arms"].values():
            assert set(own) >= {"backend", "host_ns", "device_busy_ns", "span_ns", "self_ns", "interval_ns"}
            assert own["interval_ns"][0] <= own["host_ns"] <= own["interval_ns"][1]
    attention = next(
        each for each in data["paths"] if each["path"].endswith("decode.forward.layers.*.self_attn.attention")
    )
    assert {arm: each["verdict"] for arm, each in attention["candidates"].items()} == {
        "triton": "slower",
        "rms_norm=triton,attention=compile": "faster",
    }
    assert data["differences"]["triton"][0]["path"] == attention["path"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_of_any_width_shows_times_ratio_verdict_and_the_tree(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    found = compare_paths(noisy_pair(5, slow={"attention": 1.5}))
    page = STYLE.sub("", render_terminal(found, is_terminal=True))
    (line,) = [line for line in page.splitlines() if re.search(r"slower .*· · · · · · attention *$", line)][1:]
    versus = row_of(found, "completion.generate.decode.forward.layers.*.self_attn.attention").versus["triton"]
    assert f"{versus.ratio:.4g}" in line
    table = page[page.index("Call paths") : page.index("Times: host time")]
    assert max(map(len, table.splitlines())) <= width
    assert page.startswith("Verdict")
    words = re.sub(r"\s", "", page)
    assert "largestdifference:decode.forward.layers.*.self_attn.attention,+" in words


def test_markdown_keeps_the_tree_and_a_spreadsheet_has_every_number() -> None:
    found = compare_paths(whole_run())
    assert "| · · · · · · attention |" in render_markdown(found)
    columns, first, *rest = csv.reader(render_csv(found).splitlines())
    assert len(rest) == len(found.rows) - 1
    assert len(columns) == len(set(columns))
    cells = dict(zip(columns, first, strict=True))
    assert cells["Path"] == "completion"
    assert int(cells["torch: Host (ns)"]) == found.rows[0].arms["torch"].host_ns
    assert found.to_polars().height == len(found.rows)


def test_what_ended_early_or_has_a_single_arm_is_still_shown() -> None:
    whole = compare_paths(whole_run())
    assert remarks_of(whole)[0].startswith("Ended early: interrupted in repetition 7.")
    assert dict(facts_of(whole))["Compared"] == "host time, 6 repetitions, in turns: torch, triton; triton, torch; …"
    assert {"triton: triton has no linear.", "Recording of torch: runs/torch.ifm"} <= set(remarks_of(whole))
    nothing = PathMeasurement(
        ["torch", "triton"], pl.DataFrame(schema=CALLS), pl.DataFrame(schema=PASSES), ended="out of memory"
    )
    found = compare_paths(nothing)
    assert found.as_json()["paths"] == []
    assert "Ended early: out of memory." in render_terminal(found, is_terminal=False)
    assert "Call paths, a repetition: none" in render_terminal(found, is_terminal=False)
    assert render_csv(found).startswith("Path,")
    one = compare_paths(measured({"torch": simple([10] * 3, [50] * 3)}))
    assert one.rows[1].arms["torch"].host_ns == 50
    assert one.as_json()["paths"][0]["ratio"] is None
    assert "norm" in render_terminal(one, is_terminal=False)
    missing = compare_paths(measured({"torch": simple([10] * 3, [50] * 3), "triton": []}))
    assert missing.rows[0].versus["triton"].absent == "not called by triton"
    assert missing.repetitions == 3
    assert dict(facts_of(missing))["Verdict"] == "triton: nothing to compare."


def test_arms_need_names_of_their_own() -> None:
    made = measured({"torch": simple([10], [50])})
    with pytest.raises(InputError, match="two arms are named torch"):
        compare_paths(PathMeasurement(["torch", "torch"], made.calls, made.passes))
    with pytest.raises(InputError, match="calls of an arm torch: expected one of triton"):
        compare_paths(PathMeasurement(["triton"], made.calls, made.passes))
    with pytest.raises(InputError, match="expected a level between 0 and 1, found 5"):
        compare_paths(made, level=5)


def test_the_largest_difference_comes_first_whichever_arm_it_favours() -> None:
    def run(i: int, *times: int) -> Call:
        return Call("root", 10, [op(name, ns + i % 3) for name, ns in zip("abc", times, strict=True)])

    arms = {"torch": [run(i, 500, 5000, 900) for i in range(6)], "triton": [run(-i, 900, 2000, 900) for i in range(6)]}
    found = compare_paths(measured(arms))
    assert [(each.path, each.difference_ns > 0) for each in found.differences["triton"]] == [
        ("root.b", False),
        ("root.a", True),
    ]
    p = [row.versus["triton"].p for row in found.rows]
    assert [each is not None and each < 1e-6 for each in p] == [True, True, True, False]
    assert [row.versus["triton"].verdict for row in found.rows] == ["faster", "slower", "faster", "same"]
    assert not found.is_good
    assert compare_paths(measured({"triton": arms["triton"], "torch": arms["triton"]})).is_good


def test_an_arm_against_itself_is_the_same_everywhere() -> None:
    draw = np.random.default_rng(2)
    runs = [noisy_run(draw, slow={}, rare=0.01) for _ in range(5)]
    found = compare_paths(measured({"torch": runs, "again": runs}))
    assert {row.versus["again"].verdict for row in found.rows} == {"same"}
    assert {row.versus["again"].ratio for row in found.rows} == {1.0}
    assert found.differences["again"] == []
    assert found.is_good


def test_an_interruption_changes_no_tokens_per_second() -> None:
    runs = {arm: simple([10] * 9, [50] * 9) for arm in ("torch", "triton")}
    steady = [(1_000_000 + i, 1_100_000) for i in range(8)]
    passes = passes_of(
        {"torch": {"decode": [*steady, (60_000_000, 1_100_000)]}, "triton": {"decode": [*steady, *steady[:1]]}}
    )
    facts = {"batch": 1, "new_tokens": 11, "prompt_tokens": 4}
    first, second = compare_paths(measured(runs, passes=passes, facts=facts)).passes
    assert first.tokens_per_s == pytest.approx(10 / 1e-3, rel=1e-4)
    assert second.tokens_per_s == pytest.approx(10 / 1e-3, rel=1e-4)
    assert first.interval_ns == (1_000_001, 1_000_007)  # the second and the eighth of nine


def test_the_medians_interval_holds_the_median_whatever_the_distribution() -> None:
    draw = np.random.default_rng(7)
    samples = np.sort(draw.lognormal(0, 1, (2_000, 10)), axis=1)  # whose median is 1
    ends = [median_interval(row) for row in samples]
    assert np.mean([low <= 1 <= high for low, high in filter(None, ends)]) > 0.96
    assert median_interval(samples[0][:5]) is None


def test_where_repetitions_are_too_unlike_no_path_has_a_verdict() -> None:
    def runs(own_ns: int, levels: Sequence[float]) -> list[Call]:
        return [Call("root", 1_000, [op(f"part{i}", int(own_ns * level)) for i in range(3)]) for level in levels]

    calm, rough = [1.0] * 9, [1.0, 2.6, 0.9, 2.4, 1.1, 2.9, 1.2, 2.5, 1.0]
    quiet = compare_paths(measured({"torch": runs(50_000, calm), "triton": runs(70_000, calm)}))
    assert (quiet.disturbed, row_of(quiet, "root").versus["triton"].verdict) == ([], "slower")
    once = compare_paths(measured({"torch": runs(50_000, calm), "triton": runs(70_000, [*calm[:8], 100.0])}))
    assert (once.disturbed, row_of(once, "root").versus["triton"].verdict) == ([], "slower")
    noisy = compare_paths(measured({"torch": runs(50_000, calm), "triton": runs(400_000, rough)}))
    assert noisy.disturbed == ["triton"]
    assert {row.versus["triton"].verdict for row in noisy.rows} == {"unclear"}
    assert noisy.differences == {"triton": ()}
    assert noisy.is_good
    assert "No path has a verdict: repetitions of triton" in " ".join(remarks_of(noisy))
    assert noisy.as_json()["disturbed"] == ["triton"]


def carried_run(draw: np.random.Generator, silu: Call, left_behind: float) -> Call:
    """A planted operator, and one of the same code in both arms that takes longer after it."""

    def ns(mean: float) -> int:
        return int(mean * draw.lognormal(0, 0.02))

    others = [op(f"linear_{n}", ns(20_000), "torch") for n in range(8)]
    return Call("root", ns(1_000), [*others, silu, op("down", ns(20_000 * left_behind), "torch")])


def test_what_another_path_leaves_behind_is_carried_over_and_no_difference() -> None:
    draw = np.random.default_rng(5)
    arms = {
        "torch": [carried_run(draw, op("silu", 30_000 + 10 * i, "torch"), 1.0) for i in range(10)],
        "late": [carried_run(draw, op("silu", 300_000 + 10 * i, "late"), 1.4) for i in range(10)],
    }
    found = compare_paths(measured(arms))
    verdicts = {row.name: row.versus["late"].verdict for row in found.rows}
    assert (verdicts["silu"], verdicts["root"], verdicts["down"]) == ("slower", "slower", "carried over")
    assert {verdicts[f"linear_{n}"] for n in range(8)} <= {"same", "unclear"}
    assert [each.path for each in found.differences["late"]] == ["root.silu"]
    assert found.carried_ns["late"] == pytest.approx(8_000, abs=2_500)
    page = render_terminal(found, is_terminal=False)
    assert "carried over: both arms run the same code there" in page
    assert found.as_json()["carried_over_ns"] == found.carried_ns


def test_paths_of_the_same_code_are_neither_faster_nor_slower_however_long_they_take() -> None:
    arms = {"torch": simple([10] * 6, [50] * 6, "torch"), "torch (2)": simple([20] * 6, [90] * 6, "torch")}
    found = compare_paths(measured(arms))
    assert {row.versus["torch (2)"].verdict for row in found.rows} == {"carried over"}
    assert list(found.differences["torch (2)"]) == []
    assert found.is_good
    fell_back = {
        "torch": simple([10] * 6, [50] * 6, "torch"),
        "x": simple([20] * 6, [90] * 6, "torch (x: head size 80)"),
    }
    assert {row.versus["x"].verdict for row in compare_paths(measured(fell_back)).rows} == {"carried over"}
