"""What a sequence of packets said before: texts by number, the track and clock of packets that name none.

A packet that hangs on these says so. Where the recorder lost packets, all such packets up to the next fresh start are
passed over: their numbers may mean anything.
"""

from dataclasses import dataclass, field
from typing import Any

from inferometer.formats.perfetto.clocks import OwnClock
from inferometer.trace.losses import Losses

_CLEARED, _NEEDS_STATE = 1, 2
_KINDS = ("categories", "names", "annotation_names", "texts")


class Texts:
    """Each text of a file once, by a number from 0."""

    def __init__(self, losses: Losses) -> None:
        self.all: list[str] = []
        self._losses = losses
        self._numbers: dict[bytes, int] = {}

    def number(self, data: bytes) -> int:
        """The number of a text."""
        found = self._numbers.get(data)
        if found is None:
            found = self._numbers[data] = len(self.all)
            text = data.decode(errors="replace")
            if "\N{REPLACEMENT CHARACTER}" in text:
                self._losses.count("invalid_utf8", category="text", example=text)
            self.all.append(text)
        return found


@dataclass
class State:
    """Of one sequence: texts of the file by the sequence's own numbers, and defaults."""

    is_valid: bool = False
    track: int = 0
    clock: int = 0
    clocks: dict[int, OwnClock] = field(default_factory=dict)
    categories: dict[int, int] = field(default_factory=dict)
    names: dict[int, int] = field(default_factory=dict)
    annotation_names: dict[int, int] = field(default_factory=dict)
    texts: dict[int, int] = field(default_factory=dict)

    def clear(self) -> None:
        """Begin anew; clocks stay."""
        self.is_valid, self.track, self.clock = True, 0, 0
        for kind in _KINDS:
            getattr(self, kind).clear()


class Sequences:
    """The states of all sequences."""

    def __init__(self, texts: Texts, losses: Losses) -> None:
        self._texts = texts
        self._losses = losses
        self._states: dict[int, State] = {}

    def follow(self, packet: Any) -> State | None:
        """The state that a packet is read with, what it adds included; None: it hangs on packets that are lost."""
        state = self._states.get(packet.sequence)
        if state is None:
            state = self._states[packet.sequence] = State()
        elif packet.previous_packet_dropped and not packet.first_packet_on_sequence:
            state.is_valid = False
            self._losses.count("packets_lost", example=f"on the sequence {packet.sequence}")
        flags = packet.sequence_flags
        if flags & _CLEARED or packet.incremental_state_cleared:
            state.clear()
        elif flags & _NEEDS_STATE and not state.is_valid:
            return None
        if packet.HasField("interned_data"):
            self._learn(state, packet.interned_data)
        if packet.HasField("defaults"):
            state.clock = packet.defaults.timestamp_clock_id
            state.track = packet.defaults.track_event.track_uuid
        return state

    def _learn(self, state: State, interned: Any) -> None:
        for kind in _KINDS:
            known = getattr(state, kind)
            for entry in getattr(interned, kind):
                known[entry.iid] = self._texts.number(entry.name)
