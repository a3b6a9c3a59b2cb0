"""What rocprofv3's JSON says of one process besides its records: who it is, its agents, kernels and names."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.json_text.values import some_text, whole_number
from inferometer.formats.rocprof.agents import Agent, convert_agent, name_devices
from inferometer.formats.rocprof.records import Counter, Names, RangeText, Symbol
from inferometer.privacy.metadata import Search, search_metadata
from inferometer.trace.losses import Losses

_KERNEL_SCHEMA = {"kernel_id": pl.Int64, "kernel": pl.String, **dict.fromkeys(("vgpr", "agpr", "sgpr"), pl.Int64)}


@dataclass
class Process:
    """One element of the file's array. `command` and `config` of its metadata are never kept, only searched."""

    pid: int | None = None
    host: str | None = None
    agents: dict[int, Agent] = field(default_factory=dict)
    counters: dict[int, str] = field(default_factory=dict)
    private: Search = field(default_factory=Search)
    _kinds: list[Names] = field(default_factory=list)
    _texts: dict[int, str] = field(default_factory=dict)
    _symbols: dict[int, Symbol] = field(default_factory=dict)

    def take(self, key: str, text: bytes, losses: Losses) -> None:
        """A small field of the process."""
        try:
            value = msgspec.json.decode(text)
            if key == "metadata":
                self._take_metadata(value)
            elif key == "agents":
                self._take_agents(value)
            elif key == "counters":
                found = msgspec.convert(value, list[Counter])
                self.counters |= {
                    each.id.handle: each.name for each in found if each.name and each.id.handle is not None
                }
            elif key == "buffer_records":
                self._kinds = msgspec.convert(value, list[Names])
        except (*BAD_JSON, AttributeError, TypeError) as error:
            losses.count("unreadable_header", category=key, example=str(error)[:100])

    def take_symbols(self, symbols: list[Symbol]) -> None:
        """Kernels by their id."""
        self._symbols |= {each.kernel_id: each for each in symbols if each.kernel_id is not None}

    def take_texts(self, texts: list[RangeText]) -> None:
        """Texts of ROCTx ranges by their correlation id."""
        self._texts |= {each.key: each.value for each in texts if each.key is not None and each.value is not None}

    def devices(self) -> pl.DataFrame:
        """`gpu:N` by the handle of an agent."""
        names = name_devices(self.agents)
        return pl.DataFrame(
            {"agent": list(names), "device": list(names.values())}, schema={"agent": pl.Int64, "device": pl.String}
        )

    def kernels(self) -> pl.DataFrame:
        """Name and registers by kernel id."""
        rows = [
            (number, each.name, each.arch_vgpr_count, each.accum_vgpr_count, each.sgpr_count)
            for number, each in self._symbols.items()
        ]
        return pl.DataFrame(rows, schema=_KERNEL_SCHEMA, orient="row")

    def operation(self, kind: int | None, operation: int | None) -> str | None:
        """What kind and operation are called; their numbers change with the release."""
        if kind is None or operation is None or not 0 <= kind < len(self._kinds):
            return None
        names = self._kinds[kind].operations
        return names[operation] if 0 <= operation < len(names) else None

    def range_text(self, correlation: int | None) -> str | None:
        """The text of a ROCTx record."""
        return None if correlation is None else self._texts.get(correlation)

    def _take_metadata(self, value: Any) -> None:
        self.private = search_metadata("metadata", value)
        self.pid = whole_number(value.get("pid"))
        node = value.get("node")
        host = node.get("hostname") if isinstance(node, dict) else None
        self.host = some_text(host)

    def _take_agents(self, value: Any) -> None:
        for each in value:
            key = whole_number(each.get("id", {}).get("handle"))
            if key is not None:
                self.agents[key] = convert_agent(each)
