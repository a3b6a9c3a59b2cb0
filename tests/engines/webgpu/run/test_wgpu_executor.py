import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.engines.webgpu.toy_program import (
    VOCABULARY,
    toy_answer,
    toy_contents,
    toy_program,
    toy_references,
    toy_sources,
)

from inferometer.backends.wgsl.source import KernelSource, parse_kernel
from inferometer.engines.webgpu.program import Pass, Pipeline
from inferometer.engines.webgpu.run import wgpu_executor
from inferometer.engines.webgpu.run.adapters import choose_adapter, describe, find_adapter, open_device
from inferometer.engines.webgpu.run.device_timestamps import device_times
from inferometer.engines.webgpu.run.executor import TIMINGS, Content, DeviceLost, Request
from inferometer.engines.webgpu.run.local_runner import LocalRunner, answer_tokens
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.engines.webgpu.run.wgpu_executor import WgpuExecutor, open_wgpu
from inferometer.engines.webgpu.run.wgpu_pipelines import DevicePipelines
from inferometer.errors import InferometerError, Unavailable

PROMPT = (4, 11, 7)


def _nobody(text: str) -> None:
    pass


@pytest.fixture(name="executor")
def _executor() -> Iterator[WgpuExecutor]:
    pytest.importorskip("wgpu")
    try:
        executor = open_wgpu(sources=toy_sources)
    except Unavailable as error:
        pytest.skip(str(error))
    yield executor
    executor.close()


def _started(executor: WgpuExecutor, **shape: int) -> WgpuExecutor:
    executor.load(toy_program(**shape), toy_contents(), _nobody)
    executor.write("tokens", np.array(PROMPT, np.uint32))
    executor.write("state", np.array([0, len(PROMPT)], np.uint32))
    return executor


def _passes(decode_steps: int) -> list[Pass]:
    steps = [Pass(("decode", "head"), 1, len(PROMPT) + step) for step in range(decode_steps)]
    return [Pass(("prefill", "head"), len(PROMPT), 0), *steps]


def test_every_timing_gives_the_tokens_that_numpy_gives(executor: WgpuExecutor) -> None:
    reference = NumpyExecutor(toy_sources, toy_references)
    reference.load(toy_program(spins=2), toy_contents(), _nobody)
    reference.write("tokens", np.array(PROMPT, np.uint32))
    reference.write("state", np.array([0, len(PROMPT)], np.uint32))
    wanted = reference.submit(_passes(5), "single_pass").tokens

    found = {timing: _started(executor, spins=2).submit(_passes(5), timing).tokens for timing in TIMINGS}

    assert found == dict.fromkeys(TIMINGS, wanted)
    assert wanted == toy_answer(PROMPT, 6)
    for name in ("state", "tokens", "sums", "out", "seen", "spun"):
        assert executor.read(name).tolist() == reference.read(name).tolist(), name


def test_batches_of_any_size_give_the_same_answer(executor: WgpuExecutor) -> None:
    runner = LocalRunner(executor)
    runner.load(toy_program(most_rows=2), toy_contents(), _nobody)
    answers = [
        answer_tokens(runner.run(Request(PROMPT, 9, batch=batch), lambda submission: None), frozenset())
        for batch in (1, 3, 4, 8)
    ]
    assert answers == [(toy_answer(PROMPT, 9), 0)] * 4


def _need_timestamps(executor: WgpuExecutor) -> None:
    if "timestamp-query" not in executor.adapter.features:
        pytest.skip(f"{executor.adapter.name} has no usable timestamps")


def test_timestamps_follow_each_other_within_the_submits_wall_time(executor: WgpuExecutor) -> None:
    _need_timestamps(executor)
    submission = _started(executor, spins=3).submit(_passes(3), "timestamps")

    assert (len(submission.begin_ns), submission.untimed) == (4 * 5, 0)
    times = [at for pair in zip(submission.begin_ns, submission.end_ns, strict=True) for at in pair if at is not None]
    all_times = [submission.start_ns, *times, submission.start_ns + submission.wall_ns]
    assert all_times == sorted(all_times)


