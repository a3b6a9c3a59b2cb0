import json
import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.engines.webgpu.profile_cases import ADAPTER, answer, run_of, small_program, submit, usual_dur

from inferometer.backends.wgsl.source import kernel_names
from inferometer.engines.webgpu.profile.dispatch_times import dispatch_times
from inferometer.engines.webgpu.profile.geometry import workgroup_of
from inferometer.engines.webgpu.profile.profile import Bandwidth, Profile, make_profile
from inferometer.engines.webgpu.program import Dispatch, Pass, Pipeline
from inferometer.engines.webgpu.program_memory import memory_of
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates
from inferometer.engines.webgpu.run.executor import Request, Submission
from inferometer.errors import InferometerError
from inferometer.reports.delimited import render_csv
from inferometer.reports.markdown import render_markdown
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import facts_of, remarks_of, sections_of


def _sometimes(one: Dispatch, passed: Pass, chance: random.Random) -> int | None:
    return None if chance.random() < 0.2 else usual_dur(one, passed, chance)


def _row(profile: Profile, phase: str, label: str) -> dict[str, object]:
    return profile.rows.filter(phase=phase, label=label).row(0, named=True)


def test_a_row_has_all_calls_of_its_label_in_all_layers() -> None:
    program = small_program(layers=3)
    profile = make_profile(program, answer(program, new_tokens=5, batch=4), adapter=ADAPTER)
    row = _row(profile, "decode", "linear:ffn_up")
    assert (row["op"], row["role"], row["layers"], row["kernel"]) == ("linear", "ffn_up", 3, "linear_workgroup")
    assert (row["calls"], row["untimed"]) == (3 * 4, 0)
    assert row["grid"] == "4x1x1"


def test_a_row_a_layer_when_asked_for() -> None:
    program = small_program(layers=2)
    profile = make_profile(program, answer(program, new_tokens=3), each_layer=True)
    labels = sections_of(profile)[0].frame.filter(phase="decode", op="rms_norm")["label"].sort().to_list()
    assert labels == ["rms_norm:L0", "rms_norm:L1"]


@examples(25)
@given(st.integers(1, 90), st.integers(1, 9), st.integers(1, 5), st.integers(1, 3), st.integers(0, 999))
def test_time_and_dispatches_are_conserved(prompt: int, new: int, batch: int, layers: int, seed: int) -> None:
    program = small_program(layers=layers)
    submissions = answer(program, prompt=prompt, new_tokens=new, batch=batch, seed=seed, dur=_sometimes)
    profile = make_profile(program, submissions)
    ran = sum(len(one.dispatches(program)) for submission in submissions for one in submission.passes)
    for rows in (profile.rows, profile.layer_rows):
        assert int(rows["total_ns"].sum()) == profile.summed_ns
        assert int(rows["calls"].sum()) + int(rows["untimed"].sum()) == profile.dispatches == ran
    assert profile.untimed == sum(submission.untimed for submission in submissions)
    assert profile.busy_ns <= profile.summed_ns
    assert profile.busy_ns <= profile.span_ns <= profile.wall_ns
    phases = profile.phases
    assert int(phases["wall_ns"].sum()) == profile.wall_ns == sum(one.wall_ns for one in submissions)
    parts = phases.select(pl.sum_horizontal("record_ns", "submit_ns", "wait_ns", "read_ns")).to_series()
    assert parts.to_list() == phases["wall_ns"].to_list()


def test_busy_time_counts_overlapping_passes_once() -> None:
    program = small_program(layers=1)
    (one,) = answer(program, new_tokens=1)
    begin = one.start_ns + one.record_ns + one.submit_ns
    together = replace(one, begin_ns=(begin,) * len(one.begin_ns), end_ns=(begin + 1_000,) * len(one.end_ns))
    profile = make_profile(program, [together])
    assert (profile.busy_ns, profile.summed_ns) == (1_000, 1_000 * len(one.begin_ns))


def test_bytes_follow_the_context_of_each_pass() -> None:
    program = small_program(layers=1)
    submissions = answer(program, prompt=10, new_tokens=3, batch=2)
    row = _row(make_profile(program, submissions), "decode", "attention")
    # 512 bytes a position seen, 4 bytes per token written; the two decoded tokens see 11 and 12 positions.
    assert row["modelled_bytes"] == 512 * (11 + 12) + 4 * 2
    assert row["gb_per_s"] == pytest.approx((512 * 23 + 8) / int(str(row["total_ns"])))


