"""Records pairs of runs on this machine's CPU, the second of which has a known fault, and trims them to samples.

    record_faults.py record cpu_contention --out FOLDER               FOLDER/cpu_contention-0/{normal,fault}.ifm
    record_faults.py record cpu_quota --repeat 3 --seconds 12 --out FOLDER
    record_faults.py trim FOLDER/cpu_contention-0 samples/recorded/cpu_contention --seconds 6

The program is an MLP that decodes one token per step, as `inferometer record` sees it; with a log it also appends to a
file and waits for the disk, as a durable log does. Nothing is made up: a fault is a thing that is really done to the
program or next to it, or a change of the program itself. Needs Linux and torch; a quota needs a control group that may
be made.

| fault | what is done | what `compare` should say |
| --- | --- | --- |
| `cpu_contention` | two Python loops for each core | cause named, cpu_contention |
| `cpu_quota` | a quota of 40 % of a core on the program's control group (version 1 or 2) | cause named, cpu_quota |
| `cpu_stop` | SIGSTOP for 10 ms of every 20 ms, as cpulimit does | cause named, cpu_quota |
| `disk` | another program writes large files with fsync; the program syncs a line per step | cause named, disk |
| `disk_unfelt` | the same writer; the program doesn't use the disk | not disk |
| `nice_load` | as `cpu_contention`, at the lowest priority | no difference, or what little it does |
| `twice` | the program does each step's work twice | software change |
| `more_layers` | six layers in place of four | software change |
| `wider` | 12,288 in place of 8,192 features between the products of a layer | software change |
| `bfloat16` | weights in bfloat16 in place of float32 | software change |
| `sleep` | the sampler sleeps for 8 ms | cause not measured, the host named |
| `garbage` | a collection of 300,000 objects in each step | cause not measured, the host named |
| `none` | nothing | no difference |

Of `disk_unfelt` one would think that it changes nothing. On a machine of two cores it made steps 8 to 14 % longer,
though the program waited for no processor: perhaps copying takes memory bandwidth, which no counter here measures.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from inferometer.trace.facts import Facts
    from inferometer.trace.trace import Trace

PERIOD_US, QUOTA_US = 100_000, 40_000
STOPPED_S = 0.010
LOOPS_A_CORE = 2
WRITTEN_MIB = 64
WARM_UP_S = 1.0
SETTLED_NS = 500_000_000
_GROUPS = Path("/sys/fs/cgroup")
_SOMEWHERE = "machine"
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/]+/)*([^\s/]+)")
_SPIN = "while True: pass"
_WRITE = """
import os, sys
block = os.urandom(1 << 20)
while True:
    with open(sys.argv[1], "wb", buffering=0) as file:
        for _ in range(int(sys.argv[2])):
            file.write(block)
        os.fsync(file.fileno())
