"""Events of tracks as columns, in the file's order: beginnings, ends and instants of slices, samples of counters."""

from array import array
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.perfetto.arguments import FLOW, Arguments
from inferometer.formats.perfetto.categories import has_arguments
from inferometer.formats.perfetto.sequences import State, Texts
from inferometer.trace.losses import Losses

Numbers = NDArray[np.int64]
BEGIN, END, INSTANT = 1, 2, 3
CATEGORY: Final = "track_event"
NO_TEXT: Final = -1
_COUNTER: Final = 4
_FURTHEST_NS: Final = 2**62  # ±146 years
_SIGN: Final = 1 << 63


class Events:
    """What was collected. `track` is a place in `tracks`, `name` and `category` are numbers of texts."""

    def __init__(self, texts: Texts, losses: Losses) -> None:
        self._texts = texts
        self._losses = losses
        self._known_tracks: dict[int, int] = {}
        self._has_arguments: dict[int, bool] = {}
        self._track, self._time, self._name, self._category = (array("q") for _ in range(4))
        self._kind = array("b")
        self._sample_track, self._sample_time, self._sample_value = array("q"), array("q"), array("d")
        self.arguments = Arguments(texts)
        self.flows = 0

    @property
    def tracks(self) -> list[int]:
        """Uuids of the tracks that have events."""
        return list(self._known_tracks)

    def take(self, event: Any, time_ns: int, state: State) -> None:
        """An event; one that is none of the kinds is counted."""
        kind = event.type
        if kind not in (BEGIN, END, INSTANT, _COUNTER):
            self.drop("unknown_phase", f"type {kind}")
            return
        if not -_FURTHEST_NS <= time_ns <= _FURTHEST_NS:
            self.drop("time_out_of_range", f"{time_ns} ns")
            return
        uuid = event.track_uuid or state.track
        track = self._known_tracks.setdefault(uuid, len(self._known_tracks))
        self._count_extra(event)
        if kind == _COUNTER:
            self._sample(event, track, time_ns)
            return
        row = len(self._kind)
        self._track.append(track)
        self._time.append(time_ns)
        self._kind.append(kind)
        if kind == END:
            self._name.append(NO_TEXT)
            self._category.append(NO_TEXT)
            return
        category = self._category_of(event, state)
        self._name.append(self._name_of(event, state))
        self._category.append(category)
        flow = event.flow_ids or event.terminating_flow_ids or event.flow_ids_old or event.terminating_flow_ids_old
        if flow:
            self.flows += 1
        wants = self._has_arguments.get(category)
        if wants is None:
            text = "" if category == NO_TEXT else self._texts.all[category]
            wants = self._has_arguments[category] = has_arguments(text)
        if wants:
            if flow:
                self.arguments.put(row, FLOW, flow[0] - (flow[0] >= _SIGN) * 2 * _SIGN)
            self.arguments.take(row, event.annotations, state)

    def columns(self) -> dict[str, Numbers]:
        """Track, time, kind, name and category of each event but samples. Shape (n,) each."""
        found = {"track": self._track, "time": self._time, "name": self._name, "category": self._category}
        columns = {name: np.frombuffer(values, np.int64) for name, values in found.items()}
        return {**columns, "kind": np.frombuffer(self._kind, np.int8).astype(np.int64)}

    def samples(self) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
        """Track, time and value of each sample."""
        return (
            np.frombuffer(self._sample_track, np.int64),
            np.frombuffer(self._sample_time, np.int64),
            np.frombuffer(self._sample_value, np.float64),
        )

    def _sample(self, event: Any, track: int, time_ns: int) -> None:
        kind = event.WhichOneof("kind")
        self._sample_track.append(track)
        self._sample_time.append(time_ns)
        self._sample_value.append(float("nan") if kind is None else float(getattr(event, kind)))

    def _name_of(self, event: Any, state: State) -> int:
        if event.name:
            return self._texts.number(event.name)
        return self._known(state.names, event.name_iid) if event.name_iid else NO_TEXT

    def _category_of(self, event: Any, state: State) -> int:
        if event.category_iids:
            return self._known(state.categories, event.category_iids[0])
        return self._texts.number(event.categories[0]) if event.categories else NO_TEXT

    def _known(self, texts: dict[int, int], iid: int) -> int:
        """The text that the sequence gave this number; one that it never gave is counted, and called by the number."""
        found = texts.get(iid)
        if found is None:
            self._losses.count("without_string", category="text")
            found = self._texts.number(f"[string {iid}]".encode())
        return found

    def _count_extra(self, event: Any) -> None:
        """Samples that stand in an event of another track have no row."""
        n = len(event.extra_counter_values) + len(event.extra_double_counter_values)
        if n:
            self._losses.see("extra_counter_values", n)
            self._losses.count("unknown_category", n, category="extra_counter_values")

    def drop(self, loss: str, example: str) -> None:
        """Count an event that can't have a row."""
        self._losses.see(CATEGORY)
        self._losses.count(loss, category=CATEGORY, example=example)
