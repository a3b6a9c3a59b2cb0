"""Ops in one of every so many marked steps: the others run as without a recording, and cost what they did.

A step that is left out has its mark and its times. What else ran in it isn't in the recording: ops, modules, functions,
and launches on a CPU, which are ops. So the time is told as the recorder's (`recorder_pauses`).
"""

import os
import threading

from inferometer.analyses.timeline.recorder_pauses import UNOBSERVED
from inferometer.record.interception.handover import with_note
from inferometer.record.interception.way import Way
from inferometer.record.sink import Sink
from inferometer.trace.builder import Values

NOTE = (
    "Ops were observed in one of every {every} marked steps, from the first on. Of the others there are the times: "
    "their ops, modules, functions and launches on a CPU are in no sum and no median here."
)


class EveryNth:
    """Pauses a way while steps are open that are left out, and no other is: an observed step is observed as a whole.

    Args:
        sink: Takes the times in which nothing was seen.
        way: What sees ops, on all threads.
        every: At least 2.
        is_gap: Launches are ops here, so that there are none meanwhile.
    """

    def __init__(self, sink: Sink, way: Way, every: int, *, is_gap: bool) -> None:
        self._sink = sink
        self._way = way
        self._every = every
        self._is_gap = is_gap
        self._lock = threading.RLock()
        self._open = {False: 0, True: 0}  # steps, by whether they are observed
        self._since_ns: int | None = None
        self._is_told = False

    def is_observed(self, number: int) -> bool:
        """Whether ops are seen in the step of this number."""
        return number % self._every == 0

    def begin(self, number: int) -> None:
        """A step of this number begins, on any thread; with the first the recording says so, since now it is true."""
        with self._lock:
            if not self._is_told:
                self._is_told = True
                self._sink.change_facts(with_note(NOTE.format(every=self._every)))
        self._count(number, 1)

    def end(self, number: int) -> None:
        """It is over."""
        self._count(number, -1)

    def _count(self, number: int, more: int) -> None:
        with self._lock:
            self._open[self.is_observed(number)] += more
            is_paused = self._open[False] > 0 and self._open[True] == 0
            if is_paused and self._since_ns is None:
                self._way.pause()
                self._since_ns = self._sink.clock.now()
            elif not is_paused and self._since_ns is not None:
                since_ns, self._since_ns = self._since_ns, None
                self._tell_gap(since_ns)
                self._way.resume()

    def _tell_gap(self, since_ns: int) -> None:
        if self._is_gap:
            took_ns = float(self._sink.clock.now() - since_ns)
            about: dict[str, Values] = {"metric": UNOBSERVED, "process": os.getpid(), "unit": "ns"}
            self._sink.add("counters", 1, {**about, "time_ns": [since_ns], "value": [took_ns]})
