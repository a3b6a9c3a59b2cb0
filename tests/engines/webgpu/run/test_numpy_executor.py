import msgspec
import numpy as np
import pytest
from tests.engines.webgpu.toy_program import toy_answer, toy_contents, toy_program, toy_references, toy_sources

from inferometer.backends.wgsl.source import parse_kernel
from inferometer.engines.webgpu.program import Binding, Pass, Pipeline, Program
from inferometer.engines.webgpu.run.executor import Adapter, Timing
from inferometer.engines.webgpu.run.limits import check_fit
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.errors import InferometerError, Unavailable

PROMPT = (4, 11, 7)


def _an_executor(program: Program | None = None) -> NumpyExecutor:
    executor = NumpyExecutor(toy_sources, toy_references)
    executor.load(program or toy_program(), toy_contents(), lambda text: None)
    executor.write("tokens", np.array(PROMPT, np.uint32))
    executor.write("state", np.array([0, len(PROMPT)], np.uint32))
    return executor


@pytest.mark.parametrize("timing", ["single_pass", "pass_per_dispatch", "timestamps"])
def test_a_prefill_and_two_decode_steps_in_one_submit_sample_three_tokens(timing: Timing) -> None:
    executor = _an_executor()

    passes = [Pass(("prefill", "head"), 3, 0), Pass(("decode", "head"), 1, 3), Pass(("decode", "head"), 1, 4)]
    submission = executor.submit(passes, timing)

    assert submission.tokens == toy_answer(PROMPT, 3)
    assert submission.timing == timing
    assert executor.read("state").view(np.uint32).tolist() == [5, 1, 3, 0, 0, 0, 0, 0]


def test_times_are_the_hosts_around_each_kernel() -> None:
    submission = _an_executor(toy_program(spins=2)).submit([Pass(("prefill", "head"), 3, 0)], "timestamps")

    assert (len(submission.begin_ns), submission.untimed, submission.clock) == (4, 0, "shared")
    inside = [submission.start_ns, *_interleaved(submission), submission.start_ns + submission.wall_ns]
    assert inside == sorted(inside)


def _interleaved(submission):
    return [at for pair in zip(submission.begin_ns, submission.end_ns, strict=True) for at in pair]


def test_no_times_where_none_were_asked_for() -> None:
    submission = _an_executor().submit([Pass(("prefill",), 3, 0)], "single_pass")
    assert (submission.begin_ns, submission.untimed, submission.clock, submission.tokens) == ((), 0, "none", ())


def test_a_kernel_sees_its_part_of_a_buffer_in_its_type_and_all_of_its_constants() -> None:
    seen: dict[str, object] = {}

    def run(arrays, constants, grid):
        seen.update({name: (array.dtype, array.size, array.flags.writeable) for name, array in arrays.items()})
        seen["constants"], seen["grid"] = dict(constants), grid
        arrays["out"][:] = 7

    source = parse_kernel(
        "kernel",
        """
//! op: toy
//! reference: toy
override N: u32;
override EPS: f32 = 1e-6;
override THREADS: u32 = 64u;
@group(0) @binding(0) var<storage, read> weight: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> state: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
""",
    )
    program = toy_program()
    bindings = (Binding("tokens", 0, 64), Binding("state", 0, 32), Binding("tokens", 256, 16))
    dispatch = msgspec.structs.replace(program.phases["head"][0], pipeline=0, bindings=bindings, grid=(2, 3, 1))
    program = msgspec.structs.replace(
        program,
        buffers=tuple(msgspec.structs.replace(each, size_bytes=512) for each in program.buffers),
        pipelines=(Pipeline("kernel", {"N": 9}),),
        phases={"decode": (dispatch,)},
    )
    executor = NumpyExecutor(lambda name: source, lambda name: run)
    executor.load(program, {}, lambda text: None)

    executor.submit([Pass(("decode",), 1, 0)], "single_pass")

    assert seen == {
        "weight": (np.float16, 32, False),
        "state": (np.uint32, 8, False),
        "out": (np.float32, 4, True),
        "constants": {"N": 9, "EPS": 1e-6, "THREADS": 64},
        "grid": (2, 3, 1),
    }
    assert executor.read("tokens", 252, 24).view(np.float32).tolist() == [0, 7, 7, 7, 7, 0]