def test_more_dispatches_than_a_query_set_holds_are_all_timed(executor: WgpuExecutor) -> None:
    _need_timestamps(executor)
    submission = _started(executor, spins=1100, times=1).submit(_passes(1), "timestamps")

    assert (len(submission.begin_ns), submission.untimed) == (2204, 0), "4408 timestamps"
    assert None not in submission.begin_ns + submission.end_ns
    assert submission.tokens == toy_answer(PROMPT, 2)


def test_without_timestamps_all_is_untimed_and_said() -> None:
    pytest.importorskip("wgpu")
    try:
        found = find_adapter()
    except Unavailable as error:
        pytest.skip(str(error))
    executor = WgpuExecutor(open_device(found), describe(found, ticks=False), toy_sources)
    said: list[str] = []

    executor.load(toy_program(), toy_contents(), said.append)
    submission = executor.submit(_passes(0), "timestamps")
    executor.close()

    assert said[0] == f"{executor.adapter.name}: no timestamps to be had: dispatches are not timed"
    assert (submission.begin_ns, submission.end_ns, submission.untimed) == ((None, None), (None, None), 2)
    assert submission.clock == "none"


def test_only_a_timed_submit_has_times(executor: WgpuExecutor) -> None:
    submission = _started(executor).submit(_passes(0), "pass_per_dispatch")
    assert (submission.begin_ns, submission.untimed, submission.clock) == ((), 0, "none")


def test_the_warm_up_leaves_no_trace(executor: WgpuExecutor) -> None:
    executor.load(toy_program(spins=1), toy_contents(), _nobody)
    found = {buffer.name: executor.read(buffer.name).view(np.uint32) for buffer in toy_program().buffers}
    assert {name: int(words.sum()) for name, words in found.items() if words.any()} == {"factor": 3}


def test_what_the_warm_up_wrote_over_is_written_again(executor: WgpuExecutor) -> None:
    content = Content("tables", 0, lambda: np.arange(VOCABULARY, dtype=np.uint32))
    executor.load(toy_program(), {**toy_contents(), "seen": content}, _nobody)
    assert executor.read("seen").view(np.uint32).tolist() == list(range(VOCABULARY))


def test_contents_arrive_whole_in_pieces(executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wgpu_executor, "_PIECE_BYTES", 8)
    monkeypatch.setattr(wgpu_executor, "_STAGED_BYTES", 24)
    content = Content("embedding", 0, lambda: np.arange(90, dtype=np.float16))

    phases = executor.load(toy_program(), {**toy_contents(), "logits": content}, _nobody)

    assert executor.read("logits", 0, 180).view(np.float16).tolist() == list(range(90))
    moved = {phase.name: phase.bytes for phase in phases}
    assert moved == {"buffers": 0, "pipelines": 0, "layers": 4, "embedding": 180, "warm-up": 0}


def test_parts_of_buffers_are_read_and_written(executor: WgpuExecutor) -> None:
    _started(executor)
    executor.write("tokens", np.array([5, 6], np.uint32), offset=8)
    assert executor.read("tokens", 0, 16).view(np.uint32).tolist() == [4, 11, 5, 6]
    assert executor.read("tokens", 9, 2).tolist() == [0, 0]
    with pytest.raises(
        InferometerError, match="sampling: 8 bytes at 124: expected multiples of 4, found 128 bytes in all"
    ):
        executor.write("sampling", np.zeros(2, np.uint32), offset=124)


def test_one_more_dispatch_costs_ten_calls_of_python(executor: WgpuExecutor) -> None:
    """The time of a call depends on the machine (about 0.6 µs; `benchmarks.webgpu_engine` measures it), their number
    doesn't."""
    few, many = 97, 297  # every grid but one is worked out anew, and half of the pipelines alternate
    calls = _calls_of_submit(executor, many) - _calls_of_submit(executor, few)
    assert 0 < calls <= 10 * (many - few)


