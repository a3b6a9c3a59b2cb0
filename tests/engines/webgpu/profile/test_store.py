import random
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.engines.webgpu.profile_cases import answer, dispatch, run_of, small_program, usual_dur

import inferometer
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.steps.table import step_table
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.analyses.tables.summary import summarize
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.engines.webgpu.profile.engine_log import render_engine_log
from inferometer.engines.webgpu.profile.metrics import run_metrics
from inferometer.engines.webgpu.profile.profile import make_profile
from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun
from inferometer.engines.webgpu.profile.store import save_profile
from inferometer.engines.webgpu.program import Amount, Dispatch, Pass
from inferometer.errors import InputError
from inferometer.findings.engine import find_findings
from inferometer.trace.trace import Trace


def _stored(run: ProfiledRun, folder: Path, clock_base_ns: int | None = None) -> Trace:
    return inferometer.open(save_profile(folder / "run.ifm", run, clock_base_ns=clock_base_ns))


def _sometimes(one: Dispatch, passed: Pass, chance: random.Random) -> int | None:
    return None if chance.random() < 0.2 else usual_dur(one, passed, chance)


@examples(15)
@given(st.integers(1, 90), st.integers(1, 9), st.integers(1, 5), st.booleans(), st.integers(0, 999))
def test_launches_totals_steps_and_profile_have_the_same_time(
    tmp_path_factory: pytest.TempPathFactory, prompt: int, new: int, batch: int, whole: bool, seed: int
) -> None:
    program = small_program()
    dur = usual_dur if whole else _sometimes
    submissions = answer(program, prompt=prompt, new_tokens=new, batch=batch, seed=seed, dur=dur)
    trace = _stored(run_of(program, submissions), tmp_path_factory.mktemp("store"))
    profile = make_profile(program, submissions)
    launches, totals, steps = trace.launches.collect(), trace.totals.collect(), trace.steps.collect()
    assert int(launches["dur_ns"].sum()) == int(totals["total_ns"].sum()) == profile.summed_ns
    assert launches.height == int(totals["count"].sum()) == profile.dispatches - profile.untimed
    assert trace.losses.total("without_timestamp") == profile.untimed
    assert steps["gpu_busy_ns"].to_list() == profile.steps["busy_ns"].to_list()
    assert steps["dur_ns"].to_list() == [one.wall_ns for one in submissions]
    assert int(steps["prefill_tokens"].sum()) == prompt
    assert int(steps["decode_tokens"].sum()) == new - 1
    assert totals["resolution_ns"].null_count() == totals.height


@pytest.fixture
def run() -> ProfiledRun:
    program = small_program(layers=3)
    return run_of(program, answer(program, prompt=100, new_tokens=40))


def test_a_launch_has_its_label_place_and_geometry(run: ProfiledRun, tmp_path: Path) -> None:
    first = _stored(run, tmp_path).launches.filter(pl.col("kernel") == "attention:L1").collect().row(0, named=True)
    assert first["grid"] == [4, 4, 1]  # 64 rows of the first piece, 16 positions a workgroup
    assert (first["device"], first["stream"], first["kind"]) == ("webgpu:0", 0, "kernel")
    assert first["correlation_id"] == 0


def test_device_work_lies_within_its_step(run: ProfiledRun, tmp_path: Path) -> None:
    trace = _stored(run, tmp_path)
    steps = trace.steps.select("step", pl.col("start_ns").alias("began"), pl.col("dur_ns").alias("wall"))
    inside = trace.launches.join(steps, left_on="correlation_id", right_on="step").select(
        (pl.col("start_ns") >= pl.col("began"))
        & (pl.col("start_ns") + pl.col("dur_ns") <= pl.col("began") + pl.col("wall"))
    )
    assert inside.collect().to_series().all()


def test_what_the_host_did_fills_each_step(run: ProfiledRun, tmp_path: Path) -> None:
    spans = _stored(run, tmp_path).spans.collect()
    parts = spans.filter(pl.col("span").str.starts_with("decode: "))
    assert parts["span"].unique().sort().to_list() == [
        "decode: read back",
        "decode: record",
        "decode: submit",
        "decode: wait",
    ]
    assert int(parts["dur_ns"].sum()) == int(spans.filter(pl.col("span") == "decode step")["dur_ns"].sum())
    assert spans.filter(pl.col("span") == "load layers")["dur_ns"].to_list() == [500_000_000]


def test_it_says_of_itself_what_its_log_says(run: ProfiledRun, tmp_path: Path) -> None:
    trace = _stored(run, tmp_path)
    file = tmp_path / "run.log"
    file.write_text("\n".join(render_engine_log(run)) + "\n", "utf-8")
    log = inferometer.open(file)
    assert trace.facts.engine_metrics == run_metrics(run)
    assert log.facts.engine_metrics.keys() <= trace.facts.engine_metrics.keys()
    assert trace.facts.model == log.facts.model
    assert trace.facts.devices == log.facts.devices
    same = ("step", "phase", "batch", "prefill_tokens", "decode_tokens", "context_len")
    assert trace.steps.select(same).collect().equals(log.steps.select(same).collect())
    assert (
        trace.selections.select("op", "variant", "reason")
        .collect()
        .equals(log.selections.select("op", "variant", "reason").collect())
    )
    kept = log.log.filter(pl.col("source").is_not_null()).select("level", "source", "kind", "text").collect()
    assert trace.log.filter(pl.col("source").is_not_null()).select(kept.columns).collect().equals(kept)


