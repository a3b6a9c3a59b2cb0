"""Ways to look right or fast without being it: each is caught, and the reason says what was done."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.bench import attacks
from tests.warm_python import WarmPython

import inferometer
from inferometer.bench.candidates import Candidate, choose_candidates
from inferometer.bench.conditions import Watch
from inferometer.bench.correct import Plan
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.fast import Heat, Measured, time_heat
from inferometer.bench.isolation import CandidateProcess
from inferometer.bench.lineup import Lineup, Round
from inferometer.bench.race import Caught, Pace, refuse_odd
from inferometer.bench.results import ShapeResult
from inferometer.bench.run import evaluate
from inferometer.bench.sandbox import require_sandbox
from inferometer.bench.session import ProcessLimits, Session
from inferometer.bench.shapes import ChosenShapes
from inferometer.errors import Unavailable
from inferometer.operators import require_operator

pytest.importorskip("torch", reason="torch isn't installed")

HEAD = "import torch\n"
RMS = "def rms_norm(x, weight, *, eps):\n"
RIGHT = "    return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
LEAST_TOKENS = 4
TINY = ("tiny", {"token_count": 4, "hidden_size": 64, "eps": 1e-6})
PACE = Pace("host", 0.2, ("warm",))


def race(
    folder: Path, body: str, *, base: tuple[str, ...] = (), cases: int = 2, strict: bool = False, sandbox: bool = False
) -> ShapeResult:
    """What comes of a candidate that is timed on one small shape."""
    path = folder / "candidate.py"
    path.write_text(HEAD + body)
    operator = require_operator("rms_norm")
    asked = ChosenShapes(operator, (TINY,))
    plan = Plan(cases, "cpu", ProcessLimits(seconds=20, threads=1), strict=strict, sandbox=sandbox)
    found = evaluate([asked], choose_candidates(base, path, "cpu"), plan, pace=PACE)
    return next(each for each in found.run.results if each.candidate == "candidate.py")


def time_alone(folder: Path, body: str) -> Measured:
    """What timing alone makes of a candidate: in half the processes, and it hides what it does from one less look."""
    path = folder / "candidate.py"
    path.write_text(HEAD + body)
    heat = Heat(require_operator("rms_norm"), choose_candidates((), path, "cpu").chosen, (TINY,))
    plan = Plan(1, "cpu", ProcessLimits(seconds=20, threads=1))
    with Watch("cpu") as watch:
        ((_, (found,)),) = time_heat(heat, plan, PACE, watch, None, lambda _: None)
    return found


def check(folder: Path, body: str, *, strict: bool = False, seconds: float = 60) -> ShapeResult:
    """What comes of a candidate that isn't timed."""
    path = folder / "candidate.py"
    path.write_text(body)
    operator = require_operator("rms_norm")
    asked = ChosenShapes(operator, (TINY,))
    plan = Plan(1, "cpu", ProcessLimits(seconds=seconds, threads=1), strict=strict)
    return evaluate([asked], choose_candidates((), path, "cpu"), plan).run.results[0]


