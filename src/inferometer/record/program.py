"""Run a user's program so that it records itself, sample the counters of its processes meanwhile, join the parts.

The program is started with an environment that makes every Python below it record (`plan`), in the same process group
and with the same stdin, stdout, stderr and working folder. A Ctrl-C at the terminal reaches it as it would have;
signals that a process sent to us are handed on. Its exit code is ours, 128 + n for a signal n, as shells have it.
"""

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from inferometer.errors import InferometerError, InputError, Unavailable
from inferometer.processes import state_of
from inferometer.record.clock import Clock
from inferometer.record.parts import Makers, Options, make_counters, make_journal
from inferometer.record.recorder import Recording
from inferometer.trace.losses import Losses

_SENT_BY_KERNEL = 0x80  # SI_KERNEL: the terminal's Ctrl-C, which the whole process group got
_NO_PYTHON = "Only counters are recorded: the program is not Python, or a Python that ignores PYTHONPATH (-I, -E, -S)."
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD")
_SAME_NS = 50_000_000  # `timeout` and others send a signal to a process and to its group: handed on once
_MOST_LINES = 6  # of what processes say; the store has all
_GRACE_S = 2.0  # workers that outlive the program by so little are waited for


@dataclass(frozen=True)
class Launched:
    """How a recorded program ended, and what of it was recorded. `store`: None when nothing could be kept."""

    code: int
    store: Path | None
    seconds: float
    rows: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    remarks: tuple[str, ...] = ()
    overhead: tuple[str, ...] = ()


def launch(
    words: Sequence[str], store: Path, options: Options, *, seconds: float | None = None, force: bool = False
) -> Launched:
    """Run the command `words` and record it into `store`; for `seconds`, or until it ends.

    Raises:
        InputError: Something is at `store`, or there is no such program. Then nothing was run.
        Unavailable: Not on Linux.
    """
    if not hasattr(signal, "sigtimedwait"):
        raise Unavailable("recording a command needs Linux", hint="Use inferometer.record(...) in the program.")
    with _signals_held() as held:
        program = _find_program(words[0])
        parts = _new_parts(store, force=force)
        _load()
        plan, clock = _plan(parts, options, seconds)
        began = time.perf_counter()
        pid = _spawn(program, words, plan, held, parts)
        recording = _record_counters(pid, parts, options, clock)
        code = _wait(pid, recording, seconds)
        took = time.perf_counter() - began
        recording.stop()
        _wait_for_workers(parts)
    remarks = (*recording.remarks, *_about_hooks(parts, options))
    return _joined(store, parts, Launched(code, None, took, remarks=remarks), force=force)


def join(folder: Path, store: Path, *, force: bool = False) -> Launched:
    """Make `store` of the parts that an interrupted recording left in `folder`."""
    from inferometer.record.workers.parts import join_parts, read_remarks
    from inferometer.trace.store_writer import folder_bytes

    with join_parts(folder, store, force=force) as trace:
        rows = trace.count_rows()
    return Launched(0, store, 0, rows, folder_bytes(store), tuple(read_remarks(folder)))


def _find_program(word: str) -> str:
    found = shutil.which(word)
    if found is not None:
        return found
    if not Path(word).exists():
        raise InputError(f"{word}: no such program", hint="Give a command as you would type it, after --.")
    hint = f"Run it by its interpreter: inferometer record -- python {word}" if word.endswith(".py") else None
    raise InputError(f"{word}: not an executable program", hint=hint)


def _new_parts(store: Path, *, force: bool) -> Path:
    from inferometer.record.plan import parts_folder
    from inferometer.record.workers.parts import drop_parts
    from inferometer.trace.store_writer import StoreFolder

    StoreFolder(store, force=force)  # refuses now what it would refuse at the end
    parts = parts_folder(store)
    if parts.exists() and force:
        drop_parts(parts)
    try:
        parts.mkdir()
    except FileExistsError:
        raise _refusal(parts, force=force) from None
    except OSError as error:
        raise InputError(f"{parts}: can't be made: {error.strerror}", hint="Give another name with -o.") from error
    return parts.absolute()


def _refusal(parts: Path, *, force: bool) -> InputError:
    if force:
        held = next((path.name for path in sorted(parts.iterdir())), "") if parts.is_dir() else ""
        what = f"holds {held!r}, which no recording wrote" if held else "is no folder of a recording"
        return InputError(f"{parts}: {what}; it is not replaced", hint="Move it, or give another name with -o.")
    hint = (
        f"It may hold an interrupted recording: inferometer record --join {parts} -o OTHER.ifm\n"
        "Or give another name, or --force to replace it."
    )
    return InputError(f"{parts}: already exists", hint=hint)


def _load() -> None:
    """Import what writes the counters before the program starts: its first moments count."""
    try:
        import inferometer.record.counters.sampler
        import inferometer.record.journal.journal  # noqa: F401
    except ImportError:
        return  # reported when the counters can't be started


def _plan(parts: Path, options: Options, seconds: float | None) -> tuple[dict[str, str], Clock]:
    from inferometer.record.plan import Plan

    clock = Clock.start()
    until_ns = None if seconds is None else round(seconds * 1e9)
    plan = Plan.of(str(parts), clock, options, until_ns)
    records_itself = options.ops or options.profile
    return (plan.environment(os.environ) if records_itself else {}), clock