def test_times_count_from_loading_and_a_base_ties_them_to_1970(run: ProfiledRun, tmp_path: Path) -> None:
    trace = _stored(run, tmp_path, clock_base_ns=1_700_000_000_000_000_000)
    first_ns = int(trace.steps.collect()["start_ns"][0])
    assert trace.facts.clock_base_ns is not None
    assert trace.facts.clock_base_ns + first_ns == 1_700_000_000_000_000_000 + run.submissions[0].start_ns


def test_the_analyses_read_it(run: ProfiledRun, tmp_path: Path) -> None:
    trace = _stored(run, tmp_path)
    kernels = kernel_table(trace)
    assert kernels.basis == "launches"
    assert kernels.total_ns == int(trace.launches.collect()["dur_ns"].sum())
    roles = kernel_table(trace, by="role").frame["kernel"].to_list()
    assert {"ffn_up", "lm_head"} <= set(roles)
    assert set(kernel_table(trace, by="layer").frame["kernel"].to_list()) == {"0", "1", "2", None}
    steps = step_table(trace)
    assert steps.anchor == "queue submit"
    assert steps.steps["launches"].to_list() == [10, 12, *[48] * 9, 36]
    assert "attention" in steps.growth["class"].to_list()
    summary = summarize(trace)
    assert summary.devices["launches"].to_list() == [490]
    assert not [text for text in summary.notable if "graph" in text]
    causes = find_timeline(trace).causes
    assert "host_late" in causes["cause"].cast(pl.String).to_list()


def test_a_slower_kernel_is_named_by_a_comparison(tmp_path: Path) -> None:
    program = small_program(layers=3)

    def slower(one: Dispatch, passed: Pass, chance: random.Random) -> int:
        return usual_dur(one, passed, chance) * (3 if one.op == "attention" else 1)

    base = save_profile(tmp_path / "a.ifm", run_of(program, answer(program, new_tokens=40)))
    slow = save_profile(tmp_path / "b.ifm", run_of(program, answer(program, new_tokens=40, dur=slower, seed=2)))
    found = compare(inferometer.open(base), inferometer.open(slow)).as_json()
    assert "attention" in str(found)


def test_a_run_that_was_not_timed_has_steps_and_no_launches(tmp_path: Path) -> None:
    program = small_program()
    trace = _stored(run_of(program, answer(program, timing="single_pass")), tmp_path)
    assert trace.launches.collect().is_empty()
    assert trace.totals.collect().is_empty()
    assert trace.steps.collect()["gpu_busy_ns"].null_count() == 4
    assert trace.losses.total("without_timestamp") == 0
    assert step_table(trace).steps.height == 4
    find_findings(trace)


def test_no_rule_complains_about_the_engines_own_account(run: ProfiledRun, tmp_path: Path) -> None:
    silent = {"inconsistent_decode_rate", "zero_byte_load", "reports_as_warnings", "plan_differs_from_execution"}
    assert not silent & {finding.rule for finding in find_findings(_stored(run, tmp_path)).findings}


def test_a_run_that_failed_is_kept_and_says_so(tmp_path: Path) -> None:
    program = small_program()
    trace = _stored(run_of(program, answer(program)[:2], failure="the device was lost"), tmp_path)
    assert trace.steps.collect().height == 2
    assert "The run failed: the device was lost" in trace.facts.notes


def test_a_store_that_is_there_is_replaced_only_by_force(run: ProfiledRun, tmp_path: Path) -> None:
    path = save_profile(tmp_path / "run.ifm", run)
    with pytest.raises(InputError, match="already exists"):
        save_profile(path, run)
    save_profile(path, run, force=True)


@pytest.mark.parametrize(("groups", "fires"), [(1, True), (64, False)])
def test_a_dear_sampling_kernel_is_a_serial_one_only_where_it_is_one_workgroup(
    groups: int, fires: bool, tmp_path: Path
) -> None:
    program = small_program()
    product, sample = program.phases["head"]
    search = dispatch("argmax", pipeline=6, read=Amount(fixed=4 * 512), grid=(groups, 1, 1))
    dear = msgspec.structs.replace(program, phases={**program.phases, "head": (product, search, sample)})

    def dur(one: Dispatch, passed: Pass, chance: random.Random) -> int:
        return 900_000 if one.op == "argmax" else usual_dur(one, passed, chance)

    trace = _stored(run_of(dear, answer(dear, dur=dur)), tmp_path)
    assert ("serial_sampling" in {finding.rule for finding in find_findings(trace).findings}) == fires
