"""One run of a log: its clock, and what its lines say of it."""

from dataclasses import dataclass, field
from typing import Any

from inferometer.formats.webgpu_log.reports import Report, Title

Key = tuple[str | None, str | None]
"""Whose lines these are: the name that another tool put in front, and the relay's tag."""
_RESULT = ("result", "command", "passed", "failed", "duration_ns")
_MOST_METRICS = 200
_MOST_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """What stays of a report when its rows are handed over. `part` counts the `[Perf]` lines before it.

    `context` and `wall_ns` as in `Title`.
    """

    phase: str | None
    tokens: int | None
    time_ns: int | None
    busy_ns: int | None
    part: int
    context: int | None = None
    wall_ns: int | None = None


@dataclass
class Run:
    """One run: its clock, and what its lines say."""

    key: Key | None
    number: int | None = None
    began_at: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    offset_ns: int = 0
    is_over: bool = False
    title: Title | None = None
    texts: set[str] = field(default_factory=set)
    steps: list[LoggedStep] = field(default_factory=list)
    last_report: Report | None = None
    perfs: list[tuple[int | None, dict[str, Any]]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    printed: dict[str, Any] = field(default_factory=dict)
    closings: set[str] = field(default_factory=set)

    @property
    def model(self) -> str | None:
        """Its name as printed; by the harness first, which has it for sure."""
        return next((self.names[who] for who in ("result", "loader", "cache", "progress") if who in self.names), None)

    @property
    def device(self) -> str | None:
        """The adapter's name."""
        return self.names.get("gpu")

    @property
    def is_finished(self) -> bool:
        """Whether its result, times and rates were printed."""
        return self.closings >= {"result", "times", "rates"}

    @property
    def is_empty(self) -> bool:
        """Whether it has no reports and no end of an answer."""
        return not self.steps and not self.perfs

    def may_be_of(self, other: "Run") -> bool:
        """Whether its lines can be the other's: the same tag or none, and nothing is reported twice."""
        return (
            (self.key in (other.key, None) or other.key is None or self.key == (other.key[0], None))
            and not self.closings & other.closings
            and not self.texts & other.texts
            and self.metrics.keys().isdisjoint(other.metrics)
            and self.printed.keys().isdisjoint(other.printed)
        )

    def take_over(self, other: "Run") -> None:
        """Keep what the other says as this run's."""
        for mine, theirs in ((self.metrics, other.metrics), (self.printed, other.printed)):
            mine.update(theirs)
        self.names = {**other.names, **self.names}
        self.closings |= other.closings

    def note(self, kind: str | None, fields: dict[str, Any], time_ns: int | None) -> None:
        """Keep what a line says."""
        if kind == "metrics":
            self._note_metrics(fields)
        elif kind == "perf" and fields:
            self.perfs.append((time_ns, fields))
        elif kind == "result":
            self.closings.add("result")
            self._keep({key: fields[key] for key in _RESULT if key in fields})
            self._name("result", fields.get("model"))
        elif kind == "gpu":
            self._name("gpu", fields.get("name"))
            self._keep({key: fields[key] for key in ("features", "adapter_limit_bytes") if key in fields})
        elif kind == "model":
            self._keep({key: value for key, value in fields.items() if key != "kernel_path"})
        elif fields:
            self._note_others(kind, fields, time_ns)

    def _note_others(self, kind: str | None, fields: dict[str, Any], time_ns: int | None) -> None:
        stamped = fields | ({} if time_ns is None else {"time_ns": time_ns})
        if kind == "kernel_path":
            self._keep({"kernel_path": fields})
        elif kind == "tokenizer":
            self._keep(
                fields if "model_vocab" in fields else {"tokenizer": fields, "tokenizer_vocab": fields["tokens"]}
            )
        elif kind == "recorder":
            self._keep({"query_set_limit": fields})
        elif kind == "memory":
            self._append("memory", stamped)
        elif kind == "loader" and "what" in fields:
            self._append("loads", stamped)
            if "shape" in fields:
                self._keep({fields["what"]: {key: fields[key] for key in ("name", "shape") if key in fields}})
        elif kind == "loader":
            self._name("loader", fields.get("model"))
        elif kind == "cache":
            self._name("cache", fields.get("name"))
        elif kind == "progress":
            self._name("progress", fields.get("modelUrl", "").rstrip("/").rsplit("/", 1)[-1])

    def _note_metrics(self, fields: dict[str, Any]) -> None:
        if any(key.endswith("_tokens_per_s") for key in fields):
            self.closings.add("rates")
        if fields.keys() & {"ttft_ns", "decode_ns"}:
            self.closings.add("times")
        for key, value in fields.items():
            if len(self.printed) < _MOST_METRICS:
                self.printed[key] = value

    def _name(self, who: str, name: str | None) -> None:
        if name:
            self.names.setdefault(who, name)

    def _keep(self, fields: dict[str, Any]) -> None:
        for key, value in fields.items():
            self.metrics.setdefault(key, value)

    def _append(self, key: str, entry: dict[str, Any]) -> None:
        entries = self.metrics.setdefault(key, [])
        if isinstance(entries, list) and len(entries) < _MOST_ENTRIES:
            entries.append(entry)

    def as_metrics(self) -> dict[str, Any]:
        """Its plain data; what the metrics say of themselves never replaces what other lines gave."""
        perf = {"perf": self.perfs[-1][1]} if self.perfs else {}
        return {**self.printed, **self.metrics, **perf}