def test_a_grid_that_grows_shows_both_ends() -> None:
    program = small_program(layers=1)
    row = _row(make_profile(program, answer(program, prompt=15, new_tokens=9)), "decode", "attention")
    assert row["grid"] == "4x1x1 to 4x2x1"


def test_s_is_the_time_that_the_bytes_need_over_the_measured() -> None:
    program = small_program()
    submissions = answer(program)
    row = _row(make_profile(program, submissions, bandwidth=Bandwidth(1e9, "a copy")), "decode", "linear:lm_head")
    bound_ns = int(str(row["modelled_bytes"])) / 1e9 * 1e9
    assert row["bound_ns"] == pytest.approx(bound_ns)
    assert row["sol_fraction"] == pytest.approx(bound_ns / int(str(row["total_ns"])))


def test_without_a_bandwidth_fractions_are_of_the_best_kernel() -> None:
    profile = make_profile(small_program(), answer(small_program()), adapter=ADAPTER)
    assert profile.rows["sol_fraction"].null_count() == profile.rows.height
    assert profile.rows["best_fraction"].max() == pytest.approx(1.0)
    assert any("relative to the best kernel" in text for text in remarks_of(profile))


def test_an_adapter_that_we_have_data_of_has_its_bandwidth() -> None:
    profile = make_profile(small_program(), answer(small_program()), adapter=replace(ADAPTER, name="Apple M3"))
    assert profile.bandwidth is not None
    assert profile.bandwidth.bytes_per_s == 100e9
    assert "Apple M3" in profile.bandwidth.source


RATES = AdapterRates(2e9, "copying 67 MB", 11_000.0)


def test_a_measured_bandwidth_is_the_bound_of_an_adapter_that_we_have_no_data_of() -> None:
    profile = make_profile(small_program(), answer(small_program()), adapter=ADAPTER, rates=RATES)
    assert profile.bandwidth == profile.measured == Bandwidth(2e9, "measured here: copying 67 MB")
    assert profile.empty_pass_ns == 11_000.0
    assert profile.rows["sol_fraction"].null_count() == profile.rows["is_launch_bound"].null_count() == 0
    assert dict(facts_of(profile))["Bandwidth"] == "2.000 GB/s, measured here: copying 67 MB"
    assert profile.as_json()["bandwidth_source"] == "measured here: copying 67 MB"


def test_a_datasheets_bandwidth_stays_the_bound_and_the_measured_one_stands_beside_it() -> None:
    known = replace(ADAPTER, name="Apple M3")
    profile = make_profile(small_program(), answer(small_program()), adapter=known, rates=RATES)
    assert profile.bandwidth is not None
    assert profile.bandwidth.bytes_per_s == 100e9
    told = dict(facts_of(profile))["Bandwidth"]
    assert "datasheet of Apple M3" in told
    assert "; 2.000 GB/s, measured here" in told
    assert profile.as_json()["measured_bytes_per_s"] == 2e9


def test_a_fraction_above_one_is_shown_and_said() -> None:
    slow = AdapterRates(1e3, "copying 67 MB", 1.0)
    profile = make_profile(small_program(), answer(small_program()), rates=slow)
    most = profile.rows["sol_fraction"].max()
    assert isinstance(most, float)
    assert most > 1
    assert any(text.startswith("S above 1") and "linear:lm_head" in text for text in remarks_of(profile))


def test_a_brief_profile_leaves_out_what_stands_beside_it() -> None:
    run = run_of(small_program(), answer(small_program()))
    brief, whole = (make_profile(run.program, run.submissions, load=run.load, brief=brief) for brief in (True, False))
    titles = [section.title for section in sections_of(whole)]
    assert [section.title for section in sections_of(brief)] == titles[:3]
    assert titles[3:] == ["Memory", "Load"]
    assert brief.as_json()["load"] == whole.as_json()["load"]


def test_kernels_near_an_empty_pass_are_bound_by_launches() -> None:
    program = small_program()
    profile = make_profile(program, answer(program), empty_pass_ns=11_000.0)
    bound = set(profile.rows.filter("is_launch_bound", phase="decode")["label"])
    assert "rms_norm" in bound
    assert "linear:lm_head" not in bound
    assert "Launch-bound" in render_terminal(profile, is_terminal=False)
    assert make_profile(program, answer(program)).rows["is_launch_bound"].null_count() == profile.rows.height


def test_a_run_without_timestamps_has_walls_and_says_that_nothing_was_timed() -> None:
    program = small_program()
    profile = make_profile(program, answer(program, timing="single_pass"))
    assert (profile.summed_ns, profile.untimed) == (0, profile.dispatches)
    assert profile.steps["busy_ns"].null_count() == profile.steps.height
    assert profile.wall_ns > 0
    assert dict(facts_of(profile))["Device"] == "not timed"
    assert "not timed" in render_terminal(profile, is_terminal=False)


