"""One recording of one server: its profiler is started and stopped, its traces are collected and joined."""

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inferometer.errors import InputError
from inferometer.record.server.engines import Server, profile_body
from inferometer.record.server.files import Found, NewFiles
from inferometer.record.server.http import Http
from inferometer.record.server.metrics import EngineMetrics
from inferometer.record.server.place import TraceFolder
from inferometer.record.server.profile import Profiler, Waits
from inferometer.record.server.recording import OnProgress, ServerOptions, ServerRecording
from inferometer.record.server.sampling import sampling

if TYPE_CHECKING:
    from inferometer.record.sink import Sink
    from inferometer.trace.facts import Facts

_REPORT_S = 10.0


class Session:
    """One recording of one server: start, wait, stop, collect, join. What fails after the start is in `missing`."""

    def __init__(
        self, http: Http, server: Server, place: TraceFolder, waits: Waits, options: ServerOptions, report: OnProgress
    ) -> None:
        self._http, self._server, self._place, self._waits = http, server, place, waits
        self._options, self._on_progress = options, report
        self._profiler = Profiler(http, server, waits)
        self._files = NewFiles(place.folder, server.ranks, waits.pace) if place.folder else None
        self._missing: list[str] = []
        self._is_joined = False

    def record(self, out: Path) -> ServerRecording:
        """All of it, into the store `out`."""
        from inferometer.record.journal.journal import Journal

        profiler, server, asked = self._profiler, self._server, self._options
        body = profile_body(server, self._place.asked, asked.steps, stacks=asked.stacks, shapes=asked.shapes)
        profiler.start(body, waits_for_end=asked.steps is not None)
        self._on_progress(f"{server.name} is being profiled")
        try:
            with Journal(out, force=asked.force) as journal:
                journal.change_facts(self._about)
                if self._files is None:
                    self._on_progress(f"The traces can't be seen from here. {self._place.copy_hint}")
                hz = asked.hz, self._waits.metrics_hz
                with sampling(journal, self._http, counters=asked.counters, hz=hz, lack=self._lack) as metrics:
                    self._wait(metrics)
                    profiler.stop()
                found = self._collect()
                journal.change_facts(lambda facts: self._result(facts, journal))
        finally:
            profiler.abandon()
        files = self._join(out, found)
        times = profiler.began_ns, profiler.ended_ns
        kept, missing = self._kept(found), tuple(self._missing)
        return ServerRecording(str(out), server.engine, server.version, server.model, *times, files, kept, missing)

    def clean(self) -> None:
        """Drop the folder that was made for the traces, when it holds nothing, or nothing that isn't in the store."""
        folder = self._place.folder
        if self._place.is_own and folder and folder.is_dir():
            if self._is_joined:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                with suppress(OSError):  # stays where the server wrote, or still writes
                    folder.rmdir()

    def _wait(self, metrics: EngineMetrics) -> None:
        """Until the time is over, the steps are done, Ctrl-C, or the server's end."""
        pace, seconds, steps = self._waits.pace, self._options.seconds, self._options.steps
        began = last_report = pace.clock()
        until = "until Ctrl-C" if seconds is None else f"for {seconds:g} s"
        self._on_progress(
            f"recording {until if steps is None else f'{steps} steps, or {until}'}; send it requests meanwhile"
        )
        try:
            while (rest_s := pace.poll_s if seconds is None else seconds - (pace.clock() - began)) > 0:
                if metrics.is_gone:
                    self._profiler.end(is_lost=True)
                    self._lack("the end of the profile: the server doesn't answer any more")
                    return
                if steps is not None and self._has_done_steps():
                    return
                if pace.clock() - last_report >= _REPORT_S:
                    last_report = pace.clock()
                    self._on_progress(f"recording, {last_report - began:.0f} s so far")
                pace.sleep(min(pace.poll_s, rest_s))
        except KeyboardInterrupt:
            self._on_progress("stopping")

    def _has_done_steps(self) -> bool:
        """Whether the profiler ended by itself: its files are there, or it says that it never began."""
        if refusal := self._profiler.late_refusal():
            self._lack(f"the profile: {refusal}")
        elif self._files is None:
            return False
        else:
            files = self._files
            files.look()
            are_there = files.have_all_ranks or (self._server.ranks is None and files.are_complete)
            if not are_there and not files.are_stalled:
                return False
        self._profiler.end()
        return True

    def _collect(self) -> Found:
        """The trace files, as far as they can be seen."""
        profiler = self._profiler
        found = Found()
        try:
            if self._files is None:
                self._on_progress("waiting for the server to write its traces")
                profiler.wait()
            else:
                found = self._files.wait(lambda: profiler.is_stopped, lambda: profiler.is_lost, self._on_progress)
        except KeyboardInterrupt:
            self._lack("traces that were still being written when the recording was interrupted")
            found = self._files.found() if self._files else found
        if trouble := profiler.trouble():
            self._lack(f"the end of the profile: {trouble}")
        self._check_found(found)
        return found

    def _check_found(self, found: Found) -> None:
        expected = self._server.ranks
        if self._files is None:
            self._lack(f"traces: they can't be seen from here. {self._place.copy_hint}")
        elif not found.ranks:
            self._lack(f"traces: no new file in {self._place.folder}. {self._place.copy_hint}")
        elif expected is not None and len(found.ranks) < expected:
            self._lack(f"traces of {expected - len(found.ranks)} of {expected} ranks: no file in {self._place.folder}")
        for path in found.torn:
            self._lack(f"the end of {path.name}: it was not written whole")

    def _join(self, out: Path, found: Found) -> tuple[tuple[int, str], ...]:
        """Make `out` the store of traces and counters; rank and file of each."""
        if not found.ranks:
            return ()
        from inferometer.record.server.join import Window, join_store

        try:
            size = sum(path.stat().st_size for path in found.all)
            self._on_progress(f"joining {len(found.all)} files, {size / 1e6:.0f} MB")
            files = join_store(out, found, Window(self._profiler.asked_ns, time.time_ns()))
        except (InputError, OSError) as error:
            self._lack(f"traces: {error.message if isinstance(error, InputError) else error}")
            return ()
        self._is_joined = not found.torn and len(files) == len(found.ranks)
        return files

    def _kept(self, found: Found) -> str | None:
        """The folder of traces that are still there after `clean`."""
        return str(self._place.folder) if found.all and not (self._place.is_own and self._is_joined) else None

    def _about(self, facts: "Facts") -> "Facts":
        """What the server says of itself, for whoever opens the store."""
        server = self._server
        about = {"engine": server.engine, "version": server.version, "url": self._http.url}
        return replace(
            facts,
            model=server.model or facts.model,
            versions={**facts.versions, **({server.engine: server.version} if server.version else {})},
            engine_metrics={**facts.engine_metrics, "server": {**about, "arguments": server.arguments}},
        )

    def _result(self, facts: "Facts", sink: "Sink") -> "Facts":
        """When it was profiled, what the clocks did meanwhile, and what is missing."""
        drift_ns = time.time_ns() - sink.clock.base_ns - sink.clock.now()
        began_ns, ended_ns = self._profiler.began_ns, self._profiler.ended_ns
        times = {"began_unix_ns": began_ns, "ended_unix_ns": ended_ns, "clock_drift_ns": drift_ns}
        about = {**facts.engine_metrics.get("server", {}), **times}
        return replace(
            facts,
            engine_metrics={**facts.engine_metrics, "server": about},
            notes=(*facts.notes, *(f"Not recorded: {what}" for what in self._missing)),
        )

    def _lack(self, what: str) -> None:
        self._missing.append(what)
        self._on_progress(f"Not recorded: {what}")
