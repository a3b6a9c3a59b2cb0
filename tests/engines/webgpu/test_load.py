"""A model made ready: capacity, phases and bytes of loading, memory, and what closes a runner."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.engines.webgpu.scripted_runner import ADAPTER, ScriptedRunner

from inferometer.backends.wgsl.cache_formats import CACHE_F32
from inferometer.engines.webgpu import load as module
from inferometer.engines.webgpu.capacity import LARGEST_DEFAULT_CONTEXT, context_for, whole_context
from inferometer.engines.webgpu.chat.conversation import DeviceConversation
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
from inferometer.engines.webgpu.run import adapter_rates
from inferometer.engines.webgpu.run.executor import DeviceLost
from inferometer.engines.webgpu.runners import describe_adapter
from inferometer.engines.webgpu.tune import tuned_file, tuner
from inferometer.engines.webgpu.tune.choices import known_choices, measured_choices
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import InferometerError, InputError, Unavailable, UnknownName

PROMPT = "user: Hello\nassistant: "  # what a model of bytes reads for "Hello", after a token that begins


def test_a_model_on_numpy_answers() -> None:
    told: list[str] = []
    engine = load_webgpu(
        "tiny-qwen3", LoadOptions(seed=3, on="numpy", capacity_tokens=64, greedy=True), on_text=told.append
    )
    answer = DeviceConversation(engine, new_tokens=6).ask("Hello")
    assert (len(answer.tokens), answer.prompt_tokens) == (6, 1 + len(PROMPT))
    assert (engine.name, engine.source, engine.place) == ("tiny-qwen3", "random weights, seed 3", "numpy")
    assert (engine.context_limit, engine.program.capacity) == (64, 64)
    assert told[:1] == ["the model tiny-qwen3"]
    engine.close()


def test_loading_is_told_by_phase_with_bytes_and_reading_apart() -> None:
    engine = load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=32))
    names = [phase.name for phase in engine.load_phases]
    assert names[:3] == ["open", "adapter", "plan"]
    loads = {phase.name: phase for phase in engine.load_phases if phase.bytes}
    reads = {read.part: read for read in engine.reads}
    assert loads.keys() == reads.keys()
    for part, phase in loads.items():
        assert reads[part].bytes == phase.bytes
        assert 0 < reads[part].dur_ns <= phase.dur_ns
    assert sum(phase.dur_ns for phase in engine.load_phases) <= engine.load_ns
    starts = [phase.start_ns for phase in engine.load_phases]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("options", "number_bytes", "dtype"), [({}, 2, "float16"), ({"cache": CACHE_F32}, 4, "float32")]
)
def test_memory_is_told_by_purpose(options: dict[str, Any], number_bytes: int, dtype: str) -> None:
    engine = load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=32, **options))
    memory = {each.purpose: each for each in engine.memory}
    assert sum(each.size_bytes for each in engine.memory) == sum(each.size_bytes for each in engine.program.buffers)
    spec = engine.spec
    assert memory["kv_cache"].needed_bytes == 2 * spec.layers * 32 * spec.kv_heads * spec.head_dim * number_bytes
    assert engine.cache_dtype == dtype
    assert engine.weight_bytes == memory["weights"].needed_bytes >= 2 * engine.parameters


def test_the_cache_is_as_large_as_the_answer_needs() -> None:
    checkpoint = open_checkpoint("tiny-llama")
    assert context_for(checkpoint, "Hello", 10) == 1 + len(PROMPT) + 10
    assert context_for(checkpoint, "Hello", 10, uses_template=False) == 1 + 5 + 10
    assert context_for(checkpoint, "Hello", 10, 30) == 30
    with pytest.raises(InputError, match="the prompt has 24 tokens; tiny-llama has 24 positions, and one at least"):
        context_for(checkpoint, "Hello", 10, 24)
    with pytest.raises(InputError, match="the prompt is empty"):
        context_for(checkpoint, " ", 10)


@pytest.mark.parametrize(
    ("limit", "wanted", "positions"),
    [(100, None, 100), (1 << 20, None, LARGEST_DEFAULT_CONTEXT), (None, None, LARGEST_DEFAULT_CONTEXT),
     (1 << 20, 8192, 8192), (None, 8192, 8192), (100, 50, 50)],
)  # fmt: skip
def test_a_conversation_gets_the_models_context_up_to_a_limit(
    limit: int | None, wanted: int | None, positions: int
) -> None:
    spec: Any = _Spec(limit)
    assert whole_context(spec, wanted) == positions


def test_more_context_than_the_model_was_made_for_is_refused() -> None:
    spec: Any = _Spec(100)
    with pytest.raises(
        InputError, match="context: expected at most the 100 positions that some was made for, found 101"
    ):
        whole_context(spec, 101)


class _Spec:
    name = "some"

    def __init__(self, limit: int | None) -> None:
        self.context_limit = limit


def test_a_tuner_is_asked_once_and_what_it_says_is_planned() -> None:
    asked: list[tuple[str, str, str]] = []

    def tuner(path: Any, checkpoint: Any, runner: Any, said: Any) -> Any:
        asked.append((path.name, checkpoint.spec.name, runner.adapter.backend))
        return lambda key, candidates: (candidates[-1], "measured 1 µs") if key.op == "gate_up" else None

    engine = load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=16, tuner=tuner))
    assert asked == [("llama", "tiny-llama", "NumPy")]
    assert "tune" in [phase.name for phase in engine.load_phases]
    assert "tuned: measured 1 µs" in {each.reason for each in engine.loaded.selections if each.op == "gate_up"}


def test_a_measurement_is_made_on_a_device_of_its_own_and_then_known(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[Any, ...]] = []

    def tune(checkpoint: Any, executor: Any, *, path: Any, on_text: Any) -> None:
        measured.append((checkpoint.spec.name, executor, path.name))
        executor.close()

    def tuned_choices(adapter: Any) -> Any:
        return (lambda key, candidates: (candidates[-1], adapter.backend)) if measured else None

    monkeypatch.setattr(tuner, "tune", tune)
    monkeypatch.setattr(tuned_file, "tuned_choices", tuned_choices)
    before, after, later = (
        load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=32, tuner=tuner))
        for tuner in (known_choices, measured_choices, known_choices)
    )
    ((name, executor, path),) = measured
    assert (name, path) == ("tiny-llama", "llama")
    assert executor is not after.runner.executor  # type: ignore[attr-defined]
    assert not any(each.reason.startswith("tuned") for each in before.loaded.selections)
    assert any(each.reason == "tuned: NumPy" for each in after.loaded.selections)
    assert later.loaded.selections == after.loaded.selections
    answers = [DeviceConversation(engine, new_tokens=4).ask("Hello").tokens for engine in (before, after)]
    assert answers[0] == answers[1]


def test_a_browser_is_not_tuned_in() -> None:
    with pytest.raises(InputError, match="tuning: expected wgpu or NumPy, found a browser"):
        measured_choices(Any, Any, ScriptedRunner(), print)  # type: ignore[arg-type]


def test_a_load_that_fails_closes_its_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(ScriptedRunner):
        def load(self, *words: Any) -> Any:
            raise InferometerError("planted")

    runner = Failing(adapter=replace(ADAPTER, features=frozenset(), most_buffer_bytes=1 << 30))
    monkeypatch.setattr(module, "open_local", lambda on, said: runner)
    with pytest.raises(InferometerError, match="planted"):
        load_webgpu("tiny-llama", LoadOptions(capacity_tokens=16))
    assert runner.closed == 1


def test_an_unknown_model_is_said_before_a_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_local", lambda on, said: pytest.fail("a device was opened"))
    with pytest.raises(UnknownName, match="nonsense"):
        load_webgpu("nonsense")


def test_an_adapter_in_words() -> None:
    assert describe_adapter(ADAPTER) == "Scripted (NumPy, CPU)"
    assert describe_adapter(replace(ADAPTER, backend="browser", kind="unknown")) == "Scripted (browser)"


def test_the_mark_of_a_folder_changes_with_its_files(tmp_path: Any) -> None:
    marks = [module._mark_of(str(tmp_path), 0)]
    for content in (b"1", b"22"):
        (tmp_path / "model.safetensors").write_bytes(content)
        marks.append(module._mark_of(str(tmp_path), 0))
    assert len(set(marks)) == 3
    assert module._mark_of("tiny-llama", 1) != module._mark_of("tiny-llama", 2)


def test_reading_is_timed_only_when_it_is_asked_for() -> None:
    from inferometer.engines.webgpu.run.executor import Content

    reading = module._Reading()
    arrays = {"a": np.zeros(4, np.float32), "b": np.zeros(2, np.float16)}
    contents = {name: Content("layers", 3, lambda name=name: arrays[name]) for name in arrays}  # type: ignore[misc]
    watched = reading.watched(contents)
    assert reading.parts() == ()
    assert watched["a"].read() is arrays["a"]
    watched["b"].read()
    (part,) = reading.parts()
    assert (part.part, part.source_bytes, part.bytes) == ("layers", 6, 20)


def test_what_the_adapter_reaches_is_measured_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_rates, "MOVED_BYTES", 4 << 20)
    engine = load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=64, measures_rates=True))
    assert engine.rates is not None
    assert engine.rates.how in ("copying 4.194 MB", "reading 4.194 MB")
    assert [phase.name for phase in engine.load_phases][:3] == ["open", "adapter", "rates"]
    assert len(DeviceConversation(engine, new_tokens=3).ask("Hello").tokens) == 3
    assert load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=64)).rates is None


def test_why_nothing_was_measured_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(fails: Exception | None) -> Any:
        def measured(executor: Any) -> None:
            if fails is not None:
                raise fails

        return measured

    for fails, said in ((None, "without timestamps"), (Unavailable("planted: no memory"), "planted: no memory")):
        monkeypatch.setattr(module, "measure_rates", measure(fails))
        engine = load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=16, measures_rates=True))
        assert engine.rates is None
        assert any(said in note for note in engine.notes)
    monkeypatch.setattr(module, "measure_rates", measure(DeviceLost("planted: gone")))
    with pytest.raises(DeviceLost):
        load_webgpu("tiny-llama", LoadOptions(on="numpy", capacity_tokens=16, measures_rates=True))
    monkeypatch.setattr(module, "open_local", lambda on, said: ScriptedRunner())
    engine = load_webgpu("tiny-llama", LoadOptions(capacity_tokens=16, measures_rates=True))
    assert any("a browser's device isn't measured" in note for note in engine.notes)
    assert "rates" not in [phase.name for phase in engine.load_phases]


def test_the_mark_of_a_folder_has_names_sizes_and_times(tmp_path: Any) -> None:
    file = tmp_path / "model-00001-of-00002.safetensors"
    file.write_bytes(b"12")
    mark = module._mark_of(str(tmp_path), 0)
    stat = file.stat()
    assert mark == f"{tmp_path.resolve()} {file.name} 2 {stat.st_mtime_ns}"
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    assert module._mark_of(str(tmp_path), 0) != mark
