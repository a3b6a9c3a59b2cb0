import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.engines.webgpu.profile_cases import ADAPTER, answer, run_of, small_program, usual_dur

import inferometer
from inferometer.engines.webgpu.profile.dispatch_times import dispatch_times
from inferometer.engines.webgpu.profile.engine_log import render_engine_log
from inferometer.engines.webgpu.profile.metrics import run_metrics
from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun
from inferometer.engines.webgpu.program import Dispatch, Pass
from inferometer.findings.engine import find_findings
from inferometer.trace.trace import Trace

_STORE_ONLY = {"memory_by_purpose", "kernel_selections", "clocks", "adapter_rates"}
_SIZES = ("adapter_limit_bytes", "bytes", "gpu_bytes", "gpu_peak_bytes", "bytes_per_s")


def _read(run: ProfiledRun, folder: Path) -> Trace:
    file = folder / "run.log"
    file.write_text("\n".join(render_engine_log(run)) + "\n", "utf-8")
    return inferometer.open(file)


def _differences(name: str, printed: Any, exact: Any) -> list[str]:
    """Where a printed value is another than the exact one, beyond the digits that it is printed with."""
    if isinstance(exact, dict):
        keys = [f"{name}: {sorted(printed)}"] if printed.keys() != exact.keys() else []
        return keys + [text for key in exact if key in printed for text in _differences(key, printed[key], exact[key])]
    if isinstance(exact, list):
        pairs = zip(printed, exact, strict=True)
        return [text for one, other in pairs for text in _differences(name, one, other)]
    if isinstance(exact, str | bool) or exact is None:
        return [] if printed == exact else [f"{name}: {printed!r}, not {exact!r}"]
    slack = 0.006 * exact if name in _SIZES else 600_000 if name == "elapsed_ns" else 501 if name[-3:] == "_ns" else 0
    slack = 0.0051 if name.endswith("_tokens_per_s") else slack
    return [] if abs(printed - exact) <= slack else [f"{name}: {printed}, not {exact}"]


def _rarely(one: Dispatch, passed: Pass, chance: random.Random) -> int | None:
    return None if chance.random() < 0.1 else usual_dur(one, passed, chance) * chance.choice((1, 1, 40))


@examples(20)
@given(
    prompt=st.integers(1, 150),
    new=st.integers(1, 12),
    batch=st.integers(1, 5),
    cached=st.sampled_from([0, 17]),
    seed=st.integers(0, 999),
    untimed=st.booleans(),
)
def test_the_reader_reads_the_same_numbers_back(
    tmp_path_factory: pytest.TempPathFactory,
    prompt: int,
    new: int,
    batch: int,
    cached: int,
    seed: int,
    untimed: bool,
) -> None:
    program = small_program(layers=2)
    dur = _rarely if untimed else usual_dur
    submissions = answer(program, prompt=prompt, new_tokens=new, batch=batch, cached=cached, seed=seed, dur=dur)
    run = run_of(program, submissions)
    trace = _read(run, tmp_path_factory.mktemp("log"))
    assert not trace.losses.as_dict()["entries"]

    printed = trace.totals.collect()
    sums = dispatch_times(program, submissions).drop_nulls("dur_ns").group_by("step", "label").agg(pl.sum("dur_ns"))
    joined = printed.join(sums, left_on=["step", "kernel"], right_on=["step", "label"], how="full")
    assert joined.height == printed.height == sums.height
    off = (joined["total_ns"] - joined["dur_ns"]).abs() - joined["resolution_ns"]
    assert max(off.to_list()) <= 1
    assert printed["total_ns"].min() > 0  # type: ignore[operator]

    steps = trace.steps.collect()
    told = [(one.start_ns - run.zero_ns, one.wall_ns, one.passes[0].position) for one in submissions]
    for row, (start_ns, wall_ns, position) in zip(steps.iter_rows(named=True), told, strict=True):
        assert abs(row["start_ns"] - start_ns) <= 1_001
        assert abs(row["dur_ns"] - wall_ns) <= 501
        assert row["context_len"] == position
    assert int(steps["prefill_tokens"].sum()) == prompt
    assert int(steps["decode_tokens"].sum()) == new - 1

    metrics = run_metrics(run)
    exact = {key: value for key, value in metrics.items() if key not in _STORE_ONLY}
    assert not _differences("metrics", trace.facts.engine_metrics, exact)
    choices = trace.selections.select("op", "variant").collect().rows()
    assert choices == [(one.op, one.kernel) for one in run.loaded.selections]