def test_a_grid_without_workgroups_runs_nothing() -> None:
    program = toy_program()
    nothing = msgspec.structs.replace(program.phases["head"][0], grid=(1, 0, 1))
    executor = _an_executor(msgspec.structs.replace(program, phases={**program.phases, "head": (nothing,)}))

    submission = executor.submit([Pass(("prefill", "head"), 3, 0)], "single_pass")

    assert submission.tokens == (0,)


def test_what_is_read_is_a_copy() -> None:
    executor = _an_executor()
    executor.read("tokens")[:] = 1
    assert executor.read("tokens", 0, 12).view(np.uint32).tolist() == list(PROMPT)


def test_an_array_too_long_for_its_buffer_is_refused() -> None:
    with pytest.raises(InferometerError, match="sampling: 16 bytes at 120, found 128 in all"):
        _an_executor().write("sampling", np.zeros(4, np.uint32), offset=120)


def test_loading_tells_what_each_part_of_the_weights_took() -> None:
    phases = NumpyExecutor(toy_sources, toy_references).load(toy_program(), toy_contents(), lambda text: None)
    assert [(phase.name, phase.bytes) for phase in phases] == [("layers", 4), ("pipelines", 0)]


_SMALL = Adapter("Small", "Vulkan", "CPU", frozenset(), 1 << 20, 1 << 20, 8, 256)


def _changed(**changes):
    return msgspec.structs.replace(_SMALL_PROGRAM, **changes)


_SMALL_PROGRAM = toy_program()
_LAYER = _SMALL_PROGRAM.phases["decode"][0]


@pytest.mark.parametrize(
    ("program", "adapter", "message"),
    [
        (_changed(requires=("subgroups",)), {}, "toy on Small: expected subgroups, found no features"),
        (_SMALL_PROGRAM, {"most_buffer_bytes": 256}, "expected a buffer seen of 388 B, found 256 B at most"),
        (_SMALL_PROGRAM, {"most_binding_bytes": 256}, "layer:L0 on Small: expected 388 B of seen in one binding"),
        (_SMALL_PROGRAM, {"most_storage_buffers": 5}, "toy_layer on Small: expected 6 storage buffers, found 5"),
        (_SMALL_PROGRAM, {"most_workgroup_threads": 4}, "expected workgroups of 8 threads, found 4 at most"),
    ],
)
def test_what_an_adapter_cant_do_is_refused_before_anything_is_made(program, adapter, message) -> None:
    limited = Adapter(**{**{name: getattr(_SMALL, name) for name in Adapter.__dataclass_fields__}, **adapter})
    with pytest.raises(Unavailable, match=message):
        check_fit(program, {}, limited, toy_sources)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            _changed(pipelines=(Pipeline("toy_layer", {}), *_SMALL_PROGRAM.pipelines[1:])),
            "expected .*SHIFT.*, found \\[\\]",
        ),
        (
            _changed(phases={"decode": (msgspec.structs.replace(_LAYER, bindings=_LAYER.bindings[:5]),)}),
            "layer:L0: toy_layer: expected 6 bindings, found 5",
        ),
        (
            _changed(phases={"decode": (msgspec.structs.replace(_LAYER, bindings=(Binding("state", 128, 32),) * 6),)}),
            "bytes 128 to 160 of state, which has 32",
        ),
        (
            _changed(phases={"decode": (msgspec.structs.replace(_LAYER, grid=(65_536, 1, 1)),)}),
            "expected 65535 at most",
        ),
    ],
)
def test_a_program_that_contradicts_itself_is_a_mistake_of_ours(program, message) -> None:
    with pytest.raises(InferometerError, match=message) as caught:
        check_fit(program, {}, _SMALL, toy_sources)
    assert caught.value.exit_code == 70
