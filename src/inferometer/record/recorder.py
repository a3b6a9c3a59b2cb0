"""A recording of this process: the journal, and what writes to it: counters, intercepted ops, the profiler, steps.

    with inferometer.record("run.ifm", counters=True) as recording:
        for batch in batches:
            with inferometer.step(phase="decode", batch=8):
                model(batch)

What can't be recorded is reported once (`recording.remarks`, and the store's notes); the rest goes on, and nothing is
raised into the program once it runs. Workers that the program starts meanwhile (forked, spawned, other Pythons) record
into their own parts, which are joined at the end: see `workers`. A second recording within one makes a second store:
it has counters of its own, and the same ops (see `sharing`).
"""

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from inferometer.record.clock import Clock
from inferometer.record.parts import OPS, PROFILE, Makers, Options, has_gpu, why_no_ops
from inferometer.record.running import RUNNING
from inferometer.record.sharing import LateSink, Recorder, Shared, keep

if TYPE_CHECKING:
    from inferometer.record.interception.plain_steps import PlainSteps
    from inferometer.record.sharing import Journalled
    from inferometer.record.sink import Sink
    from inferometer.trace.facts import Facts


@dataclass
class Recording:
    """One recording into the store `path`, from `start` to `stop`; also a context manager.

    `remarks` says what couldn't be recorded and why, a line each.
    """

    path: Path
    options: Options = field(default_factory=Options)
    force: bool = False
    clock: Clock | None = None
    parts: Path | None = None
    makers: Makers = field(default_factory=Makers)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sink: LateSink | None = None
        self._own: list[Recorder] = []
        self._joined: list[Shared] = []
        self._pid = os.getpid()
        self._owns_parts = self.parts is None and self.options.workers  # else they are joined by who gave the folder
        self._closing = contextlib.ExitStack()
        self._watch: Any = None  # for the import of torch
        self._steps: PlainSteps | None = None
        self._op_ns: float | None = None
        self._began_ns = 0

    @property
    def is_running(self) -> bool:
        """Between `start` and `stop`."""
        return self in RUNNING

    def start(self) -> Self:
        """Begin. Raises `InputError` when there is something at `path`, or this recording was started before."""
        from inferometer.errors import InputError

        if self._sink is not None:
            raise InputError(
                f"{self.path}: this recording was started before", hint="Call inferometer.record(...) again."
            )
        self.clock = self.clock or (RUNNING[0].clock if RUNNING else None) or Clock.start()
        clock = self.clock
        self._began_ns = clock.now()
        self._sink = LateSink(clock, lambda: self._journal(self.path, force=self.force))
        self._sink.open()
        RUNNING.append(self)
        if self.options.workers:
            self._watch_workers()
        self._start_parts(self._sink)
        return self

    def stop(self) -> None:
        """End: everything is written, and the parts of workers are joined. Twice is no error."""
        if self not in RUNNING or self._sink is None:
            return
        atexit.unregister(self.stop)
        if self._watch is not None and self._watch.leave():
            self.remark("No ops are recorded: the program never imported torch.")
        for part in self._own:
            self._try("The end of a part", part.stop)
        for shared in reversed(self._joined):
            self._try("The end of a part", lambda shared=shared: shared.leave(self._sink))  # type: ignore[misc]
        RUNNING.remove(self)
        from inferometer.record.about import with_torch

        self._sink.change_facts(with_torch)
        self._note_cost(self._sink)
        has_rows = self._sink.close()
        self._closing.close()
        if os.getpid() == self._pid and has_rows and self.parts is not None and self._owns_parts:
            self._join_workers(self.parts)

    def remark(self, line: str) -> None:
        """Say `line` once, here and in the store."""
        if line in self.remarks:
            return
        self.remarks.append(line)
        if self._sink is not None:
            self._sink.change_facts(_noting(line))

    def step(self, phase: str | None = None, **facts: Any) -> AbstractContextManager[Any]:
        """As `inferometer.step`."""
        return mark_step(phase, **facts)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is not None and not isinstance(error, SystemExit):
            self.remark(f"The recording ended with {type(error).__name__}.")
        self.stop()

    def forked(self, folder: Path | None) -> None:
        """In a forked child: what it records goes to a part of its own, made when there is something to write."""
        from inferometer.record.plan import new_part

        self._own.clear()
        keep(self._closing.pop_all())  # the environment stays, also for this child's own children
        if self._sink is None:
            return
        if folder is None:
            RUNNING.remove(self)
            return
        self._sink.renew(lambda: self._journal(new_part(folder), force=False))
        if OPS not in self._joined:
            self._begin_steps()

    def flush(self) -> None:
        """Write what there is, without ending what runs: the process is about to vanish."""
        if self._sink is not None and self in RUNNING:
            parts = [*self._own, *(shared.recorder for shared in self._joined if shared.recorder is not None)]
            for part in parts:
                self._try("The end of a part", getattr(part, "flush", part.stop))
            self._sink.close()

    def _journal(self, path: Path, *, force: bool) -> "Journalled":
        from inferometer.record.about import describe, with_torch

        journal = self.makers.journal(path, self.clock, force=force)
        recorded = {"counters": self.options.counters, "ops": self.options.ops, "stacks": self.options.stacks}
        journal.change_facts(lambda facts: with_torch(describe(facts, recorded)))
        for line in self.remarks:
            journal.change_facts(_noting(line))
        atexit.unregister(self.stop)
        atexit.register(self.stop)  # runs before the journal closes itself
        return journal

    def _start_parts(self, sink: LateSink) -> None:
        options, makers = self.options, self.makers
        if options.counters:
            self._try("Counters", lambda: self._begin(makers.counters(sink, options)))
        wants_torch = options.ops or options.profile
        if wants_torch and "torch" in sys.modules:
            self._start_torch_parts()
        elif wants_torch:
            from inferometer.record.torch_watch import Watch

            self._watch = Watch(self._start_torch_parts)
            self._watch.watch()
        if OPS not in self._joined:
            self._begin_steps()

    def _start_torch_parts(self) -> None:
        """What needs torch, which has been imported by now. Nothing is raised into the import."""
        options, makers = self.options, self.makers
        if (why := why_no_ops(sys.modules["torch"])) is not None:
            self.remark(f"No ops are recorded: {why}.")
            return
        if options.ops:
            self._try("Ops' cost", self._estimate_cost)
            self._try("Ops", lambda: self._join(OPS, lambda fan: makers.ops(fan, options)))
            if (remark := getattr(OPS.recorder, "remark", None)) is not None:
                self.remark(remark)
        if options.profile or (options.profile is None and options.ops and has_gpu(sys.modules["torch"])):
            self._try("Kernels", lambda: self._join(PROFILE, lambda fan: makers.profile(fan, options)))
        if OPS in self._joined and self._steps is not None:
            self._steps.stop()  # the interception writes them from now on

    def _estimate_cost(self) -> None:
        """Unless another recording intercepts already: ops can't be timed without then."""
        from inferometer.record.interception.cost import op_cost_ns

        if OPS.recorder is None and self.makers.times_ops:
            self._op_ns = op_cost_ns(sys.modules["torch"], lambda sink: self.makers.ops(sink, self.options))

    def _note_cost(self, sink: LateSink) -> None:
        from inferometer.record.interception.cost import cost_note

        if self._op_ns is not None and sink.ops:
            line = cost_note(sink.ops, self._op_ns, sink.clock.now() - self._began_ns)
            sink.change_facts(_noting(line))

    def _begin_steps(self) -> None:
        from inferometer.record.interception.plain_steps import PlainSteps

        if self._sink is not None:
            self._steps = PlainSteps(self._sink)
            self._begin(self._steps)

    def _begin(self, part: Recorder) -> None:
        part.start()
        self._own.append(part)

    def _join(self, shared: Shared, make: "Callable[[Sink], Recorder]") -> None:
        if self._sink is not None:
            shared.join(self._sink, make)
            self._joined.append(shared)

    def _try(self, what: str, action: Callable[[], object]) -> None:
        """Do `action`; the recorded program must go on, whatever a part of the recording meets."""
        try:
            action()
        except Exception as error:  # noqa: BLE001
            message = str(error).split("\n")[0][:300]
            self.remark(f"{what} couldn't be recorded: {type(error).__name__}: {message}")

    def _watch_workers(self) -> None:
        from inferometer.record.plan import parts_folder
        from inferometer.record.workers import workers

        self.parts = self.parts or parts_folder(self.path)
        self._try("Workers", lambda: self._closing.enter_context(workers.watched(self)))

    def _join_workers(self, folder: Path) -> None:
        from inferometer.record.workers.parts import join_into

        self._try("The workers' parts", lambda: self.remarks.extend(join_into(self.path, folder)))


def mark_step(phase: str | None = None, **facts: Any) -> AbstractContextManager[Any]:
    """Mark a step of all recordings that run: of a `with` block, or from here to the next call."""
    if (ended := getattr(PROFILE.recorder, "step", None)) is not None:
        ended()  # a window of the profile is best cut between two steps
    if not RUNNING:
        return nullcontext()
    from inferometer.record.interception.steps import step as mark

    return mark(phase, **facts)


def _noting(line: str) -> "Callable[[Facts], Facts]":
    from msgspec.structs import replace

    return lambda facts: facts if line in facts.notes else replace(facts, notes=(*facts.notes, line))
