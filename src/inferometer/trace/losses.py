"""What a reader could not read, or had to mend: counted by name, severity and the file's own category.

Two sorts are kept apart, so that events in the file = events read + events dropped holds in every category: a *dropped*
event has no row in the trace; any other loss is a repair or a remark about rows that are there. None is an error: the
rest was read, and a command that answers from it exits with 0. What can't be read at all raises. `KINDS` declares the
names once; docs/reference/losses.md is made from it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

import msgspec

from inferometer.errors import clean
from inferometer.privacy.secrets import blank_secrets

_LONGEST_EXAMPLE = 120
_LOOKED_AT = 4_000  # characters of an example's text; a file may give any length

Severity = Literal["info", "warning"]
_SEVERITIES: tuple[Severity, ...] = ("warning", "info")


class Kind(msgspec.Struct, frozen=True):
    """One name under which losses are counted. `dropped`: the events counted have no row in the trace."""

    name: str
    severity: Severity
    meaning: str
    dropped: bool = False


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        # The file as a whole.
        Kind("truncated", "warning", "The file ends in the middle; everything before that was read."),
        Kind("unreadable_event", "warning", "Not JSON, even after repair; skipped up to the next event.", dropped=True),
        Kind("event_too_large", "warning", "One event is larger than the limit for one event; skipped.", dropped=True),
        Kind("broken_compression", "warning", "The compressed data is damaged; everything before that was read."),
        Kind(
            "changed_while_read",
            "warning",
            "The file was written to, or replaced, while it was read: rows may be of both states. Read it again.",
        ),
        Kind("trailing_data", "warning", "Text after the end of the JSON document; not read."),
        Kind(
            "array_not_closed", "info", "A bare array of events without its closing bracket, which the format allows."
        ),
        Kind("unreadable_header", "warning", "A field next to the events could not be read."),
        Kind(
            "several_trace_objects", "info", "The file holds an array of trace objects; all were read into one trace."
        ),
        Kind(
            "secret",
            "warning",
            "Looks like a secret. The trace and everything written from it do without it (*** in its place); "
            "the original file still holds it.",
        ),
        Kind("masked_secret", "info", "Named as a secret, but the file holds only a mask."),
        Kind(
            "environment",
            "info",
            "Environment variables of the recorded process: left out of the trace, but the original file holds them.",
        ),
        Kind("field_not_searched", "info", "A field next to the events that is too large to be searched for secrets."),
        Kind("missing_file", "info", "A file that belongs to the recording is not there."),
        Kind("unreadable_file", "warning", "A file that belongs to the recording can't be read; the others were."),
        Kind("missing_column", "warning", "A column that the format has is not in the file; read as null."),
        Kind("unreadable_plane", "warning", "A plane of the file that can't be decoded; the others were read."),
        Kind("unreadable_packet", "warning", "A packet of the file that can't be decoded or unpacked.", dropped=True),
        Kind("packed_packets", "warning", "A packet that holds others in a compression that isn't read.", dropped=True),
        Kind("packets_lost", "warning", "A place where the recorder lost packets: they are not in the file."),
        Kind(
            "dropped_by_profiler",
            "warning",
            "What the profiler itself had no room for, by its own count: it is not in the file.",
        ),
        # A folder of ranks.
        Kind("unreadable_rank_file", "warning", "A file of a rank that can't be read: this rank is missing."),
        Kind("no_common_clock", "warning", "A rank whose times can't be compared with those of the other ranks."),
        Kind("ranks_apart", "warning", "A rank whose device work begins only after that of another has ended."),
        Kind("rank_by_position", "warning", "A file that names no rank: it has the next number in the order of names."),
        Kind("same_recording", "info", "A second file of one recording: not read; `facts.notes` names it."),
        # A recording of ours.
        Kind(
            "recording_ended_early",
            "warning",
            "A recording that is not finished: it is still being written, or its process ended without closing it.",
        ),
        Kind("not_recorded", "warning", "Something that was asked for but couldn't be recorded; the rest was."),
        Kind("counter_unavailable", "info", "A counter that this machine, driver or user's rights don't give."),
        Kind(
            "buffer_full",
            "warning",
            "Rows of a recording for which a thread's buffer had no room: they came faster than they were written.",
            dropped=True,
        ),
        Kind("module_without_path", "warning", "A module whose model can't name its parts: it has its class's name."),
        Kind("rows_not_written", "warning", "Rows that couldn't be written: a full disk, a lost folder.", dropped=True),
        Kind("samples_averaged", "info", "Samples of counters that became means, to keep a store small.", dropped=True),
        Kind("rows_not_kept", "info", "The oldest rows of a store, removed to keep it small.", dropped=True),
        # A log of an engine.
        Kind("unknown_line", "info", "A line of a log that is like none of its format: kept as text."),
        Kind(
            "unended_line",
            "info",
            "The last line has no line end: of it is read only what can't have been cut, the text is in the log.",
        ),
        Kind("unfinished_run", "warning", "A run without its last lines (result, times, rates): the log was cut."),
        Kind("truncated_report", "warning", "A report without its total: the rows before its end are there."),
        Kind("total_disagrees", "warning", "A printed total that the rows of its report don't make up."),
        Kind(
            "ambiguous_run",
            "warning",
            "A line that several runs in one log may have written: given to the one whose clock is nearest.",
        ),
        # Events without a row, and why.
        Kind("unknown_category", "warning", "An event category that has no table yet.", dropped=True),
        Kind("unknown_phase", "warning", "An event of a phase (`ph`) that has no table yet.", dropped=True),
        Kind("flow_event", "info", "Flow arrows: correlation ids say the same, so they are dropped.", dropped=True),
        Kind(
            "metadata_event", "info", "Names of processes and threads: kept in the facts, not in a table.", dropped=True
        ),
        Kind("end_event", "info", "The end of a begin/end pair: merged into its beginning's row.", dropped=True),
        Kind("not_an_object", "warning", "Something in the list of events is not an event.", dropped=True),
        Kind("without_timestamp", "warning", "No readable start.", dropped=True),
        Kind("without_duration", "warning", "An event without a readable duration or end.", dropped=True),
        Kind("negative_duration", "warning", "A duration below zero.", dropped=True),
        Kind("time_out_of_range", "warning", "A start outside ±146 years, or a duration above 104 days.", dropped=True),
        Kind("without_name", "warning", "An event without a name.", dropped=True),
        Kind(
            "derived_event",
            "info",
            "An event that a viewer derived from others, which are read: with both, time would count twice.",
            dropped=True,
        ),
        Kind(
            "aggregate_event",
            "info",
            "An event that stands for several, by their number, and has no time of its own.",
            dropped=True,
        ),
        Kind("begin_without_end", "warning", "A begin event (B) or range that never ends.", dropped=True),
        Kind(
            "needs_lost_packets",
            "warning",
            "An event whose names or times hang on packets that the recorder lost.",
            dropped=True,
        ),
        Kind("unknown_clock", "warning", "An event on a clock that nothing in the file ties to others.", dropped=True),
        Kind("end_without_begin", "warning", "An end event (E) that nothing began.", dropped=True),
        Kind("nvtx_naming_event", "info", "Names of NVTX domains, categories and threads, not ranges.", dropped=True),
        Kind("chain_without_place", "warning", "A frame of a call chain without a chain or a depth.", dropped=True),
        Kind(
            "profiled_alone",
            "info",
            "A launch that the profiler ran by itself, as a rule with clocks locked and caches flushed: its time is "
            "never that of a trace.",
        ),
        Kind("counter_without_value", "warning", "A counter event without a number.", dropped=True),
        Kind(
            "unreadable_row",
            "warning",
            "A row of a table with a number or a cell that can't be read; of a printed table, its text is in the log.",
            dropped=True,
        ),
        Kind(
            "row_of_something_else",
            "warning",
            "A row of a printed table about API calls, copies or others than kernels: its text is in the log.",
            dropped=True,
        ),
        Kind("repeated_frame", "info", "A frame of a call path that is a node already: merged into it.", dropped=True),
        Kind(
            "repeated_row",
            "info",
            "A row of a table that says what another row says already: one is kept.",
            dropped=True,
        ),
        Kind(
            "unknown_action", "info", "Something that an allocator did and that has no meaning here: its row is there."
        ),
        Kind("without_metric", "info", "A row of a function in a cycle without a sample of a metric.", dropped=True),
        # Repairs: the row is there.
        Kind("control_character", "info", "A raw control character in a text; replaced by a space."),
        Kind("invalid_utf8", "warning", "Bytes that are not UTF-8; replaced by U+FFFD."),
        Kind("bad_escape", "info", "A backslash that escapes nothing, or half a surrogate pair; mended."),
        Kind("not_finite", "info", "NaN or infinity, which JSON does not have; read as null."),
        Kind("wrong_type", "warning", "A field of an unexpected type; read as null."),
        Kind("number_out_of_range", "warning", "A whole number outside 64 bits; read as null."),
        Kind("without_string", "warning", "A string id without a text; the row is called `[string 17]`."),
        Kind("without_symbol", "warning", "A kernel whose name is not in the file; it is called `[kernel 17]`."),
        Kind("text_id", "info", "A process or thread id that is text; numbered, and named in the facts."),
        # Remarks about rows.
        Kind(
            "below_a_nanosecond",
            "info",
            "Times finer than a nanosecond: starts are rounded down, durations to the nearest.",
        ),
        Kind(
            "end_of_another_slice",
            "info",
            "Device work that overlaps on one track, where only nesting can be drawn: its own times are used.",
        ),
        Kind("name_cut", "warning", "A kernel's name that the source printed cut short."),
        Kind(
            "unit_assumed", "info", "Times printed without a unit: read as nanoseconds, as Nsight Systems prints them."
        ),
        Kind("unknown_column", "warning", "A column of a table that has no place in the trace; not read."),
        Kind("empty_table", "info", "A table without rows."),
        Kind(
            "share_disagrees",
            "warning",
            "A printed share of time that the rows of its table don't make: the table is an excerpt, or was edited.",
        ),
        Kind("contradicting_rows", "warning", "Rows that say different things of one and the same; all are kept."),
        Kind("unknown_unit", "info", "A metric whose unit is not known: its values are as recorded."),
        Kind("zero_length_cycle", "info", "A cycle of 0 ns."),
        Kind("zero_duration_launch", "info", "Device work of 0 ns."),
        Kind(
            "overlaps_in_graph",
            "info",
            "Device work that overlaps later work of the same call on its stream, as branches of a graph launch do.",
        ),
        Kind(
            "overlaps_in_stream",
            "info",
            "Device work still running when a later call's work began on its stream: an early start by design "
            "(programmatic dependent launch), coarse times, or several queues reported as one stream.",
        ),
        Kind(
            "overflows_stream",
            "warning",
            "Device work that outlasts two or more later launches on its stream from start to end: its end is wrong, "
            "or several queues are reported as one stream.",
        ),
        Kind("overlapping_profiler_steps", "warning", "ProfilerStep marks that overlap on one thread."),
        Kind("correlation_in_several_processes", "info", "One correlation id used by several processes."),
        Kind("launch_before_window", "info", "Queued before the profiling window: its host call is not in the file."),
    )
}


class Loss(msgspec.Struct, frozen=True):
    """One counted name within one category.

    `example` is a place in the file or the first text met: one line, cut, with control characters and what looks
    like an access token or password left out.
    """

    name: str
    severity: Severity
    count: int
    dropped: bool
    category: str | None = None
    example: str | None = None

    @property
    def meaning(self) -> str:
        """What the name stands for."""
        kind = KINDS.get(self.name)
        return kind.meaning if kind else ""


class Losses:
    """The counts, their scope (tables that were asked for) and the events met in each category.

    `seen[category]` counts every event of the file in the scope; `dropped(category)` those without a row.
    """

    def __init__(self, scope: Iterable[str] = ()) -> None:
        self.scope = frozenset(scope)
        self.seen: Counter[str] = Counter()
        self._counts: Counter[tuple[str, str | None]] = Counter()
        self._examples: dict[tuple[str, str | None], str] = {}
        self._kinds: dict[str, Kind] = {}

    def count(
        self,
        name: str,
        n: int = 1,
        *,
        category: str | None = None,
        example: str | None = None,
        kind: Kind | None = None,
    ) -> None:
        """Add `n` under `name`, which `KINDS` declares; a format of another package hands in its own `kind`."""
        if n <= 0:
            return
        if name not in self._kinds:
            self._kinds[name] = kind or KINDS[name]
        category = None if category is None else _without_secrets(category)
        self._counts[name, category] += n
        if example is not None and (name, category) not in self._examples:
            self._examples[name, category] = _as_line(example)

    def add(self, other: "Losses", source: str | None = None) -> None:
        """Add what another file lost and saw; an example says which file it is from, where `source` does."""
        self.seen.update(other.seen)
        for loss in other:
            example = loss.example if None in (loss.example, source) else f"{source}: {loss.example}"
            self.count(loss.name, loss.count, category=loss.category, example=example, kind=other.kind_of(loss.name))

    def kind_of(self, name: str) -> Kind:
        """What was declared of a name that was counted here."""
        return self._kinds[name]

    def see(self, category: str, n: int = 1) -> None:
        """Count `n` events of the file under `category`."""
        self.seen[_without_secrets(category)] += n

    def total(self, name: str | None = None, *, category: str | None = None) -> int:
        """Sum of counts, of one name or of one category where given."""
        return sum(
            n
            for (each, cat), n in self._counts.items()
            if (name is None or each == name) and (category is None or cat == category)
        )

    def dropped(self, category: str | None = None) -> int:
        """Events without a row, of one category or of all."""
        return sum(loss.count for loss in self if loss.dropped and category in (None, loss.category))

    def warnings(self) -> int:
        """Sum of the counts of severity `warning`."""
        return sum(loss.count for loss in self if loss.severity == "warning")

    def __iter__(self) -> Iterator[Loss]:
        """Gravest first, then by count."""
        losses = [
            Loss(
                name,
                self._kinds[name].severity,
                n,
                self._kinds[name].dropped,
                category,
                self._examples.get((name, category)),
            )
            for (name, category), n in self._counts.items()
        ]
        return iter(sorted(losses, key=lambda x: (_SEVERITIES.index(x.severity), -x.count, x.name, x.category or "")))

    def __len__(self) -> int:
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Losses) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: scope, events seen by category, and the entries, gravest first."""
        return {
            "scope": sorted(self.scope),
            "events": dict(sorted(self.seen.items())),
            "entries": [
                {
                    "name": loss.name,
                    "severity": loss.severity,
                    "count": loss.count,
                    "dropped": loss.dropped,
                    "category": loss.category,
                    "example": loss.example,
                }
                for loss in self
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Losses":
        """The inverse of `as_dict`; a name of another version keeps its severity, or has today's for it."""
        losses = cls(data["scope"])
        losses.seen.update(data["events"])
        for entry in data["entries"]:
            name, category, example = entry["name"], entry["category"], entry["example"]
            kind = written_kind(name, entry["severity"], dropped=entry["dropped"])
            losses.count(name, entry["count"], category=category, example=example, kind=kind)
        return losses


def written_kind(name: str, severity: str, *, dropped: bool) -> Kind:
    """The kind of a name in a file that any version wrote: today's, or for an unknown name as it was written."""
    known: Severity = "info" if severity == "info" else "warning"  # a version before had "error", too
    return KINDS.get(name) or Kind(name, known, "", dropped)


def _as_line(text: str) -> str:
    """What can be shown and passed on of a text that a file gave."""
    line = blank_secrets(" ".join(clean(text[:_LOOKED_AT]).split()))
    return line if len(line) <= _LONGEST_EXAMPLE else f"{line[: _LONGEST_EXAMPLE - 1]}…"


@lru_cache(1024)
def _without_secrets(text: str) -> str:
    """A category is text of the file, too."""
    return blank_secrets(text)
