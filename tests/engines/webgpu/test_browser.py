"""Programs in a real browser: headless Chromium on whatever device it gives. Skipped where there is no Chromium."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engines.webgpu.browser_programs import all_kernels, sources, toy_contents, toy_program, toy_tokens
from tests.engines.webgpu.scripted_page import runs

from inferometer.backends.wgsl.source import kernel_names, read_kernel
from inferometer.engines.webgpu.browser.chromium import find_chromium
from inferometer.engines.webgpu.browser.opening import open_browser
from inferometer.engines.webgpu.browser.session import BrowserSession
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.run.executor import Content, DeviceLost, Request, Submission, Timing
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import FormatError, InferometerError, InputError, Unavailable

MANY = 17 << 18  # numbers of 4 bytes, 17 MiB: more than one piece of a download
PROMPT = (3, 1, 4, 1, 5)


class Lines(list[str]):
    """What the session said."""

    def __call__(self, line: str) -> None:
        self.append(line)


@contextmanager
def opened(lines: Lines, cache: Path | None = None) -> Iterator[BrowserSession]:
    """A session in Chromium; the test skips where there is none that gives a device."""
    try:
        find_chromium()
    except Unavailable as error:
        pytest.skip(f"needs Chromium: {error.message}")
    try:
        session = open_browser(on_text=lines, cache=cache, sources=sources)
    except Unavailable as error:
        if "gives no device" in error.message:
            pytest.skip(error.message)
        raise
    with session:
        yield session


@pytest.fixture(scope="module")
def lines() -> Lines:
    return Lines()


@pytest.fixture(scope="module")
def browser(lines: Lines) -> Iterator[BrowserSession]:
    """One for all tests of this file that don't end it; each loads its own program."""
    with opened(lines) as session:
        yield session


def tokens(submissions: list[Submission]) -> list[int]:
    return [token for each in submissions for token in each.tokens]


def test_the_browser_tells_its_device_and_limits(browser: BrowserSession) -> None:
    adapter = browser.adapter

    assert adapter.name
    assert (adapter.backend, adapter.kind in ("CPU", "unknown")) == ("browser", True)
    assert adapter.features <= {"shader-f16", "subgroups", "timestamp-query"}
    assert adapter.most_binding_bytes >= 128 << 20  # what WebGPU promises everywhere
    assert adapter.most_storage_buffers >= 8
    assert adapter.most_workgroup_threads >= 256
    assert "Chrome" in adapter.description
    assert browser.clock.error_ns < 1e9
    assert "its clock steps by" in browser.notes[0]


@pytest.mark.parametrize("timing", ["single_pass", "pass_per_dispatch", "timestamps"])
def test_a_program_makes_what_numpy_makes(browser: BrowserSession, lines: Lines, timing: Timing) -> None:
    contents = toy_contents()
    phases = browser.load(toy_program(), contents, lines)
    given: list[Submission] = []

    made = browser.run(Request(PROMPT, new_tokens=10, batch=4, timing=timing), given.append)

    assert tokens(given) == toy_tokens(contents, PROMPT, 10)
    assert list(made) == given
    assert [(len(each.passes), each.passes[0].phases, each.passes[0].position) for each in given] == [
        (1, ("prefill",), 0),
        (1, ("prefill", "head"), 4),
        (4, ("decode", "head"), 5),
        (4, ("decode", "head"), 9),
        (1, ("decode", "head"), 13),
    ]
    assert [phase.name for phase in phases] == ["buffers", "pipelines", "embedding", "layers", "warm-up"]
    assert [phase.bytes for phase in phases] == [0, 0, 24, 200, 0]
    assert any(line.startswith("[browser:log] [") and "ms][Loader] layers: 200 bytes fetched" in line for line in lines)