def test_every_choice_tells_its_phase_role_and_reason(tmp_path: Path) -> None:
    program = small_program()
    trace = _read(run_of(program, answer(program)), tmp_path)
    chosen = trace.selections.filter(pl.col("variant") == "linear_workgroup").collect()["reason"].to_list()
    assert chosen == ["decode ffn_up: the first that the adapter can run"]


def test_a_run_without_timestamps_has_no_reports_and_is_read_without_losses(tmp_path: Path) -> None:
    program = small_program()
    trace = _read(run_of(program, answer(program, timing="single_pass"), harness="browser"), tmp_path)
    assert trace.totals.collect().is_empty()
    assert trace.facts.engine_metrics["perf"]["decode_tokens"] == 11
    assert not trace.losses.as_dict()["entries"]


def test_a_browsers_lines_have_its_tag() -> None:
    program = small_program()
    lines = [*render_engine_log(run_of(program, answer(program), harness="browser"))]
    assert [line for line in lines if line.startswith("[wgpu")] == []
    assert lines[2] == "[browser:log] [GPU] llvmpipe (LLVM 15.0.6, 256 bits), subgroups/timestamp-query, 2GB"


def test_passes_without_times_are_said(tmp_path: Path) -> None:
    program = small_program(layers=1)
    submissions = answer(program, new_tokens=2, dur=lambda one, _, __: None if one.op == "sample" else 30_000)
    trace = _read(run_of(program, submissions), tmp_path)
    said = trace.log.filter(pl.col("kind") == "recorder").collect()["text"].to_list()
    assert [text.rpartition("] ")[2] for text in said] == ["1 of 6 passes untimed"] * 2


@pytest.mark.parametrize(
    ("name", "prompt", "label"),
    [
        ("a model (2), of mine", 'Say "hi"\n[ok] done passed=9', None),
        ("m", "one\n\ntwo | three = 4", "a_role_that_is_much_longer_than_the_column_of_labels"),
    ],
)
def test_hostile_words_stay_words(tmp_path: Path, name: str, prompt: str, label: str | None) -> None:
    program = small_program(name=name)
    if label:
        head = (_with_role(program.phases["head"][0], label), *program.phases["head"][1:])
        program = _with_head(program, head)
    trace = _read(run_of(program, answer(program), prompt=prompt), tmp_path)
    assert not trace.losses.as_dict()["entries"]
    assert trace.facts.engine_metrics["prompt"] == " ".join(prompt.split())
    assert trace.facts.engine_metrics["passed"] == 1
    if label:
        assert f"linear:{label}" in trace.totals.collect()["kernel"].to_list()


def _with_role(one: Dispatch, role: str) -> Dispatch:
    return msgspec.structs.replace(one, role=role)


def _with_head(program: Any, head: tuple[Dispatch, ...]) -> Any:
    return msgspec.structs.replace(program, phases={**program.phases, "head": head})


def test_a_run_that_failed_is_told_as_failed(tmp_path: Path) -> None:
    program = small_program()
    run = replace(run_of(program, answer(program)[:2]), failure="the device was lost")
    trace = _read(run, tmp_path)
    metrics = trace.facts.engine_metrics
    assert (metrics["result"], metrics["failed"]) == ("failed", 1)
    assert not trace.losses.as_dict()["entries"]


def test_no_rule_complains_about_the_engines_own_account(tmp_path: Path) -> None:
    program = small_program(layers=3)
    trace = _read(run_of(program, answer(program, new_tokens=40), adapter=ADAPTER), tmp_path)
    silent = {"inconsistent_decode_rate", "zero_byte_load", "reports_as_warnings", "plan_differs_from_execution"}
    assert not silent & {finding.rule for finding in find_findings(trace).findings}