"""


@dataclass(frozen=True)
class Fault:
    """`done`: in words. `verdict`, `cause`: what `compare` should say; `cause` is a class of its `metric_roles`.

    `change`: of the program itself, as fields of `Program`.
    """

    done: str
    verdict: str = "cause named"
    cause: str | None = None
    change: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """The recorded program: layers of two products, `features` between them, run `times` a step; what its sampler does.

    `garbage`: how many objects it holds, and collects in each step; none are collected by hand where there are none.
    """

    layers: int = 4
    features: int = 8192
    dtype: str = "float32"
    times: int = 1
    sleep_s: float = 0.0
    garbage: int = 0


FAULTS = {
    "cpu_contention": Fault(
        f"{LOOPS_A_CORE} Python loops for each core ran in parallel with the program", cause="cpu_contention"
    ),
    "cpu_quota": Fault(
        f"the control group of the program and its recorder had a quota of {QUOTA_US // 1000} ms of processor time in "
        f"every {PERIOD_US // 1000} ms",
        cause="cpu_quota",
    ),
    "cpu_stop": Fault(
        f"the program was stopped by SIGSTOP for {STOPPED_S * 1e3:.0f} ms and then ran as long, again and again",
        cause="cpu_quota",
    ),
    "disk": Fault(
        f"another program wrote files of {WRITTEN_MIB} MiB to the same disk, one after the other, each with fsync; the "
        "program appends a line to a log in each step and waits for the disk",
        cause="disk",
    ),
    "disk_unfelt": Fault("the same writer as of `disk`; the program doesn't use the disk", "cause not measured"),
    "nice_load": Fault(
        f"{LOOPS_A_CORE} Python loops for each core ran in parallel with the program, at the lowest priority",
        "no difference",
    ),
    "twice": Fault("the program did the work of each step twice", "software change", change={"times": 2}),
    "more_layers": Fault("the model had six layers in place of four", "software change", change={"layers": 6}),
    "wider": Fault(
        "a layer had 12,288 features in place of 8,192 between its products",
        "software change",
        change={"features": 12288},
    ),
    "bfloat16": Fault("the weights were bfloat16", "software change", change={"dtype": "bfloat16"}),
    "sleep": Fault("the sampler slept for 8 ms in each step", "cause not measured", change={"sleep_s": 0.008}),
    "garbage": Fault(
        "the program held 300,000 objects and collected garbage in each step",
        "cause not measured",
        change={"garbage": 300_000},
    ),
    "none": Fault("nothing: both runs are normal", "no difference"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and does what it says. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    record = kinds.add_parser("record", help="record pairs")
    record.add_argument("fault", choices=FAULTS)
    record.add_argument("--out", type=Path, required=True, help="a folder on the disk in question")
    record.add_argument("--seconds", type=float, default=10.0, help="of steps, in each run")
    record.add_argument("--repeat", type=int, default=1)
    record.add_argument("--threads", type=int, default=1, help="of the program")
    trim = kinds.add_parser("trim", help="make a pair small, and drop names of the machine")
    trim.add_argument("pair", type=Path)
    trim.add_argument("out", type=Path)
    trim.add_argument("--seconds", type=float, default=6.0, help="of steps, in each run")
    work = kinds.add_parser("work", help="the recorded program; `record` starts it")
    work.add_argument("--seconds", type=float, required=True)
    work.add_argument("--threads", type=int, default=1)
    work.add_argument("--log", type=Path)
    work.add_argument("--id", type=Path, help="where it writes its process's number")
    work.add_argument("--change", type=json.loads, default={}, help="fields of Program, as JSON")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    if given.kind == "work":
        decode(Program(**given.change), given.seconds, given.threads, given.log, given.id)
    elif given.kind == "trim":
        trim_pair(given.pair, given.out, given.seconds)
    else:
        for _ in range(given.repeat):
            print(record_pair(given.fault, given.out, given.seconds, given.threads), flush=True)
    return 0


def _end(*_: object) -> None:
    """What runs next to is ended on the way out, and the control group removed."""
    raise SystemExit(128 + signal.SIGTERM)


def decode(program: Program, seconds: float, threads: int, log: Path | None, told: Path | None) -> None:
    """The program: each step reads a model of 268 MB for one token, as in decoding; 14 ms or more."""
    import torch

    import inferometer

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    sizes = ((1024, program.features), (program.features, 1024)) * program.layers
    layers = [each for size in sizes for each in (torch.nn.Linear(*size), torch.nn.ReLU())]
    dtype = getattr(torch, program.dtype)
    model, x = torch.nn.Sequential(*layers).eval().to(dtype), torch.randn(1, 1024, dtype=dtype)
    held = [[number] for number in range(program.garbage)]
    if told:
        told.write_text(str(os.getpid()))
    with torch.inference_mode(), log.open("ab", buffering=0) if log else contextlib.nullcontext() as file:
        end = time.perf_counter() + WARM_UP_S
        while time.perf_counter() < end:
            model(x)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            with inferometer.step(phase="decode", batch=1):
                for _ in range(program.times):
                    token = int(model(x).argmax())
                if held:
                    gc.collect()
                time.sleep(program.sleep_s)
                if file:
                    file.write(f"{token}\n".encode())
                    os.fsync(file.fileno())


def record_pair(name: str, folder: Path, seconds: float, threads: int) -> Path:
    """Record a normal run and one with the fault. Returns their folder, where the truth is written, too."""
    pair = next(each for i in range(10_000) if not (each := folder / f"{name}-{i}").exists())
    pair.mkdir(parents=True)
    for run in ("normal", "fault"):
        with tempfile.TemporaryDirectory(dir=pair) as place:
            _record(pair / f"{run}.ifm", name, Path(place), seconds, threads, is_faulty=run == "fault")
    (pair / "truth.json").write_text(json.dumps({"fault": name, **asdict(FAULTS[name])}, indent=1) + "\n")
    return pair


def _record(store: Path, name: str, place: Path, seconds: float, threads: int, *, is_faulty: bool) -> None:
    told, log = place / "id", place / "log"
    words = [sys.executable, "-m", "inferometer", "record", "-o", str(store), "--", sys.executable, __file__, "work"]
    words += ["--seconds", str(seconds), "--threads", str(threads), "--id", str(told)]
    words += ["--log", str(log)] if name == "disk" else []
    words += ["--change", json.dumps(FAULTS[name].change)] if is_faulty else []
    with contextlib.ExitStack() as stack:
        if name == "cpu_quota":
            group = stack.enter_context(_control_group(QUOTA_US if is_faulty else None))
            words = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group / "cgroup.procs"), *words]
        if name in ("cpu_contention", "nice_load") and is_faulty:
            nice = ["nice", "-n", "19"] if name == "nice_load" else []
            for _ in range(LOOPS_A_CORE * (os.cpu_count() or 1)):
                stack.enter_context(_process([*nice, sys.executable, "-c", _SPIN]))
        if name.startswith("disk") and is_faulty:
            stack.enter_context(_process([sys.executable, "-c", _WRITE, str(place / "written"), str(WRITTEN_MIB)]))
        if name == "cpu_stop" and is_faulty:
            stack.enter_context(_stopping(told))
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{store}: the recording ended with {done.returncode}\n{done.stderr}")


@contextlib.contextmanager
def _process(words: Sequence[str]) -> Iterator[None]:
    """A program next to the block."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _control_group(quota_us: int | None) -> Iterator[Path]:
    """A new control group with that quota in each period; without one where it is None."""
    is_first = (_GROUPS / "cpu" / "cpu.cfs_quota_us").exists()
    group = (_GROUPS / "cpu" if is_first else _GROUPS) / f"record_faults_{os.getpid()}"
    try:
        group.mkdir()
        if is_first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us or -1))
        else:
            (group / "cpu.max").write_text(f"{quota_us or 'max'} {PERIOD_US}")
    except OSError as error:
        raise SystemExit(f"{group}: no control group with a quota can be made here ({error}); try cpu_stop") from error
    try:
        yield group
    finally:
        group.rmdir()


