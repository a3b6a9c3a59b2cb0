"""Several runs in one file: which of them wrote a line.

A relay's tag, and the name that another tool put before a line, tell runs apart for sure. Runs with the same tag are
distinguished by their clocks, which begin anew with each: one that falls back belongs to another run. Where two are
written side by side, a line belongs to the run whose clock agrees best with how much time has passed; where two agree
alike, the line is counted as ambiguous. Lines of the harness have no clock: they follow the run that has ended.
"""

from collections.abc import Iterator
from typing import Any

from inferometer.formats.webgpu_log.lines import Parts
from inferometer.formats.webgpu_log.run import Key, Run

_SLACK_NS = 5_000_000  # lines of one run may be a little out of order
_SURE_NS = 250_000_000  # a clock that agrees better by less than this may be another run's
_ROUNDED_NS = 1_000_000  # metrics are printed to a ms
_MOST_OPEN = 32
_MOST_RUNS = 1_000
_MOST_TEXTS = 1_000  # of a run, to recognise what is printed once
_ONCE = frozenset({"cache", "gpu", "config", "kernel_path", "model", "loader", "heap", "tokenizer"})


class Runs:
    """All runs so far, and which of them a line belongs to. `ambiguous` counts lines that several may have written."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self.ambiguous = 0
        self.first_ambiguous: int | None = None
        self._open: dict[Key, list[Run]] = {}
        self._latest: Run | None = None
        self._result: Run | None = None
        self._now_ns = 0
        self._numbered = 0

    def __iter__(self) -> Iterator[Run]:
        return iter(self.all)

    def of(self, parts: Parts, kind: str | None, fields: dict[str, Any], line: int) -> Run:
        """The run that wrote this line."""
        if not parts.is_stamped and kind in ("progress", "result", "metrics"):
            run = self._of_harness(parts, kind, fields, line)
        elif parts.time_ns is None:
            run = self._of_key((parts.owner, parts.tag), line)
        else:
            run = self._of_time((parts.owner, parts.tag), parts.time_ns, kind, parts.text, line)
            self._advance(run, parts.time_ns)
        if kind in _ONCE or kind == "progress":
            if len(run.texts) < _MOST_TEXTS:
                run.texts.add(parts.text)
        elif kind == "pipeline" and parts.text.startswith("Unloaded"):
            run.is_over = True
        self._latest = run
        return run

    def latest(self, line: int) -> Run:
        """The run that wrote the line before this one."""
        return self._latest or self._new(None, line)

    def merge_strays(self) -> None:
        """Lines far out of order began a run that has no reports and says nothing twice: they are of another run.

        Runs without reports get their numbers now, after the others.
        """
        kept = [run for run in self.all if not run.is_empty]
        for stray in [run for run in self.all if run.is_empty]:
            at = next((i for i, run in enumerate(kept) if run.began_at > stray.began_at), len(kept))
            homes = (*reversed(kept[:at]), *kept[at:])
            home = next((run for run in homes if stray.may_be_of(run)), None)
            if home:
                home.take_over(stray)
            else:
                kept.insert(at, stray)
        for run in kept:
            self.number(run)
        self.all = sorted(kept, key=self.number)

    def number(self, run: Run) -> int:
        """The run's number, in the order of first reports."""
        if run.number is None:
            run.number = self._numbered
            self._numbered += 1
        return run.number

    def _of_harness(self, parts: Parts, kind: str, fields: dict[str, Any], line: int) -> Run:
        runs = [run for run in self.all[-_MOST_OPEN:] if run.key is None or run.key[0] == parts.owner]
        if kind == "progress":
            newest = runs[-1] if runs else None
            begun = newest is not None and (newest.first_ns is not None or parts.text in newest.texts)
            return newest if newest is not None and not begun else self._new((parts.owner, None), line)
        run = self._of_metrics(runs, fields, line) if kind == "metrics" else self._of_result(runs, fields, line)
        run = run or self._new(None, line)
        run.is_over = True
        self._result = run
        return run

    def _of_result(self, runs: list[Run], fields: dict[str, Any], line: int) -> Run | None:
        """A run that waits for its result: one that has ended, of that model, whose clock agrees with the duration."""
        waiting = [run for run in runs if "result" not in run.closings] or runs
        ended = [run for run in waiting if run.is_over] or waiting
        ended = [run for run in ended if run.model == fields.get("model")] or ended
        duration_ns = fields.get("duration_ns")
        if len(ended) > 1:
            self.doubt(line)
            if isinstance(duration_ns, int):
                ended.sort(key=lambda run: abs(run.last_ns - duration_ns))
        return ended[0] if ended else None

    def _of_metrics(self, runs: list[Run], fields: dict[str, Any], line: int) -> Run | None:
        """The run whose result stands above, unless it has these metrics or another's times are printed."""
        free = [run for run in runs if not fields.keys() & run.printed.keys()] or runs
        agreeing = [run for run in free if _agree(run, fields)]
        above = [run for run in free if run is self._result]
        waiting = [run for run in free if "result" in run.closings]
        if len(waiting) > 1 and len(agreeing) != 1:
            self.doubt(line)
        choice = (agreeing if len(agreeing) == 1 else above) or waiting or free
        return choice[0] if choice else None

    def _of_key(self, key: Key, line: int) -> Run:
        """A line without a time: of the latest run with this tag, else of the one that is going on."""
        latest = self._latest
        if latest is not None and latest.key in (key, None):
            return latest
        found = next((run for run in reversed(self.all[-_MOST_OPEN:]) if run.key == key), None)
        return found or latest or self._new(None, line)

    def _of_time(self, key: Key, time_ns: int, kind: str | None, text: str, line: int) -> Run:
        runs = self._open.setdefault(key, [])
        pending = next((run for run in self.all[-_MOST_OPEN:] if _is_pending(run, key)), None)
        going = [run for run in runs if not run.is_over] or runs[-1:]
        fits = [run for run in going if time_ns >= run.last_ns - _SLACK_NS]
        if pending is not None and (not fits or all(run.is_over or text in run.texts for run in fits)):
            return self._begin(pending, key, time_ns)
        if not runs:
            return self._begin(self._new(key, line), key, time_ns)
        if not fits:
            late = going[-1]
            is_again = late.is_over or late.perfs or kind == "profile" or text in late.texts
            return self._begin(self._new(key, line), key, time_ns) if is_again else late
        if kind in _ONCE:
            fresh = [run for run in fits if text not in run.texts]
            if not fresh and not any(run.steps for run in fits) and kind in ("cache", "gpu", "kernel_path", "model"):
                return self._begin(self._new(key, line), key, time_ns)
            fits = fresh or fits
        return self._nearest(fits, time_ns, line)

    def _nearest(self, fits: list[Run], time_ns: int, line: int) -> Run:
        """The run whose clock agrees best with the time that has passed since the file's first line."""
        if len(fits) == 1:
            return fits[0]
        apart = [abs(run.offset_ns + time_ns - self._now_ns) for run in fits]
        nearest, second = sorted(apart)[:2]
        if second < 2 * nearest + _SURE_NS:
            self.doubt(line)
        return fits[apart.index(nearest)]

    def _advance(self, run: Run, time_ns: int) -> None:
        """Lines are in the order they were written in, so a clock that seems behind began later than thought."""
        run.offset_ns = max(run.offset_ns, self._now_ns - max(time_ns, run.last_ns))
        run.last_ns = max(run.last_ns, time_ns)
        run.first_ns = time_ns if run.first_ns is None else min(run.first_ns, time_ns)
        self._now_ns = max(self._now_ns, run.offset_ns + run.last_ns)

    def _begin(self, run: Run, key: Key, time_ns: int) -> Run:
        run.key = key
        run.offset_ns = self._now_ns - time_ns if self._now_ns else 0
        open_runs = self._open.setdefault(key, [])
        open_runs.append(run)
        del open_runs[:-_MOST_OPEN]
        return run

    def _new(self, key: Key | None, line: int) -> Run:
        if len(self.all) >= _MOST_RUNS:
            self.doubt(line)
            return self.all[-1]
        self.all.append(Run(key, began_at=line))
        return self.all[-1]

    def doubt(self, line: int) -> None:
        """Count a line that may be another run's."""
        self.ambiguous += 1
        self.first_ambiguous = self.first_ambiguous or line


def _is_pending(run: Run, key: Key) -> bool:
    """Whether the harness announced this run, and the engine hasn't written a line of it yet."""
    return run.first_ns is None and not run.is_over and (run.key is None or run.key in (key, (key[0], None)))


def _agree(run: Run, fields: dict[str, Any]) -> bool:
    """Whether times of the metrics are those that the run's engine printed, but for their rounding."""
    printed = run.perfs[-1][1] if run.perfs else {}
    both = [key for key in ("ttft_ns", "prefill_ns", "decode_ns") if key in fields and key in printed]
    return bool(both) and all(abs(fields[key] - printed[key]) <= _ROUNDED_NS for key in both)