def test_every_dispatch_has_its_device_time(browser: BrowserSession, lines: Lines) -> None:
    if "timestamp-query" not in browser.adapter.features:
        pytest.skip(f"{browser.adapter.name} has no timestamp-query")
    browser.load(toy_program(), toy_contents(), lines)

    made = browser.run(Request(PROMPT, new_tokens=9, batch=4, timing="timestamps"), lambda _: None)

    batch = made[2]
    assert (len(batch.begin_ns), batch.untimed, batch.clock) == (4 * (3 + 1), 0, "aligned")
    times = [time for pair in zip(batch.begin_ns, batch.end_ns, strict=True) for time in pair if time is not None]
    assert min(times) == batch.start_ns + batch.record_ns + batch.submit_ns
    assert times == sorted(times)
    assert 0 < max(times) - min(times) <= batch.submit_ns + batch.wait_ns
    assert all(then.start_ns >= before.start_ns + before.wall_ns for before, then in pairwise(made))


def test_more_dispatches_than_a_query_set_holds_are_all_timed(browser: BrowserSession, lines: Lines) -> None:
    if "timestamp-query" not in browser.adapter.features:
        pytest.skip(f"{browser.adapter.name} has no timestamp-query")
    contents = toy_contents()
    browser.load(toy_program(), contents, lines)

    made = browser.run(Request((7,), new_tokens=560, batch=559, timing="timestamps"), lambda _: None)

    assert tokens(list(made)) == toy_tokens(contents, (7,), 560)
    assert (len(made[1].begin_ns), made[1].untimed) == (559 * 4, 0)  # a set has room for 2048
    assert None not in made[1].begin_ns


def test_a_stop_token_ends_the_answer_with_its_batch(browser: BrowserSession, lines: Lines) -> None:
    contents = toy_contents()
    wanted = toy_tokens(contents, PROMPT, 12)
    browser.load(toy_program(), contents, lines)

    made = browser.run(Request(PROMPT, new_tokens=12, batch=4, stop=frozenset({wanted[2]})), lambda _: None)

    assert tokens(list(made)) == wanted[:5]


def test_an_answer_that_does_not_fit_is_refused(browser: BrowserSession, lines: Lines) -> None:
    browser.load(toy_program(), toy_contents(), lines)

    with pytest.raises(InputError, match="positions"):
        browser.run(Request(PROMPT, new_tokens=10_000), lambda _: None)


def test_a_kernel_that_does_not_compile_is_named_with_its_line(browser: BrowserSession, lines: Lines) -> None:
    with pytest.raises(Unavailable, match=r"can't load toy: kernel wrong: wrong\.wgsl:5: .*u32.*f32"):
        browser.load(toy_program(kernel="wrong"), toy_contents(), lines)


@pytest.mark.parametrize(
    ("kernel", "place"), [("wrong_include", r"include/step_on\.wgsl:8"), ("wrong_after", r"wrong_after\.wgsl:6")]
)
def test_an_error_in_an_included_file_or_after_it_is_at_its_own_line(
    browser: BrowserSession, lines: Lines, kernel: str, place: str
) -> None:
    with pytest.raises(Unavailable, match=rf"can't load toy: kernel {kernel}: {place}: "):
        browser.load(toy_program(kernel=kernel), toy_contents(), lines)


def test_every_kernel_compiles_in_the_browser(browser: BrowserSession, lines: Lines) -> None:
    program = all_kernels(browser.adapter.features)
    assert {name for name in kernel_names() if not read_kernel(name).requires} <= {p.kernel for p in program.pipelines}

    phases = browser.load(program, {}, lines)

    assert [phase.name for phase in phases] == ["buffers", "pipelines"]


def test_weights_that_cannot_be_read_are_an_error_of_the_file(browser: BrowserSession, lines: Lines) -> None:
    def fail() -> None:
        raise FormatError("model.safetensors: cut off")

    contents = toy_contents() | {"weights": Content("layers", 0, fail)}

    with pytest.raises(FormatError, match=r"model\.safetensors: cut off"):
        browser.load(toy_program(), contents, lines)

    with pytest.raises(InferometerError, match="before it had a program"):
        browser.run(Request(PROMPT, new_tokens=1), lambda _: None)