@contextlib.contextmanager
def _stopping(told: Path) -> Iterator[None]:
    """Stops and continues the program whose number comes to stand in `told`."""
    ended = threading.Event()

    def stop_often() -> None:
        while not (told.exists() and told.read_text()):
            if ended.wait(STOPPED_S):
                return
        process, is_stopped = int(told.read_text()), False
        with contextlib.suppress(ProcessLookupError):
            while not ended.wait(STOPPED_S) or is_stopped:
                is_stopped = not is_stopped
                os.kill(process, signal.SIGSTOP if is_stopped else signal.SIGCONT)

    thread = threading.Thread(target=stop_often)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def trim_pair(pair: Path, out: Path, seconds: float) -> None:
    """Write some seconds of both runs, without names of this machine, and the truth."""
    from inferometer.trace.store import read_store

    out.mkdir(parents=True, exist_ok=True)
    for run in ("normal", "fault"):
        with read_store(pair / f"{run}.ifm") as trace:
            shorten(trace, seconds).save(out / f"{run}.ifm", force=True)
    (out / "truth.json").write_text((pair / "truth.json").read_text())


def shorten(trace: Trace, seconds: float) -> Trace:
    """From half a second after the first step on: rows that lie within, of all tables that have any."""
    from inferometer.trace.tables import TABLES
    from inferometer.trace.trace import Trace

    steps = trace.steps.select("start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")).collect()
    first_ns = int(steps["start_ns"].sort()[0]) + SETTLED_NS
    whole = steps.filter(pl.col("start_ns") >= first_ns, pl.col("end_ns") <= first_ns + seconds * 1e9)
    start_ns, end_ns = whole["start_ns"].sort()[0], whole["end_ns"].sort()[-1]
    frames = {}
    for name, frame in trace.tables.items():
        time, columns = TABLES[name].time, frame.collect_schema()
        if time is None:
            continue
        end = pl.col(time) + pl.col("dur_ns") if "dur_ns" in columns else pl.col(time)
        within = frame.filter(pl.col(time) >= start_ns, end <= end_ns)
        unknown = {"host": _SOMEWHERE} if "host" in columns else {}
        if "frame" in columns:
            within = within.with_columns(pl.col("frame").str.replace(r"^.*/", ""))
        frames[name] = within.with_columns(pl.lit(value).alias(column) for column, value in unknown.items())
    return Trace(_without_names(trace.facts, seconds), frames, trace.losses, scope=trace.scope)


def _without_names(facts: Facts, seconds: float) -> Facts:
    from msgspec.structs import replace

    notes = [_PATH.sub(r"\1", note) for note in facts.notes]
    notes.append(f"Trimmed to {seconds:g} s of steps; the machine's name and folders were taken out.")
    return replace(facts, hosts=(_SOMEWHERE,), notes=tuple(notes))


if __name__ == "__main__":
    sys.exit(main())
