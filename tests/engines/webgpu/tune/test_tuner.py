"""Candidates are measured in the model; what is kept is only what is faster beyond doubt, and only while it holds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from inferometer.engines.webgpu.plan.path_files import parse_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import Candidate, TuneKey
from inferometer.engines.webgpu.program import Pass, Program
from inferometer.engines.webgpu.run.executor import Adapter, Content, LoadPhase, OnText, Submission, Timing
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.engines.webgpu.tune import tuner
from inferometer.engines.webgpu.tune.tuned_file import tuned_choices, tuning_file
from inferometer.engines.webgpu.tune.tuner import tune
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import InputError, Unavailable

PATH = """
name = "two"
families = ["llama"]
base = "llama"
[kernels]
linear = [
  { kernel = "linear_workgroup", constants = { COLUMNS = 4 }, tune = { COLUMNS = [1, 2] } },
  { kernel = "linear_thread" },
]
head_linear = [{ kernel = "linear_thread" }]
gate_up = [{ kernel = "gate_up_thread" }]
matmul = [{ kernel = "matmul_tile" }]
matmul_gate_up = [{ kernel = "matmul_gate_up" }]
attention_decode = [{ kernel = "attention_streaming" }]
norm_linear = [{ kernel = "norm_linear_thread" }]
norm_gate_up = [{ kernel = "norm_gate_up_thread" }]
"""
TWO_FORMS = parse_path(PATH, "two")
TWO = replace(TWO_FORMS, fused=None)


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "_MOST_ROWS", 4)
    monkeypatch.setattr(tuner, "_DECODED", 2)
    monkeypatch.setattr(tuner, "_POSITION", 8)


class FixedTimes:
    """An executor that computes as NumPy and says how long each kernel took, by its name and columns; else 5 µs."""

    def __init__(self, times: Mapping[tuple[str, int | None], int]) -> None:
        self._inner, self._times = NumpyExecutor(), times
        self.loads = 0
        self.adapter: Adapter = self._inner.adapter
        self.closed = False

    def load(self, program: Program, contents: Mapping[str, Content], said: OnText) -> Sequence[LoadPhase]:
        self._program = program
        self.loads += 1
        return self._inner.load(program, contents, said)

    def write(self, buffer: str, data: Any, offset: int = 0) -> None:
        self._inner.write(buffer, data, offset)

    def submit(self, passes: Sequence[Pass], timing: Timing) -> Submission:
        found = self._inner.submit(passes, timing)
        ends = []
        for dispatch in (dispatch for one in passes for dispatch in one.dispatches(self._program)):
            pipeline = self._program.pipelines[dispatch.pipeline]
            columns = pipeline.constants.get("COLUMNS")
            key = (pipeline.kernel, None if columns is None else int(columns))
            ends.append(self._times.get(key, 5000))
        return Submission(
            passes=tuple(passes), timing=timing, start_ns=0, record_ns=0, submit_ns=0, read_ns=0,
            wait_ns=sum(ends), tokens=found.tokens, begin_ns=(0,) * len(ends), end_ns=tuple(ends),
        )  # fmt: skip

    def read(self, buffer: str, offset: int = 0, size_bytes: int | None = None) -> Any:
        return self._inner.read(buffer, offset, size_bytes)

    def close(self) -> None:
        self.closed = True


def test_the_fastest_candidate_is_kept_and_chosen_by_later_plans(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    executor = FixedTimes({("linear_workgroup", 4): 900, ("linear_workgroup", 2): 300, ("linear_thread", None): 500})
    checkpoint = open_checkpoint("tiny-llama")
    path = TWO

    choices = tune(checkpoint, executor, path=path, file=file, rounds=2)

    assert executor.closed
    assert executor.loads == 3  # all candidates, then two rounds of the best
    assert {each.op for each in choices} == {"linear"}
    assert all(each.reason.startswith("3.00 x as fast as linear_workgroup (COLUMNS=4)") for each in choices)
    loaded = plan_model(
        checkpoint, executor.adapter, capacity=32, path=path, tuned=tuned_choices(executor.adapter, file=file)
    )
    chosen = {one.role: one for one in loaded.selections if one.phase == "decode" and one.op == "linear"}
    assert {one.constants["COLUMNS"] for one in chosen.values()} == {2}
    assert all(one.reason.startswith("tuned: 3.00 x") for one in chosen.values())


def test_a_gain_within_noise_changes_nothing(tmp_path: Path) -> None:
    executor = FixedTimes({("linear_workgroup", 4): 1000, ("linear_workgroup", 2): 960, ("linear_thread", None): 980})
    choices = tune(open_checkpoint("tiny-llama"), executor, path=TWO, file=tmp_path / "t.json", rounds=1)
    assert {each.best for each in choices} == {0}
    assert choices[0].reason == "none of 3 others is faster by more than 5%"


def test_a_matrix_in_parts_counts_as_one_time(tmp_path: Path) -> None:
    executor = FixedTimes({("linear_workgroup", 4): 900, ("linear_workgroup", 2): 300, ("linear_thread", None): 500})
    executor.adapter = replace(executor.adapter, most_binding_bytes=20_480)

    choices = tune(open_checkpoint("tiny-llama"), executor, path=TWO, file=tmp_path / "t.json", rounds=1)

    head = next(each for each in choices if each.n == 320)
    assert [(one.kernel, one.median_ns) for one in head.measured[:2]] == [
        ("linear_workgroup", 2700), ("linear_workgroup", 900),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("norm_ns", "is_fused"),
    [(5000, True), (1, False)],  # without norms and additions of its own a step is shorter where these take long
)
def test_a_whole_step_decides_whether_steps_are_fused(norm_ns: int, is_fused: bool, tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    executor = FixedTimes({("add_rms_norm", None): norm_ns, ("rms_norm", None): norm_ns})
    checkpoint = open_checkpoint("tiny-llama")

    choices = tune(checkpoint, executor, path=TWO_FORMS, file=file, rounds=1)

    tuned = tuned_choices(executor.adapter, file=file)
    loaded = plan_model(checkpoint, executor.adapter, capacity=32, path=TWO_FORMS, tuned=tuned)
    ops = [each.op for each in loaded.program.phases["decode"] if each.layer == 1]
    assert choices[-1].best == is_fused
    if is_fused:
        assert ops == ["norm_linear", "rope", "attention", "linear_add", "norm_gate_up", "linear_add"]
        reason = next(one.reason for one in loaded.selections if one.op == "norm_linear")
        assert reason.startswith("fused form of decode, tuned: 1.")
        assert "x as fast as separate" in reason
    else:
        assert ops == ["linear", "rope", "attention", "linear", "add_rms_norm", "gate_up", "linear", "add_rms_norm"]


def test_a_fast_median_with_slow_quarters_is_not_believed() -> None:
    key = TuneKey("linear", 8, 8, 1)
    candidates = (Candidate("linear_thread", {}), Candidate("linear_workgroup", {}))
    steady = tuner._measured(candidates[0], [100.0] * 8)
    jumpy = tuner._measured(candidates[1], [50.0] * 5 + [300.0] * 3)
    assert tuner._choose(key, candidates, [steady, jumpy]).best == 0


def test_findings_hold_for_their_adapter_and_kernels_only(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    executor = FixedTimes({("linear_workgroup", 4): 900, ("linear_workgroup", 2): 300})
    tune(open_checkpoint("tiny-llama"), executor, path=TWO, file=file, rounds=1)
    other = Adapter("another", "Vulkan", "CPU", frozenset(), 1, 1, 1, 1)
    assert tuned_choices(other, file=file) is None
    known = json.loads(file.read_bytes())
    for found in known["adapters"].values():
        for each in found:
            each["digests"]["linear_thread"] = "of an older text"
    file.write_text(json.dumps(known))
    assert tuned_choices(executor.adapter, file=file) is None


def test_measuring_again_replaces_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    path = TWO
    times: dict[tuple[str, int | None], int] = {("linear_workgroup", 4): 900, ("linear_workgroup", 2): 300}
    first = tune(open_checkpoint("tiny-llama"), FixedTimes(times), path=path, file=file, rounds=1)
    tune(open_checkpoint("tiny-llama"), FixedTimes(times), path=path, file=file, rounds=1)
    (kept,) = json.loads(file.read_bytes())["adapters"].values()
    assert len(kept) == len(first)


def test_an_adapter_without_timestamps_is_refused(tmp_path: Path) -> None:
    executor = FixedTimes({})
    executor.adapter = Adapter("plain", "Vulkan", "CPU", frozenset(), 2**40, 2**40, 99, 256)
    with pytest.raises(Unavailable, match="wants the feature timestamp-query"):
        tune(open_checkpoint("tiny-llama"), executor, file=tmp_path / "t.json")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"form": "x"}', b"\xff\xfe"])
def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"t\.json: expected what tuning found"):
        tuned_choices(NumpyExecutor().adapter, file=file)


def test_a_link_in_its_place_is_refused_before_the_work(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.symlink_to("elsewhere")
    with pytest.raises(InputError, match="is a link; it is not replaced"):
        tune(open_checkpoint("tiny-llama"), FixedTimes({}), file=file)


def test_a_file_of_another_form_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(msgspec.json.encode({"form": 99, "adapters": {}}))
    assert tuned_choices(NumpyExecutor().adapter, file=file) is None


def test_it_is_kept_in_the_folder_of_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tuning_file() == tmp_path / "inferometer" / "webgpu-tuning.json"