@pytest.fixture
def warm_start(warm_python: WarmPython, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates whose process is none of their ways are forked of one that has loaded torch."""
    monkeypatch.setattr("inferometer.bench.isolation.Supervised", warm_python.start)


@pytest.mark.usefixtures("warm_start")
def test_an_honest_candidate_is_right_and_timed(tmp_path: Path) -> None:
    found = race(tmp_path, RMS + RIGHT, base=("torch",))
    assert found.failure is None
    timing = found.timing("warm")
    assert timing is not None
    assert timing.timer == "host"
    assert timing.checked >= 2
    assert timing.low_ns <= timing.median_ns <= timing.high_ns
    assert [each.base for each in found.versus] == ["torch"]
    assert found.attribution is not None
    assert "aten::rms_norm" in found.attribution.by_name


LATER = (
    RMS
    + "    out = torch.empty_like(x)\n"
    + "    def fill():\n"
    + "        time.sleep(0.05)\n"
    + "        out.copy_(torch.rms_norm(x, x.shape[-1:], weight, eps))\n"
    + "    threading.Thread(target=fill).start()\n"
    + "    return out\n"
)
CALLS = "calls = [0]\n" + RMS + "    calls[0] += 1\n"
LATE_IN_TURN = "    if calls[0] > 8: return torch.zeros_like(x)\n"  # right in as many calls as are checked beforehand
KERNEL = (
    "import triton, triton.language as tl\n"
    "@triton.jit\n"
    "def rms_norm_rows(x, out, BLOCK: tl.constexpr):\n"
    "    at = tl.arange(0, BLOCK)\n"
    "    tl.store(out + at, tl.load(x + at))\n"
)
LAZY = (
    "class Lazy(torch.Tensor):\n"
    "    @classmethod\n"
    "    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
    "        return super().__torch_function__(function, types, args, kwargs or {})\n"
)
REFUSED_BY_NAME = {
    "work in our copy, by a dispatch mode left on": "it left a dispatch mode (Later) on",
    "work in our copy, by a function mode left on": "it left a function mode (Later) on",
    "work after the clock, by sys.setprofile": "it left a profile hook (sys.setprofile) on",
    "work between calls, by a timer's signal": "a handler of SIGVTALRM",
    "the worker's json, through a frame": "it replaced __main__.json",
}
REPLACED = {
    "what measures": (
        "import time, statistics\ntime.perf_counter_ns = lambda: 0\nstatistics.median = min\n"
        "torch.cuda.Event.elapsed_time = lambda *_: 0.0\n" + RMS + RIGHT,
        ("time.perf_counter_ns", "statistics.median", "torch.cuda.Event.elapsed_time"),
    ),
    "the clock by another one, and the base": (
        "import time\ntime.perf_counter_ns = time.process_time_ns\nfast = torch.rms_norm\n"
        "def slow(*args):\n    time.sleep(0.1)\n    return fast(*args)\n"
        "torch.rms_norm = slow\n" + RMS + "    return fast(x, x.shape[-1:], weight, eps)\n",
        ("time.perf_counter_ns", "torch.rms_norm"),
    ),
}
ANSWERS = {
    "reading the reference, by import": (
        "from inferometer.operators.catalogue.rms_norm import reference as rms_norm\n",
        "a candidate can't import inferometer",
    ),
    "reading the reference, by file": (
        "import importlib.util\n"
        "root = importlib.util.find_spec('inferometer').submodule_search_locations[0]\n"
        + RMS
        + "    return open(root + '/operators/rms_norm.py').read()\n",
        "a candidate can't",
    ),
    "reading the memory of who knows": (
        "import os\n" + RMS + "    return open(f'/proc/{os.getppid()}/mem', 'rb').read(1)\n",
        "a candidate can't read the memory of processes",
    ),
    "asking elsewhere": (
        "import socket\n" + RMS + "    return socket.create_connection(('127.0.0.1', 9))\n",
        "a candidate can't use the network",
    ),
    "a view of the input": (RMS + "    return x[:]\n", "lies in the memory of the input x"),
    "one buffer for all answers": (
        "buffer = []\n" + RMS + "    found = torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
        "    buffer.append(torch.empty_like(x)) if not buffer else None\n"
        "    return buffer[0].copy_(found)\n",
        "lies in the memory of the answer before it",
    ),
    "a lazy tensor": (LAZY + RMS + RIGHT.rstrip() + ".as_subclass(Lazy)\n", "expected plain tensors, found Lazy"),
    "cached by shape": (
        "cache = {}\n" + RMS + "    found = cache.setdefault(x.shape, torch.rms_norm(x, x.shape[-1:], weight, eps))\n"
        "    return found.clone()\n",
        "out: the error is",
    ),
    "replaying the first inputs": (
        "first = []\n" + RMS + "    first.append((x, weight)) if not first else None\n"
        "    x, weight = first[0]\n" + RIGHT,
        "out: the error is",
    ),
    "another thread": ("import threading, time\n" + LATER, "out: NaN in row"),  # what it writes comes too late
    "another dtype": (
        RMS + "    return torch.rms_norm(x, x.shape[-1:], weight, eps).float()\n",
        "expected dtype bfloat16",
    ),
    "another value for NaN": (RMS + "    return torch.empty_like(x)\n", "NaN in row"),
}
"""What each answers or does in a call, and why it is wrong: seen before anything is timed."""

CHEATS = {
    "patched timer while it runs": (
        "import time\n" + CALLS + "    if calls[0] > 8: time.perf_counter_ns = lambda: 0\n" + RIGHT,
        "it replaced time.perf_counter_ns",
    ),
    "cached by address, when it thinks that it's timed": (
        "cache = {}\n" + CALLS + "    if calls[0] < 9:\n    " + RIGHT + "    key = x.data_ptr()\n"
        "    if len(cache) < 2: cache[key] = torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
        "    return cache.get(key, next(iter(cache.values()))).clone()\n",
        "a timed call was wrong: out: the error is",
    ),
    "nothing at all, when it thinks that it's timed": (CALLS + LATE_IN_TURN + RIGHT, "a timed call was wrong"),
    "another thread, when it thinks that it's timed": (
        "import threading, time\ncalls = [0]\n"
        + LATER.replace("    out =", "    calls[0] += 1\n    if calls[0] < 9:\n    " + RIGHT + "    out =", 1),
        "threads went on after its calls",
    ),
    "forged replies": (
        "import os\n" + CALLS + "    if calls[0] > 8:\n"
        "        for n in range(3, 64):\n"
        "            try: is_pipe = os.readlink(f'/proc/self/fd/{n}').startswith('pipe')\n"
        "            except OSError: continue\n"
        '            if is_pipe: os.write(n, b\'{"calls": [], "threads": 0, "broken": [], "own_ns": null}\\n\')\n'
        + RIGHT,
        "",
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_caught(name: str, tmp_path: Path) -> None:
    body, words = CHEATS[name]
    found = time_alone(tmp_path, body)
    assert found.failure is not None
    assert words in found.failure
    assert not found.timings


@pytest.mark.usefixtures("warm_start")
@pytest.mark.parametrize("name", REPLACED)
def test_what_was_replaced_is_named(name: str, tmp_path: Path) -> None:
    body, names = REPLACED[name]
    failure = race(tmp_path, body, base=("torch",)).failure or ""
    assert failure.startswith("it replaced ")
    assert all(each in failure for each in names)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Why each of `ANSWERS` is wrong: one file whose kernel for as many tokens is one of them, in one process."""
    path = tmp_path_factory.mktemp("answers") / "candidate.py"
    texts = {LEAST_TOKENS + place: HEAD + body for place, (body, _) in enumerate(ANSWERS.values())}
    path.write_text(
        f"texts, known = {texts!r}, {{}}\n" + RMS + "    tokens = len(x)\n"
        "    if tokens not in known:\n        known[tokens] = {}\n        exec(texts[tokens], known[tokens])\n"
        "    return known[tokens]['rms_norm'](x, weight, eps=eps)\n"
    )
    shapes = tuple((str(tokens), {"token_count": tokens, "hidden_size": 64, "eps": 1e-6}) for tokens in texts)
    asked = ChosenShapes(require_operator("rms_norm"), shapes)
    plan = Plan(2, "cpu", ProcessLimits(seconds=60, threads=1))
    found = evaluate([asked], choose_candidates((), path, "cpu"), plan).run.results
    return {name: result.failure for name, result in zip(ANSWERS, found, strict=True)}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_cheating_answer_is_wrong(name: str, answered: dict[str, str | None]) -> None:
    assert ANSWERS[name][1] in (answered[name] or "nothing")


@pytest.mark.usefixtures("warm_start")
def test_a_kernel_that_never_runs_doesn_t_hide_the_library(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    found = race(tmp_path, KERNEL + RMS + RIGHT)
    assert found.failure is not None
    assert found.failure.startswith("it defines rms_norm_rows, but none of these ran: the time went to ")


@pytest.mark.usefixtures("warm_start")
def test_a_kernel_that_runs_is_told_as_its_own(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    source = Path(__file__).parent / "candidates" / "triton_rms_norm.py"
    found = race(tmp_path, source.read_text())
    assert found.is_right
    assert found.attribution is not None
    assert found.attribution.own is not None
    assert found.attribution.own > 0.5


@pytest.mark.usefixtures("warm_start")
def test_patching_the_clock_only_within_a_call_changes_nothing(tmp_path: Path) -> None:
    body = (
        "import time\nclock = time.perf_counter_ns\n"
        + RMS
        + "    time.perf_counter_ns = lambda: 0\n    time.sleep(0.02)\n    time.perf_counter_ns = clock\n"
        + RIGHT
    )
    timing = race(tmp_path, body).timing("warm")
    assert timing is not None
    assert timing.median_ns > 20e6


@pytest.mark.usefixtures("warm_start")
def test_the_one_whose_call_fails_is_named_though_it_is_the_base(tmp_path: Path) -> None:
    file = tmp_path / "fails.py"
    file.write_text(RMS + "    raise ValueError(eps)\n", "utf-8")
    candidates = (Candidate("fails", file), Candidate("reference"))
    sessions = [Session(require_operator("rms_norm"), each, timed=True) for each in candidates]
    asked = {"args": {"token_count": 4, "hidden_size": 64, "eps": 1e-6}, "shape": "x", "seeds": [1], "mode": "warm"}
    with Lineup(sessions) as lineup, pytest.raises(CandidateFailed) as failed:
        lineup.time({**asked, "orders": [[0, 1]], "timer": "host"}, expected_s=1)
    assert failed.value.lane == 0


def test_no_clock_no_seed_and_no_answer_is_in_a_candidate_s_process(tmp_path: Path) -> None:
    mark = tmp_path / "looked"
    found = race(tmp_path, f"MARK = {str(mark)!r}\n" + attacks.BODY + attacks.SEARCHES, base=("torch",), cases=1)
    assert found.failure is None
    assert mark.exists()


@pytest.mark.parametrize("name", attacks.HIDES)
def test_work_can_t_be_hidden(name: str, tmp_path: Path) -> None:
    """Refused, or timed with all of its work."""
    found = time_alone(tmp_path, attacks.BODY + attacks.HIDES[name])
    if words := REFUSED_BY_NAME.get(name):
        assert words in (found.failure or "")
    assert found.failure is not None or found.timings[0].p10_ns >= attacks.WORK_NS / 2


@pytest.mark.parametrize("name", attacks.WRONG)
def test_tolerances_can_t_be_replaced(name: str, tmp_path: Path) -> None:
    """On a copy of the package, which is the one that the attack finds."""
    copied = tmp_path / "packages" / "inferometer"
    shutil.copytree(Path(inferometer.__file__).parent, copied)
    path = tmp_path / "candidate.py"
    path.write_text(attacks.HEAD + attacks.WRONG[name])
    ran = subprocess.run(
        [sys.executable, "-m", "inferometer", "bench", "rms_norm", "--candidate", str(path), "--json"],
        env={**os.environ, "PYTHONPATH": str(copied.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(ran.stdout)
    assert not found["right"]
    words, times = "files of the evaluator changed while it ran: bench/calibration.json", 1
    if "refused" in name:
        words, times = "calibration.json of the evaluator", len(attacks.REFUSED)
    assert all(each["failure"].count(words) == times for each in found["results"])


def test_what_no_kernel_needs_is_reported(tmp_path: Path) -> None:
    found = check(tmp_path, attacks.HEAD + attacks.REPORTED)
    assert found.is_right
    assert set(found.concerns) == attacks.CONCERNS


def test_with_strict_it_is_refused(tmp_path: Path) -> None:
    body = "import subprocess\nsubprocess.run(['true'])\n" + attacks.RMS + attacks.RIGHT
    found = check(tmp_path, attacks.HEAD + body, strict=True)
    assert found.failure == "with --strict: it starts processes (subprocess.Popen)"


def test_what_libraries_do_by_themselves_is_no_concern(tmp_path: Path) -> None:
    """An import that Python compiles and keeps, a default device, and what torch compiles."""
    body = 'import tabnanny\ntorch.set_default_device("cpu")\n@torch.compile\n' + RMS + RIGHT
    found = check(tmp_path, HEAD + body, strict=True, seconds=300)
    assert (found.failure, found.concerns) == (None, ())


@pytest.mark.usefixtures("warm_start")
def test_a_decoy_is_told_with_the_share_of_each_kernel(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    call = (
        "    out = torch.empty_like(x)\n    if len(x): rms_norm_rows[(1,)](x, out, BLOCK=64)\n"
        "    for _ in range(400): out = torch.rms_norm(x, x.shape[-1:], weight, eps)\n    return out\n"
    )
    found = race(tmp_path, KERNEL + RMS + call, cases=1)
    assert found.is_right
    assert found.own_share is not None
    assert 0 < found.own_share < 0.9
    told = next(each for each in found.concerns if each.startswith("its own kernels take "))
    assert f"{found.own_share:.0%} of its time" in told
    assert "aten::rms_norm" in told


def test_a_sandbox_lets_an_honest_candidate_be_timed_and_no_other_write(tmp_path: Path) -> None:
    try:
        require_sandbox()
    except Unavailable as error:
        pytest.skip(error.message)
    mark = Path(inferometer.__file__).parent.parent / f"mark-{uuid.uuid4().hex}"
    found = race(tmp_path, RMS + RIGHT, sandbox=True, cases=1)
    assert found.failure is None
    assert found.timing("warm") is not None
    path = tmp_path / "candidate.py"
    path.write_text("import subprocess\nsubprocess.Popen(['sleep', '60'])\n" + HEAD + RMS + RIGHT)
    with CandidateProcess(Session(require_operator("rms_norm"), Candidate("mine", path), sandbox=True)) as process:
        assert b"bench.process.worker" in Path(f"/proc/{process.pid}/cmdline").read_bytes()  # watched, not its child
    refused = race(tmp_path, f"open({str(mark)!r}, 'w')\n" + RMS + RIGHT, sandbox=True)
    assert "Read-only file system" in (refused.failure or "")
    assert not mark.exists()


def test_without_bubblewrap_a_sandbox_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="--sandbox needs bubblewrap, and bwrap isn't on the PATH"):
        require_sandbox()


def rows(*calls: tuple[float, float, float, float, float], **odd: object) -> Round:
    return Round(calls, sent_ns=1_000, received_ns=9_000, **odd)  # type: ignore[arg-type]


LATE = ((0.0, 3_000.0, 3_000.0, 900.0, 70_000.0),)
ON_TIME = (0.0, 2_000.0, 3_000.0, 900.0, 0.0)


def test_an_honest_round_is_accepted() -> None:
    refuse_odd(rows(ON_TIME, (1.0, 4_000.0, 5_000.0, 1_000.0, 0.0)), [[0, 1]], own_times=True)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (rows(*LATE, *LATE, *LATE), "work on another stream went on for 70 µs"),
        (rows(ON_TIME, busy=[(0, "2 threads went on")]), "2 threads went on"),
        (rows(ON_TIME, odd=[(0, "it replaced torch.cuda.Event.record")]), "it replaced torch.cuda.Event.record"),
    ],
)
def test_what_isn_t_timed_is_caught(odd: Round, words: str) -> None:
    with pytest.raises(Caught, match=words):
        refuse_odd(odd, [[0]] * len(odd.rows), own_times=False)


def test_one_late_call_may_be_chance() -> None:
    refuse_odd(rows(ON_TIME, *LATE, (0, 4_000, 4_500, 400, 10.0)), [[0]] * 3, own_times=False)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (rows(), "aren't those that were asked for"),
        (rows((1, 2_000, 3_000, 900, 0)), "aren't those that were asked for"),
        (rows((0, 500, 3_000, 900, 0)), "aren't within"),
        (rows((0, 2_000, 9_500, 900, 0)), "aren't within"),
        (rows((0, 3_000, 2_000, 0, 0)), "aren't within"),
        (rows((0, 2_000, 3_000, float("nan"), 0)), "aren't within"),
        (rows((0, 2_000, 3_000, -1, 0)), "aren't within"),
        (rows((0, 2_000, 3_000, 1_001, 0)), "took longer than from its begin to its end"),
    ],
)
def test_times_that_can_t_be_are_refused(odd: Round, words: str) -> None:
    with pytest.raises(CandidateFailed, match=words):
        refuse_odd(odd, [[0]], own_times=True)


def test_other_streams_are_caught_on_a_gpu(tmp_path: Path) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    body = (
        "side = torch.cuda.Stream()\n" + RMS + "    with torch.cuda.stream(side):\n"
        "        for _ in range(200): found = torch.rms_norm(x, x.shape[-1:], weight, eps)\n    return found\n"
    )
    path = tmp_path / "candidate.py"
    path.write_text(HEAD + body)
    asked = ChosenShapes(
        require_operator("rms_norm"), (("tiny", {"token_count": 4096, "hidden_size": 8192, "eps": 1e-6}),)
    )
    plan = Plan(1, "cuda:0", ProcessLimits(seconds=60))
    found = evaluate([asked], choose_candidates((), path, "cuda:0"), plan, pace=Pace("events", 0.5, ("warm",)))
    assert "work on another stream" in (found.run.results[0].failure or "")