def _spawn(program: str, words: Sequence[str], added: dict[str, str], held: set[signal.Signals], parts: Path) -> int:
    """Start it with the signals as they were for us: a blocked one would stay blocked in it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        return os.posix_spawn(
            program,
            list(words),
            {**os.environ, **added},
            setsigmask=held,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them, which programs inherit
        )
    except OSError as error:
        parts.rmdir()
        raise InputError(
            f"{program}: can't be run: {error.strerror}",
            hint="A script needs a first line such as #!/bin/sh, or its interpreter before it.",
        ) from error


def _record_counters(pid: int, parts: Path, options: Options, clock: Clock) -> Recording:
    """Our own part: the counters of the program's processes and of the machine."""
    from inferometer.record.plan import new_part

    def remark(text: str) -> None:
        recording.remark(text)

    counters = partial(make_counters, processes=(pid,))
    journal = partial(make_journal, on_trouble=remark)
    own = replace(options, ops=False, profile=False, workers=False)
    recording = Recording(new_part(parts), own, clock=clock, parts=parts, makers=Makers(journal, counters))
    try:
        recording.start()
    except (InferometerError, OSError) as error:
        recording.remark(f"No counters are recorded: {error}")
    return recording


def _wait(pid: int, recording: Recording, seconds: float | None) -> int:
    """Until the program ends: its exit code. Signals to us go to it, but for those that it got itself."""
    watched = {getattr(signal, name) for name in _NAMES}
    deadline = None if seconds is None else time.monotonic() + seconds
    last: tuple[int, int] = (0, 0)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        patience = 1.0 if deadline is None else min(max(deadline - time.monotonic(), 0), 1.0)
        info = signal.sigtimedwait(watched, patience)
        if deadline is not None and time.monotonic() >= deadline:
            recording.stop()
            deadline = None
        if info is None or info.si_signo == signal.SIGCHLD or info.si_code == _SENT_BY_KERNEL:
            continue
        before, last = last, (info.si_signo, time.monotonic_ns())
        if before[0] != last[0] or last[1] - before[1] > _SAME_NS:
            os.kill(pid, info.si_signo)


@contextmanager
def _signals_held() -> Iterator[set[signal.Signals]]:
    """Signals wait for `_wait` to fetch them, also in threads started here; gives the mask as it was."""
    watched = {getattr(signal, name) for name in _NAMES}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        yield {signal.Signals(number) for number in before}
        while signal.sigtimedwait(watched - before, 0) is not None:
            pass  # meant for the program, which has ended
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for_workers(parts: Path) -> None:
    """Workers may end a moment after the program; of those that live on, what they have written is taken."""
    from inferometer.record.plan import part_places

    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until and any(map(_is_alive, part_places(parts))):
        time.sleep(0.02)


def _is_alive(part: Path) -> bool:
    from inferometer.record.plan import process_of

    pid = process_of(part)
    if pid == os.getpid():
        return False
    return state_of(pid) not in (None, "Z", "X")


def _joined(store: Path, parts: Path, launched: Launched, *, force: bool) -> Launched:
    """With the store of all parts, or what went wrong with it: then the parts stay."""
    from polars.exceptions import PolarsError  # a full disk may be told by Polars, too

    from inferometer.record.workers.parts import drop_parts, find_parts, join_parts, read_remarks
    from inferometer.trace.store_writer import folder_bytes

    remarks = [*launched.remarks, *read_remarks(parts)]
    if outlived := [path.stem for path in find_parts(parts) if _is_alive(path)]:
        remarks.append(f"Still running, recorded up to now: process {', '.join(outlived)}.")
    ended = [f"The program ended with exit code {launched.code}."] if launched.code else []
    try:
        with join_parts(parts, store, force=force, notes=[*remarks, *ended]) as trace:
            rows, overhead = trace.count_rows(), _find_overhead(trace.facts.notes)
            remarks += _about_lost_rows(trace.losses)
    except (InferometerError, OSError, PolarsError) as error:
        remarks += [f"The recording couldn't be kept: {error}", *_about_kept(parts, store)]
        return replace(launched, remarks=tuple(remarks))
    drop_parts(parts)
    return replace(
        launched, store=store, rows=rows, bytes=folder_bytes(store), remarks=tuple(remarks), overhead=overhead
    )


def _about_lost_rows(losses: Losses) -> list[str]:
    """What a process couldn't write while it ran, and why: the first it met."""
    lost = [loss for loss in losses if loss.name == "rows_not_written"]
    if not lost:
        return []
    why = f": {lost[0].example}" if lost[0].example else ""
    return [f"{sum(loss.count for loss in lost):,} rows couldn't be written{why}. The rest is in the store."]


def _about_kept(parts: Path, store: Path) -> list[str]:
    """How to go on with what the processes have written."""
    from inferometer.record.workers.parts import find_parts

    if not find_parts(parts):
        return [f"No process has written anything into {parts}."]
    folder, made = shlex.quote(str(parts)), shlex.quote(str(store))
    return [
        f"What was recorded is in {parts}. Where there is room: inferometer record --join {folder} -o {made}",
    ]


def _find_overhead(notes: Sequence[str]) -> tuple[str, ...]:
    """What the parts of the recording say that they took: each process's, without its part's name."""
    starts = ("Interception: ", "Counters: ", "torch.profiler: recorded ")
    found = [note[note.index(start) :] for note in notes for start in starts if start in note]
    return tuple(found[:_MOST_LINES])


def _about_hooks(parts: Path, options: Options) -> list[str]:
    """Why there are no ops, where the reason is the program itself."""
    from inferometer.record.plan import NOTES
    from inferometer.record.workers.parts import find_parts, read_remarks

    if not (options.ops or options.profile) or read_remarks(parts):
        return []
    if not any(parts.glob(f"*{NOTES}")):
        return [_NO_PYTHON]
    own = f"{os.getpid()}."
    if all(part.name.startswith(own) for part in find_parts(parts)):
        return ["Only counters are recorded: the program never imported torch, nor called inferometer.step()."]
    return []