def _calls_of_submit(executor: WgpuExecutor, spins: int) -> int:
    _started(executor, spins=spins, times=1)
    decode = _passes(1)[1:]
    executor.submit(decode, "single_pass")  # the first meets pipelines that are new
    calls = []
    gc.disable()  # what other tests left would be finalised meanwhile, in calls of its own
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event in ("call", "c_call") else None)
    try:
        executor.submit(decode, "single_pass")
    finally:
        sys.setprofile(None)
        gc.enable()
    return len(calls)


def test_what_is_compiled_serves_later_programs(executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_kernel = DevicePipelines._compile

    def counted(self: DevicePipelines, source: KernelSource, *rest: Any) -> Any:
        compiled.append(source.name)
        return compile_kernel(self, source, *rest)

    monkeypatch.setattr(DevicePipelines, "_compile", counted)

    made = []
    for times in (64, 64, 32, 64):  # a constant of one kernel
        executor.load(toy_program(spins=1, times=times), toy_contents(), _nobody)
        made.append(len(compiled))

    assert made == [made[0], made[0], made[0] + 1, made[0] + 1]
    runner = LocalRunner(executor)
    runner.load(toy_program(), toy_contents(), _nobody)
    tokens = [token for one in runner.run(Request(PROMPT, 6), lambda one: None) for token in one.tokens]
    assert tuple(tokens) == toy_answer(PROMPT, 6)


@pytest.mark.parametrize(
    ("rest", "place", "line"),
    [
        ("@compute @workgroup_size(1) fn main() { let x: u32 = nowhere; }", r"nowhere.* broken\.wgsl:5:54", 5),
        ("//! include: key_of\nfn wrong() -> u32 { return 1.5; }", r"broken\.wgsl:6:28", 6),
        ("//! include: step_on\n", r"state.* include/step_on\.wgsl:7:9", 7),
    ],
)
def test_a_kernel_that_doesnt_compile_is_named_with_the_message_file_and_line(
    executor: WgpuExecutor, rest: str, place: str, line: int
) -> None:
    program = toy_program()
    pipelines = (*program.pipelines[:2], Pipeline("broken", {"N": 3}))
    text = (
        "//! op: toy\n//! reference: toy\noverride N: u32;\n@group(0) @binding(0) var<storage, read> a: array<u32>;\n"
    )
    broken = parse_kernel("broken", text + rest)
    wrong = WgpuExecutor(
        executor._device, executor.adapter, lambda name: broken if name == "broken" else toy_sources(name)
    )

    with pytest.raises(Unavailable, match=rf"broken.wgsl \(N=3\): does not compile on .*{place} │ {line} │ "):
        wrong.load(msgspec.structs.replace(program, pipelines=pipelines), toy_contents(), _nobody)


def test_too_little_memory_says_for_which_buffer(executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    import wgpu

    def create_buffer(**options):
        raise wgpu.GPUOutOfMemoryError("Not enough memory left.")

    monkeypatch.setattr(executor._device, "create_buffer", create_buffer, raising=False)
    with pytest.raises(Unavailable, match="toy: buffer state of 32 B: out of memory: Not enough memory left"):
        executor.load(toy_program(), toy_contents(), _nobody)


def test_a_model_larger_than_the_free_memory_is_refused_on_a_cpu_adapter(
    executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    if executor.adapter.kind != "CPU":
        pytest.skip("the adapter has its own memory")
    monkeypatch.setattr("inferometer.engines.memory.free_bytes", lambda device: 1000)
    with pytest.raises(Unavailable, match=r"toy on .*: expected .* on cpu, found 1\.000 kB free"):
        executor.load(toy_program(), toy_contents(), _nobody)


def test_a_lost_device_is_told_by_every_call_and_ends_nothing(executor: WgpuExecutor) -> None:
    _started(executor)
    first = executor.submit(_passes(1), "single_pass")
    executor._device.destroy()

    calls = [
        lambda: executor.submit(_passes(1), "timestamps"),
        lambda: executor.submit(_passes(1), "single_pass"),
        lambda: executor.write("state", np.zeros(2, np.uint32)),
        lambda: executor.read("tokens"),
        lambda: executor.load(toy_program(), toy_contents(), _nobody),
    ]
    for call in calls:
        with pytest.raises(DeviceLost, match="the device is lost"):
            call()
    assert first.tokens == toy_answer(PROMPT, 2)


@pytest.mark.parametrize("step", ["_map", "_native"])
def test_a_device_lost_while_it_works_is_told(
    executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    _started(executor)
    owner, name = (executor, "_map") if step == "_map" else (executor._native, "poll")
    do = getattr(owner, name)

    def lose_first(*args):
        executor._device.destroy()
        return do(*args)

    monkeypatch.setattr(owner, name, lose_first)
    with pytest.raises(DeviceLost, match=r"2 passes on .*: the device is lost"):
        executor.submit(_passes(1), "single_pass")


@pytest.mark.parametrize(
    ("logged", "raised"), [("Validation Error: a buffer is not there", True), ("DEVICE LOST!", False)]
)
def test_what_wgpu_only_logs_is_raised_unless_it_is_anothers_loss(
    executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch, logged: str, raised: bool
) -> None:
    _started(executor)
    poll = executor._native.poll

    def poll_and_log() -> None:
        poll()
        logging.getLogger("wgpu").error(logged)

    monkeypatch.setattr(executor._native, "poll", poll_and_log)
    if raised:
        with pytest.raises(InferometerError, match=f"2 passes on .*: {logged}"):
            executor.submit(_passes(1), "single_pass")
    else:
        assert executor.submit(_passes(1), "single_pass").tokens == toy_answer(PROMPT, 2)


def test_ctrl_c_during_a_submit_comes_behind_it_and_the_next_one_works(
    executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    _started(executor)
    poll = executor._native.poll

    def interrupted_poll() -> None:
        signal.raise_signal(signal.SIGINT)
        poll()

    with monkeypatch.context() as patch:
        patch.setattr(executor._native, "poll", interrupted_poll)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(_passes(1), "single_pass")

    executor.write("state", np.array([0, 3], np.uint32))
    assert executor.submit(_passes(1), "timestamps").tokens == toy_answer(PROMPT, 2)


def test_two_executors_work_beside_each_other_and_one_goes_on_alone(executor: WgpuExecutor) -> None:
    other = _started(open_wgpu(sources=toy_sources), spins=2)
    _started(executor)
    both = [each.submit(_passes(2), "timestamps").tokens for each in (executor, other)]
    other.close()

    executor.write("state", np.array([0, 3], np.uint32))
    assert [*both, executor.submit(_passes(2), "timestamps").tokens] == [toy_answer(PROMPT, 3)] * 3


def test_a_closed_executor_says_so(executor: WgpuExecutor) -> None:
    _started(executor).close()
    executor.close()
    with pytest.raises(InferometerError, match="the executor was closed"):
        executor.submit(_passes(1), "single_pass")
    with pytest.raises(InferometerError, match="the executor was closed"):
        executor.load(toy_program(), toy_contents(), _nobody)


_OPEN_TO_THE_END = """
import numpy as np
from tests.engines.webgpu.toy_program import toy_contents, toy_program, toy_sources
from inferometer.engines.webgpu.program import Pass
from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu
kept = [open_wgpu(sources=toy_sources), open_wgpu(sources=toy_sources)]
for executor in kept:
    executor.load(toy_program(), toy_contents(), print)
    executor.submit([Pass(("decode", "head"), 1, 0)], "timestamps")
"""


@pytest.mark.usefixtures("executor")
def test_nothing_is_said_on_stderr_from_the_first_call_to_the_end_of_the_process() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    found = subprocess.run(
        [sys.executable, "-c", _OPEN_TO_THE_END],
        env={**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")


def _an_adapter(device: str, backend: str, kind: str) -> SimpleNamespace:
    info = {"device": device, "description": "Mesa", "backend_type": backend, "adapter_type": kind}
    return SimpleNamespace(info=info)


_CPU = _an_adapter("llvmpipe", "Vulkan", "CPU")
_GPU = _an_adapter("Arc", "Vulkan", "IntegratedGPU")
_OPENGL = _an_adapter("llvmpipe", "OpenGL", "CPU")


def test_without_an_adapter_the_message_says_what_to_install() -> None:
    with pytest.raises(Unavailable, match="expected an adapter of Vulkan, Metal, D3D12, found no adapters") as caught:
        choose_adapter([], None)
    assert "make webgpu-deps" in str(caught.value)


def test_the_opengl_fallback_is_refused() -> None:
    with pytest.raises(Unavailable, match=r"found llvmpipe \(OpenGL, CPU: Mesa\)"):
        choose_adapter([_OPENGL], None)


def test_a_gpu_goes_before_the_cpu_and_a_name_before_both() -> None:
    assert choose_adapter([_OPENGL, _CPU, _GPU], None) is _GPU
    assert choose_adapter([_OPENGL, _CPU, _GPU], "LLVM") is _CPU
    with pytest.raises(Unavailable, match=r'"RTX" in its name, found llvmpipe \(Vulkan.*Arc \(Vulkan'):
        choose_adapter([_CPU, _GPU], "RTX")


def test_without_wgpu_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(Unavailable) as caught:
        open_wgpu()
    assert "pip install 'inferometer[webgpu]'" in str(caught.value)


def test_the_environment_is_as_before(executor: WgpuExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    open_device(find_adapter(executor.adapter.name))
    assert "XDG_RUNTIME_DIR" not in os.environ


def _ticks(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, np.uint64)


def test_ticks_within_the_submit_are_on_the_hosts_clock() -> None:
    times = device_times(_ticks((110, 120), (121, 190)), 1.0, start_ns=100, submitted_ns=105, waited_ns=200)
    assert times == ((110, 121), (120, 190), 0, "shared")


def test_ticks_of_another_clock_begin_when_the_submit_returned() -> None:
    times = device_times(_ticks((7_000, 7_010), (7_011, 7_030)), 2.5, start_ns=100, submitted_ns=105, waited_ns=200)
    assert times == ((105, 133), (130, 180), 0, "aligned")


def test_pairs_that_cant_be_are_counted() -> None:
    pairs = _ticks((110, 120), (130, 129), (0, 0), (140, 2**63), (150, 160))
    times = device_times(pairs, 1.0, start_ns=100, submitted_ns=105, waited_ns=200)
    assert times == ((110, None, None, None, 150), (120, None, None, None, 160), 3, "shared")


def test_a_submit_without_any_usable_pair_has_no_clock() -> None:
    assert device_times(_ticks((9, 8)), 1.0, 100, 105, 200) == ((None,), (None,), 1, "none")


def test_adapters_tell_features_in_our_names() -> None:
    limits = {
        "max-storage-buffer-binding-size": 1,
        "max-buffer-size": 2,
        "max-storage-buffers-per-shader-stage": 3,
        "max-compute-invocations-per-workgroup": 4,
    }
    found = SimpleNamespace(
        info={**_GPU.info, "vendor": "Intel"}, limits=limits, features={"subgroup", "timestamp-query", "shader-f64"}
    )
    adapter = describe(found, ticks=True)
    assert (adapter.name, adapter.backend, adapter.kind, adapter.description) == (
        "Arc", "Vulkan", "IntegratedGPU", "Intel Mesa",
    )  # fmt: skip
    assert adapter.features == {"subgroups", "timestamp-query"}
    assert replace(adapter, features=frozenset({"subgroups"})) == describe(found, ticks=False)
    sizes = (adapter.most_binding_bytes, adapter.most_buffer_bytes)
    assert (*sizes, adapter.most_storage_buffers, adapter.most_workgroup_threads) == (1, 2, 3, 4)
