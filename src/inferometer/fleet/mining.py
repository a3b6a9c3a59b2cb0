"""Makes a fleet of traces, or adds to one: what is new is opened, once, each in a process with limits.

A path whose stamp is that of a former run isn't read again; a content that has a digest isn't opened again, whatever
its name. Of a run that was killed all digests are there, so that the next one goes on where it ended.
"""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import msgspec
import polars as pl

from inferometer.errors import printable
from inferometer.fleet.contents import Content, look_at
from inferometer.fleet.readers import Readers, Reading
from inferometer.fleet.reasons import SetAside, setting_aside
from inferometer.fleet.remote import look_at_url
from inferometer.fleet.sources import Place, compile_labels, find_places, labels_of
from inferometer.fleet.store import FleetWriter, source_rows
from inferometer.fleet.tables import SOURCES, TRACE

_Rows = dict[str, dict[str, object]]


@dataclass(frozen=True)
class Progress:
    """How far it is: places and bytes that had to be read, of all of them."""

    done: int
    places: int
    done_bytes: int
    bytes: int


@dataclass(frozen=True)
class Mined:
    """`made` digests are new; `traces` and `paths` are all of the fleet's. `aside`: each path with its reason."""

    traces: int
    paths: int
    made: int
    aside: tuple[tuple[str, str], ...]


def mine(
    words: Iterable[str],
    place: str | Path,
    *,
    readers: Readers,
    labels: str | None = None,
    retry: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Mined:
    """Make the fleet at `place` of the traces that `words` name, or add them to it.

    Args:
        words: Files, folders, globs, lists and URLs; see `sources`.
        place: The fleet's folder; what former runs added stays.
        readers: What reads them; they end with it.
        labels: A regular expression that is looked for in each path; its named groups are labels.
        retry: Open once more what was set aside.
        on_progress: Called when a place is done, from this thread.

    Raises:
        InputError: A word names nothing, the fleet can't be written, or a machine doesn't see what this one does.
        Unavailable: A URL's reader isn't installed, or the readers can't be had.
    """
    pattern = compile_labels(labels)
    places = find_places(words)
    with FleetWriter(Path(place)) as fleet, readers:
        run = _Run(fleet, readers, retry=retry)
        before = fleet.sources()
        rows, todo = _look_at_places(run, places, pattern, before)
        _work(run, todo, rows, on_progress)
        kept = before.filter(~pl.col("path").is_in(list(rows)))
        sources = pl.concat([kept, source_rows(rows.values())]).select(list(SOURCES.schema))
        fleet.finish(sources)
    return _mined(sources, run.made)


def _look_at_places(
    run: "_Run", places: Iterable[Place], pattern: re.Pattern[str] | None, before: pl.DataFrame
) -> tuple[_Rows, list[tuple[Place, Content]]]:
    """Rows of `sources`, as far as size and stamp of a place suffice, and the places that must be read for the rest."""
    known = {row["path"]: row for row in before.iter_rows(named=True)}
    rows: _Rows = {}
    todo = []
    for each in places:
        name = printable(each.name)
        labels = msgspec.json.encode(labels_of(each.name, pattern)).decode()
        rows[name] = {"path": name, "labels": labels}
        content = _look(each)
        if isinstance(content, str):
            rows[name]["reason"] = content
            continue
        rows[name] |= {"bytes": content.bytes, "stamp": content.stamp}
        old = known.get(name)
        if old is not None and old["stamp"] == content.stamp and run.is_settled(old[TRACE]):
            rows[name] |= {TRACE: old[TRACE], "reason": old["reason"]}
        else:
            todo.append((each, content))
    return rows, todo


def _work(
    run: "_Run",
    todo: list[tuple[Place, Content]],
    rows: _Rows,
    on_progress: Callable[[Progress], None] | None,
) -> None:
    """Read the places, the largest first, so that no process has a large one left at the end; complete their `rows`."""
    ordered = sorted(todo, key=lambda each: -each[1].bytes)
    done, done_bytes, total = 0, 0, sum(content.bytes for _, content in todo)
    with ThreadPoolExecutor(run.readers.count) as pool:
        futures = {pool.submit(run.take, each): (each, content) for each, content in ordered}
        try:
            for future in as_completed(futures):
                each, content = futures[future]
                trace, reason = future.result()
                rows[printable(each.name)] |= {TRACE: trace, "reason": reason}
                done, done_bytes = done + 1, done_bytes + content.bytes
                if on_progress is not None:
                    on_progress(Progress(done, len(todo), done_bytes, total))
        except BaseException:  # Ctrl-C, a full disk: what waits isn't begun
            pool.shutdown(wait=False, cancel_futures=True)
            run.readers.close()
            raise


class _Run:
    """What the threads of one run share."""

    def __init__(self, fleet: FleetWriter, readers: Readers, *, retry: bool) -> None:
        self.fleet, self.readers, self._retry = fleet, readers, retry
        self.made = 0
        self._lock = Lock()
        self._results: dict[str, Future[str | None]] = {}

    def is_settled(self, trace: str | None) -> bool:
        """Whether a content that was seen before needs no look."""
        if trace is None:
            return False
        return self.fleet.has_digest(trace) or (not self._retry and self.fleet.reason(trace) is not None)

    def take(self, place: Place) -> tuple[str | None, str | None]:
        """The content's hash, and why it was set aside; each content is opened once, whatever its names."""
        try:
            with self.readers.reading(place) as found:
                with self._lock:
                    is_first = found.trace not in self._results
                    result = self._results.setdefault(found.trace, Future())
                if is_first:
                    self._settle(found, result)
                return found.trace, result.result()
        except SetAside as error:
            return None, error.reason

    def _settle(self, found: Reading, result: "Future[str | None]") -> None:
        try:
            result.set_result(self._digest(found))
        except BaseException as error:  # those that wait for it end, too
            result.set_exception(error)
            raise

    def _digest(self, found: Reading) -> str | None:
        if self.is_settled(found.trace):
            return None if self.fleet.has_digest(found.trace) else self.fleet.reason(found.trace)
        try:
            packed = found.digest()
        except SetAside as error:
            self.fleet.set_aside(found.trace, error.reason)
            return error.reason
        self.fleet.keep(found.trace, packed)
        with self._lock:
            self.made += 1
        return None


def _look(place: Place) -> Content | str:
    """Size and stamp of what is there; or a text that says why they aren't known."""
    try:
        with setting_aside(place.name, OSError):
            return look_at_url(place.name) if place.is_remote else look_at(Path(place.name))
    except SetAside as error:
        return error.reason


def _mined(sources: pl.DataFrame, made: int) -> Mined:
    aside = sources.filter(pl.col("reason").is_not_null()).sort("path")
    whole = sources.filter(pl.col("reason").is_null())
    return Mined(whole[TRACE].n_unique(), sources.height, made, tuple(aside.select("path", "reason").iter_rows()))