def test_steps_tell_tokens_context_and_the_time_of_a_token() -> None:
    program = small_program()
    profile = make_profile(program, answer(program, prompt=70, new_tokens=6, batch=4))
    told = profile.steps.select("phase", "tokens", "context").rows()
    assert told == [("prefill", 64, 0), ("prefill", 6, 64), ("decode", 4, 70), ("decode", 1, 74)]
    last = profile.steps.row(-2, named=True)
    assert last["token_ns"] == pytest.approx(last["wall_ns"] / 4)


def test_all_of_it_is_json_and_every_report_renders_it() -> None:
    program = small_program()
    profile = make_profile(program, answer(program), adapter=ADAPTER, load=run_of(program, answer(program)).load)
    data = json.loads(json.dumps(profile.as_json()))
    assert len(data["rows"]) == profile.rows.height
    assert data["load"][0] == {"name": "embedding", "dur_ns": 300_000_000, "bytes": 65_536, "gb_per_s": 65_536 / 3e8}
    assert data["memory"][0]["overhead_bytes"] == 72
    for text in (render_terminal(profile, is_terminal=False), render_markdown(profile), render_csv(profile)):
        assert "linear:lm" in text


def test_an_answer_of_nothing_has_an_empty_profile() -> None:
    profile = make_profile(small_program(), [])
    assert (profile.dispatches, profile.wall_ns, profile.rows.height) == (0, 0, 0)
    json.dumps(profile.as_json())
    render_terminal(profile, is_terminal=False)


def test_times_of_other_than_all_dispatches_are_refused() -> None:
    program = small_program()
    one = answer(program)[0]
    with pytest.raises(InferometerError, match=r"submission 0 .* expected times of"):
        dispatch_times(program, [replace(one, begin_ns=one.begin_ns[1:], end_ns=one.end_ns[1:])])


def test_memory_by_purpose_adds_up_to_all_buffers() -> None:
    program = small_program()
    found = {one.purpose: (one.size_bytes, one.overhead_bytes) for one in memory_of(program)}
    assert found["weights"] == (196_608, 72)
    assert sum(size for size, _ in found.values()) == sum(buffer.size_bytes for buffer in program.buffers)


def _walls(*submissions: Submission) -> int:
    return sum(one.wall_ns for one in submissions)


def test_the_decode_rate_is_tokens_after_the_first_over_the_walls_of_decode() -> None:
    program = small_program()
    submissions = answer(program, new_tokens=6, batch=4, between_ns=50_000_000)
    run = run_of(program, submissions)
    assert (run.decode_tokens, run.decode_ns) == (5, _walls(*submissions[1:]))
    assert run.decode_tokens_per_s == pytest.approx(5e9 / _walls(*submissions[1:]))
    assert run.ttft_ns == 1_000_000 + submissions[0].wall_ns
    assert run.prefill_ns == submissions[0].wall_ns


def test_tokens_behind_a_stop_token_are_no_part_of_the_answer() -> None:
    program = small_program()
    passes = tuple(Pass(("decode", "head"), 1, 9 + i) for i in range(4))
    first = submit(program, (Pass(("prefill", "head"), 9, 0),), start_ns=0, tokens=(5,))
    second = submit(program, passes, start_ns=10_000_000, tokens=(6, 2, 2, 2))
    run = run_of(program, [first, second], request=Request((1,), 100, stop=frozenset({2})))
    assert run.tokens == (5, 6, 2)
    assert run.decode_tokens == 2
    assert run.token_ns == (second.wall_ns / 2,) * 2


@pytest.mark.parametrize(
    ("kernel", "constants", "threads"),
    [
        ("rms_norm", {"D": 64, "THREADS": 32}, (32, 1, 1)),
        ("no such kernel", {}, None),
    ],
)
def test_a_workgroup_is_told_by_the_kernels_file_and_the_constants(
    kernel: str, constants: dict[str, float], threads: tuple[int, int, int] | None
) -> None:
    assert workgroup_of(Pipeline(kernel, constants)) == threads


def test_every_kernel_tells_its_workgroup() -> None:
    assert not [name for name in kernel_names() if workgroup_of(Pipeline(name, {})) is None]


def test_a_workgroup_may_be_a_part_of_a_tile() -> None:
    small, large = (workgroup_of(Pipeline("matmul_tile", {"TILE_M": 32, "TILE_N": n})) for n in (32, 64))
    assert small is not None
    assert large == (2 * small[0], small[1], 1)
