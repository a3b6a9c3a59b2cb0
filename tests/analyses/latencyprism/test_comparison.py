"""The published comparison: its formulas on small runs, and the seed's numbers on the seed's own files."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.effort import examples
from tests.latencyprism_files import perf_row, write_run
from tests.traces import trace_of

import inferometer
from inferometer.analyses.latencyprism.comparison import NEEDED, Published, published
from inferometer.errors import InputError
from inferometer.reports.views.view import sections_of
from inferometer.trace.trace import Trace

NUMBERS = (
    *("score", "beta_base", "beta_candidate", "beta_delta", "beta_z", "beta_p", "beta_u_p"),
    *("mu_base", "mu_candidate", "mu_delta", "mu_z", "log_mu_z", "mu_p", "mu_u_p"),
)
KEYS = ("function_name", "metric_name", "device")
Rows = Sequence[dict[str, str]]


def run_of(*values: tuple[float, float | None], process: int | None = 7, function: str = "f") -> list[dict[str, Any]]:
    """One function and metric: beta and mu of each cycle, both as published files have them."""
    return [
        {"cycle": i, "process": process, "function": function, "beta": beta, "mu": mu}
        for i, (beta, mu) in enumerate(values, 1)
    ]


def trace_with(*rows: dict[str, Any], source: str = "run", metric: str = "gpu_usage", unit: str = "%") -> Trace:
    """A trace of such rows, on `gpu:0` and in cycles of 1 ms."""
    place = [
        {"cycle": row["cycle"], "process": row["process"], "function": row["function"], "device": "gpu:0"}
        for row in rows
    ]
    times = [
        {**at, "dur_ns": 1, "beta": row["beta"] / 100, "cycle_dur_ns": 1_000_000 + row["cycle"]}
        for at, row in zip(place, rows, strict=True)
    ]
    metrics = [{**at, "metric": metric, "mu": row["mu"], "unit": unit} for at, row in zip(place, rows, strict=True)]
    return trace_of(facts={"source": source}, function_times=times, function_metrics=metrics)


def only_row(base: Trace, candidate: Trace) -> dict[str, Any]:
    (row,) = published(base, candidate).comparisons[0].table.to_dicts()
    return row


def test_the_formulas_of_one_row() -> None:
    base, candidate = [(10.0, 1.0), (12.0, 2.0), (14.0, 6.0)], [(20.0, 3.0), (21.0, None), (25.0, 9.0), (26.0, 9.0)]
    row = only_row(trace_with(*run_of(*base)), trace_with(*run_of(*candidate)))
    logs = [[math.log1p(mu or 0) for _, mu in run] for run in (base, candidate)]
    assert (row["beta_base"], row["beta_candidate"], row["beta_delta"]) == pytest.approx((12, 23, 11))
    assert (row["mu_base"], row["mu_candidate"]) == pytest.approx((3, 21 / 4))
    assert row["beta_z"] == pytest.approx(11 / 2)
    assert row["mu_z"] == pytest.approx((21 / 4 - 3) / math.sqrt(7))
    assert row["log_mu_z"] == pytest.approx((np.mean(logs[1]) - np.mean(logs[0])) / statistics.stdev(logs[0]))
    assert row["score"] == pytest.approx(11 * (abs(row["beta_z"]) + abs(row["log_mu_z"])))
    assert row["beta_p"] == pytest.approx(stats.ttest_ind([10, 12, 14], [20, 21, 25, 26], equal_var=False).pvalue)
    assert row["beta_u_p"] == pytest.approx(2 / 35)
    assert row["mu_u_p"] == pytest.approx(stats.mannwhitneyu([1, 2, 6], [3, 0, 9, 9]).pvalue)


def test_a_row_that_one_run_lacks_counts_as_0_there() -> None:
    base = trace_with(*run_of((10.0, 1.0), (12.0, 3.0)), *run_of((1.0, 1.0), (2.0, 2.0), function="g"))
    candidate = trace_with(*run_of((11.0, 2.0), (11.0, 2.0)), *run_of((3.0, 5.0), (3.0, 5.0), function="h"))
    table = published(base, candidate).comparisons[0].table
    rows = {row["function"]: row for row in table.to_dicts()}
    assert (rows["g"]["beta_candidate"], rows["g"]["mu_candidate"]) == (0, 0)
    assert (rows["h"]["beta_base"], rows["h"]["mu_base"], rows["h"]["score"]) == (0, 0, 0)
    assert [rows[name][p] for name in "gh" for p in ("beta_p", "beta_u_p", "mu_p", "mu_u_p")] == [1.0] * 8


def test_one_cycle_tests_nothing() -> None:
    row = only_row(trace_with(*run_of((10.0, 1.0))), trace_with(*run_of((20.0, 1.0), (30.0, 5.0))))
    assert (row["beta_z"], row["score"], row["beta_p"], row["mu_u_p"]) == (0, 0, 1, 1)


def test_a_base_that_does_not_vary_has_no_z_and_equal_constants_no_p() -> None:
    constant = [(85.7049, 0.1)] * 3
    row = only_row(trace_with(*run_of(*constant)), trace_with(*run_of(*constant[:2])))
    assert (row["beta_delta"], row["mu_delta"], row["beta_z"], row["score"]) == (0, 0, 0, 0)
    assert (row["beta_p"], row["mu_p"], row["beta_u_p"], row["mu_u_p"]) == (None, None, 1, 1)
    row = only_row(trace_with(*run_of(*constant)), trace_with(*run_of((90.0, 0.1), (90.0, 0.1))))
    assert (row["beta_z"], row["beta_p"]) == (0, 0)


def test_means_are_those_of_the_file_though_the_trace_has_natural_units() -> None:
    base = trace_with(*run_of((1.0, 1410.0), (2.0, 1186.875)), metric="gpu_frequency", unit="MHz")
    row = only_row(base, base)
    assert row["mu_base"] == (141_000.0 + 118_687.5) / 2


def test_the_order_of_rows_changes_no_digit(shared_data: Path) -> None:
    folder = shared_data / "latencyprism/vLLM/gpu_instability"
    traces = [inferometer.open(folder / name, NEEDED) for name in ("normal", "abnormal")]
    shuffled = [
        trace_of(
            facts={"source": trace.facts.source},
            function_times=trace.function_times.collect().sample(fraction=1, shuffle=True, seed=3).to_dicts(),
            function_metrics=trace.function_metrics.collect().sample(fraction=1, shuffle=True, seed=3).to_dicts(),
        )
        for trace in traces
    ]
    assert published(*shuffled).to_polars().equals(published(*traces).to_polars())


def test_rows_of_equal_score_stand_by_name() -> None:
    rows = [row for name in ("b", "a", "c") for row in run_of((10.0, 1.0), (12.0, 2.0), function=name)]
    other = [row for name in ("c", "b", "a") for row in run_of((20.0, 1.0), (22.0, 2.0), function=name)]
    table = published(trace_with(*rows), trace_with(*other)).comparisons[0].table
    assert table["function"].to_list() == ["a", "b", "c"]


def test_cycles_are_ranked_by_length_and_the_shorter_list_ends() -> None:
    (found,) = published(trace_with(*run_of((1.0, 1.0), (1.0, 1.0))), trace_with(*run_of((1.0, 1.0)))).comparisons
    assert found.cycles == (2, 1)
    assert found.mean_us == (1000.0015, 1000.001)
    assert found.ranks.rows() == [(1, 1000.002, 1000.001), (2, 1000.001, None)]


def test_processes_in_both_runs_are_strict_and_the_others_cross() -> None:
    runs = [
        trace_with(*(row for process in processes for row in run_of((1.0, 1.0), (2.0, 1.0), process=process)))
        for processes in ((1, 2, 3), (2, 4))
    ]
    assert pairs_of(published(*runs)) == [("strict", 2, 2), ("cross", 1, 4), ("cross", 3, 4)]
    assert pairs_of(published(*runs, pairing="strict")) == [("strict", 2, 2)]
    assert len(pairs_of(published(*runs, pairing="cross"))) == 6
    with pytest.raises(InputError, match="expected processes to pair, found 4 in one run and 1, 3"):
        published(
            trace_with(*run_of((1.0, 1.0), process=4)),
            trace_with(*run_of((1.0, 1.0), process=1), *run_of((1.0, 1.0), process=3)),
            pairing="strict",
        )


def test_processes_without_an_id_are_paired(tmp_path: Path) -> None:
    run = trace_with(*run_of((1.0, 1.0), (2.0, 1.0), process=None))
    (found,) = published(run, run).comparisons
    assert (found.base, found.base_title, found.pairing) == ("base", "Base", "cross")


def test_a_hundred_processes_in_both_runs_are_a_hundred_pairs_and_crossed_ones_too_many() -> None:
    runs = [
        trace_with(*(row for process in range(first, first + 100) for row in run_of((1.0, 1.0), process=process)))
        for first in (0, 1000)
    ]
    assert len(published(runs[0], runs[0]).comparisons) == 100
    with pytest.raises(InputError, match="expected at most 1,024 pairs of processes, found 10,000: 100 processes"):
        published(*runs)


def test_names_come_from_the_parts_of_the_paths_that_differ() -> None:
    run = run_of((1.0, 1.0), (2.0, 1.0))
    for base, candidate, names in (
        ("a/b/cpu/normal", "a/b/cpu/abnormal", ("normal", "abnormal", "b/cpu")),
        ("cpu/normal/perf_data.csv", "cpu/abnormal/counters_data.csv.gz", ("normal", "abnormal", "cpu")),
        ("normal.ifm", "abnormal.ifm", ("normal", "abnormal", "")),
        ("C:\\runs\\x y\\", "C:\\runs\\z", ("x_y", "z", "C:/runs")),
        ("a/normal/1", "a/abnormal/1", ("normal", "abnormal", "a")),
        ("same", "same", ("base", "candidate", "same")),
        ("perf_data.csv", "perf_data.csv", ("base", "candidate", "")),
    ):
        found = published(trace_with(*run, source=base), trace_with(*run, source=candidate)).names
        assert (found.base, found.candidate, found.scenario) == names
    named = published(trace_with(*run), trace_with(*run), labels=("x", "y"), scenario="mine")
    assert named.comparisons[0].base == "x_pid_7"
    assert named.names.scenario == "mine"


def test_a_prefill_is_compared_with_prefills_only() -> None:
    run = run_of((1.0, 1.0), (2.0, 1.0))
    prefill, decode = trace_with(*run, source="x/prefill/normal"), trace_with(*run, source="x/decode/normal")
    with pytest.raises(InputError, match="only one is named a prefill"):
        published(prefill, decode)
    published(prefill, trace_with(*run, source="x/prefill/abnormal"))
    with pytest.raises(InputError, match="only one is named a prefill"):
        published(trace_with(*run, source="a/perf_data_prefill.csv"), trace_with(*run, source="b/perf_data.csv"))


def test_a_run_without_metrics_is_refused() -> None:
    run = trace_with(*run_of((1.0, 1.0)))
    for other in (trace_of(), trace_of([{}])):
        with pytest.raises(InputError, match="expected functions with metrics, cycle by cycle, found none"):
            published(run, other)


def test_cycles_of_no_length_are_left_out_of_shares(tmp_path: Path) -> None:
    rows = [perf_row(cycle=1, anchor_dur_us="0", beta_pct="inf"), perf_row(cycle=2), perf_row(cycle=3)]
    trace = inferometer.open(write_run(tmp_path, rows), NEEDED)
    (found,) = published(trace, trace).comparisons
    assert found.cycles == (3, 3)
    assert found.table["beta_base"].to_list() == [25.0]


def test_losses_of_both_runs_are_added_up(tmp_path: Path) -> None:
    base = inferometer.open(write_run(tmp_path / "a", [perf_row(), perf_row(cycle=2, mu_pct="x")]), NEEDED)
    candidate = inferometer.open(write_run(tmp_path / "b", [perf_row(mu_pct="y"), perf_row(cycle=2)]), NEEDED)
    found = published(base, candidate)
    assert [(loss.name, loss.count, loss.example) for loss in found.losses if loss.name == "wrong_type"] == [
        ("wrong_type", 2, "a: x")
    ]


def test_the_main_table_has_the_published_titles_and_exact_numbers() -> None:
    base, candidate = (
        trace_with(*run_of((1.0, 1.0), (2.0, 7.0)), source="n"),
        trace_with(*run_of((3.0, 2.0), (5.0, 2.0)), source="a"),
    )
    found = published(base, candidate)
    (row,) = found.as_json()["comparisons"][0]["table"]
    assert list(row) == [
        *("Function Name", "Metric Name", "Device", "Suspicion Score", "β_n_pid_7(%)", "β_a_pid_7(%)", "Δβ(%)"),
        *("Z-Score(β)", "p-value(β)", "U-test p(β)", "μ_n_pid_7", "μ_a_pid_7", "Δμ", "Z-Score(μ)", "Z-Score(log_μ)"),
        *("p-value(μ)", "U-test p(μ)"),
    ]
    assert row["Device"] == "GPU 0"
    assert row["β_n_pid_7(%)"] == 1.5
    fields = sections_of(found)[0].fields
    assert [field.title for field in fields] == list(row)
    assert found.to_polars().columns == [field.column for field in fields]


def test_several_pairs_are_one_table_with_their_processes() -> None:
    run = trace_with(*(row for process in (1, 2) for row in run_of((1.0, 1.0), (2.0, 1.0), process=process)))
    frame = published(run, run).to_polars()
    assert frame.select("base", "candidate").rows() == [(1, 1), (2, 2)]


VALUE = st.integers(0, 10**6).map(lambda n: n / 10**4)
RUN = st.lists(st.tuples(VALUE, st.one_of(st.none(), VALUE)), min_size=1, max_size=12)


@given(
    st.dictionaries(st.sampled_from("fghk"), RUN, min_size=1), st.dictionaries(st.sampled_from("fghk"), RUN, min_size=1)
)
@examples(60)
def test_every_row_is_what_scipy_makes_of_it(
    base: dict[str, list[tuple[float, float | None]]], candidate: dict[str, list[tuple[float, float | None]]]
) -> None:
    traces = [
        trace_with(*(row for name, values in run.items() for row in run_of(*values, function=name)))
        for run in (base, candidate)
    ]
    table = published(*traces).comparisons[0].table
    assert set(table["function"]) == {*base, *candidate}
    for row in table.to_dicts():
        wanted = by_the_book(base.get(row["function"], []), candidate.get(row["function"], []))
        assert numbers_of(row) == pytest.approx(wanted, rel=1e-6, abs=1e-9, nan_ok=True)


def test_the_seed_agrees_in_all_its_264_rows(shared_data: Path, seeds: Path) -> None:
    found = published_of(shared_data / "latencyprism/SGLang/cpu_frequency_reduction")
    table = seed_rows(seeds)
    assert len(table) == found.comparisons[0].table.height == 264
    ours = {(row["function"], row["metric"], row["device"]): row for row in found.comparisons[0].table.to_dicts()}
    decimals = {"score": 4, "beta_p": 3, "beta_u_p": 3, "mu_p": 3, "mu_u_p": 3}
    for cells in table:
        row = ours[cells[0], cells[1], cells[2]]
        for name, cell in zip(NUMBERS, cells[3:], strict=True):
            value = math.nan if row[name] is None else row[name]
            shown = (
                f"{value:,.2f}" if name in ("mu_base", "mu_candidate") else f"{round(value, decimals.get(name, 2)):g}"
            )
            assert shown == cell, (cells[0][:40], cells[1], name)


def test_the_seeds_order_is_ours_but_for_equal_scores(shared_data: Path, seeds: Path) -> None:
    found = published_of(shared_data / "latencyprism/SGLang/cpu_frequency_reduction").comparisons[0].table
    scores = {row[:3]: row[3] for row in found.select("function", "metric", "device", "score").rows()}
    in_seed = [scores[cells[0], cells[1], cells[2]] for cells in seed_rows(seeds)]
    assert in_seed == sorted(in_seed, reverse=True) == found["score"].to_list()


@pytest.mark.parametrize("pair", ["SGLang/cpu_frequency_reduction", "vLLM/gpu_instability"])
def test_published_files_agree_with_scipy_row_by_row(pair: str, shared_data: Path) -> None:
    folder = shared_data / "latencyprism" / pair
    (found,) = published_of(folder).comparisons
    runs = [values_of(folder / name) for name in ("normal", "abnormal")]
    assert {row[:3] for row in found.table.select("function", "metric", "device").rows()} == set(runs[0]) | set(runs[1])
    for row in found.table.to_dicts():
        key = (row["function"], row["metric"], row["device"])
        wanted = by_the_book(runs[0].get(key, []), runs[1].get(key, []))
        assert numbers_of(row) == pytest.approx(wanted, rel=1e-6, abs=1e-9, nan_ok=True)


def test_one_process_in_both_runs_is_strict(shared_data: Path) -> None:
    (found,) = published_of(shared_data / "latencyprism/vLLM/gpu_instability").comparisons
    assert (found.pairing, found.base, found.candidate) == ("strict", "normal_pid_1571875", "abnormal_pid_1571875")


def pairs_of(found: Published) -> list[tuple[str, int | None, int | None]]:
    return [(each.pairing, each.base_process, each.candidate_process) for each in found.comparisons]


def numbers_of(row: dict[str, Any]) -> dict[str, float]:
    return {name: math.nan if row[name] is None else row[name] for name in NUMBERS}


def published_of(folder: Path) -> Published:
    return published(*(inferometer.open(folder / name, NEEDED) for name in ("normal", "abnormal")))


def seed_rows(seeds: Path) -> list[list[str]]:
    (path,) = seeds.glob("001_*.txt")
    lines = path.read_text("utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| Function Name"))
    table = [line for line in lines[first + 2 :] if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table]


def values_of(run: Path) -> dict[tuple[str, ...], list[tuple[float, float | None]]]:
    """beta and mu of each function, metric and device, cycle by cycle, without our reader."""
    frame = pl.read_csv(next(run.glob("perf_data.csv*")), infer_schema=False).filter(pl.col("metric_name") != "N/A")
    found: dict[tuple[str, ...], list[tuple[float, float | None]]] = {}
    for *key, beta, mu in frame.select(*KEYS, "beta_pct", "mu_pct").rows():
        found.setdefault(tuple(key), []).append((float(beta), None if mu is None else float(mu)))
    return found


def by_the_book(
    base: Sequence[tuple[float, float | None]], candidate: Sequence[tuple[float, float | None]]
) -> dict[str, float]:
    """The formulas written down once more, with scipy's own tests and exact sums."""
    runs = [[(beta, mu or 0.0, math.log1p(mu or 0.0)) for beta, mu in run] for run in (base, candidate)]
    found: dict[str, float] = {}
    z: dict[str, float] = {}
    for i, name in enumerate(("beta", "mu", "log_mu")):
        one, two = ([value[i] for value in run] for run in runs)
        means = [statistics.fmean(run) if run else 0.0 for run in (one, two)]
        sds = [statistics.stdev(run) if len(run) > 1 else 0.0 for run in (one, two)]
        z[name] = (means[1] - means[0]) / sds[0] if sds[0] > 1e-9 else 0.0
        found |= {f"{name}_base": means[0], f"{name}_candidate": means[1], f"{name}_delta": means[1] - means[0]}
        found[f"{name}_z"] = z[name]
        if name == "log_mu":
            continue
        if min(len(one), len(two)) <= 1:
            found |= {f"{name}_p": 1.0, f"{name}_u_p": 1.0}
            continue
        with np.errstate(all="ignore"):
            welch = stats.ttest_ind_from_stats(means[0], sds[0], len(one), means[1], sds[1], len(two), equal_var=False)
        found[f"{name}_p"] = math.nan if math.isnan(welch.pvalue) else float(welch.pvalue)
        found[f"{name}_u_p"] = float(stats.mannwhitneyu(one, two, alternative="two-sided").pvalue)
    found["score"] = abs(found["beta_delta"]) * (abs(z["beta"]) + abs(z["log_mu"]))
    return {name: found[name] for name in NUMBERS}