@pytest.mark.parametrize("model", ["tiny-gemma3-26l", "tiny-llama", "tiny-qwen3", "tiny-qwen-moe"])
def test_a_model_makes_the_tokens_that_numpy_makes(browser: BrowserSession, lines: Lines, model: str) -> None:
    checkpoint = open_checkpoint(model)
    greedy = Request(prompt=tuple(range(3, 16)), new_tokens=9, batch=4, repetition_penalty=5)
    drawn = replace(greedy, repetition_penalty=1.2, temperature=2, top_k=40, top_p=0.9, seed=3)
    found = []
    for runner in (browser, LocalRunner(NumpyExecutor())):
        planned = plan_model(checkpoint, runner.adapter, capacity=32, most_rows=8)
        runner.load(planned.program, planned.contents, lines)
        found.append([tokens(list(runner.run(request, lambda _: None))) for request in (greedy, drawn)])

    assert found[0] == found[1]
    assert len(set(found[0][0])) == 9  # without the penalty, random weights say the same again and again


def test_the_second_load_takes_nothing_from_python_and_other_weights_are_dropped(tmp_path: Path) -> None:
    program, contents = toy_program(MANY), toy_contents(MANY)
    lines = Lines()
    with opened(lines, tmp_path) as first:
        first.load(program, contents, lines)
        loads = [first.loaded]
    with opened(lines, tmp_path) as second:
        second.load(program, contents, lines)
        loads.append(second.loaded)
        made = second.run(Request(PROMPT, new_tokens=5), lambda _: None)
        second.load(toy_program(), toy_contents(), lines)
        loads.append(second.loaded)

    assert [(each.fetched_bytes, each.cached_bytes) for each in loads if each] == [
        (MANY * 4 + 24, 0),
        (0, MANY * 4 + 24),
        (224, 0),
    ]
    assert tokens(list(made)) == toy_tokens(contents, PROMPT, 5)
    assert [line.partition("dropped other")[1] for line in lines if "[Cache]" in line] == ["dropped other"]


def gpu_processes(group: int) -> list[int]:
    """Those of a browser that talk to the device, by Linux's list of processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # processes end while we look
            line = (folder / "cmdline").read_bytes()
            if b"--type=gpu-process" in line and os.getpgid(int(folder.name)) == group:
                found.append(int(folder.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds Chromium's processes in /proc")
@pytest.mark.parametrize(
    ("whole", "wanted"), [(True, r"the browser is gone: .* ended with code -9"), (False, "the device was lost")]
)
def test_what_dies_in_the_middle_is_a_lost_device_and_its_submits_are_kept(whole: bool, wanted: str) -> None:
    lines, kept = Lines(), list[Submission]()
    with opened(lines) as session:
        contents = toy_contents()
        session.load(toy_program(), contents, lines)
        group = session.browser_pid
        assert group is not None

        def end_it(submission: Submission) -> None:
            kept.append(submission)
            if len(kept) == 3:
                ended = [group] if whole else gpu_processes(group)
                assert len(ended) == 1
                os.kill(ended[0], signal.SIGKILL)

        with pytest.raises(DeviceLost, match=wanted):
            session.run(Request(PROMPT, new_tokens=500, batch=1, timing="timestamps"), end_it)
        with pytest.raises(DeviceLost, match=wanted):
            session.run(Request(PROMPT, new_tokens=1), kept.append)

    assert 3 <= len(kept) < 500
    assert tokens(kept) == toy_tokens(contents, PROMPT, len(kept) - 1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_chromium_ends_by_itself_when_python_is_killed(browser: BrowserSession, tmp_path: Path) -> None:
    text = """if True:
        import os, pathlib, signal, sys
        from inferometer.engines.webgpu.browser.opening import open_browser
        session = open_browser(on_text=lambda _: None, cache=pathlib.Path(sys.argv[1]))
        print(session.browser_pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", text, str(tmp_path)]
    pid = int(subprocess.run(command, stdout=subprocess.PIPE, check=False, timeout=60).stdout)

    end = time.monotonic() + 10
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(pid)
