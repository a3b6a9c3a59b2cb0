"""What is next to the events in a Kineto file: devices, ranks, versions, the clock's base."""

from collections import Counter
from typing import Any

import msgspec

from inferometer.formats.json_text.values import whole_number
from inferometer.privacy.metadata import Names, is_worth_searching, join_names, search_metadata
from inferometer.trace.facts import Device, Facts, NamedId
from inferometer.trace.losses import Losses
from inferometer.trace.private import count_secrets

KEEP_BYTES = 4 << 20
_RECORDED = {
    "record_shapes": "shapes",
    "with_stack": "stacks",
    "with_modules": "modules",
    "with_flops": "flops",
    "profile_memory": "memory",
}
_VERSIONS = (
    "cupti_version",
    "cuda_runtime_version",
    "cuda_driver_version",
    "roctracer_version",
    "hip_runtime_version",
    "hip_driver_version",
    "schemaVersion",
)
KEYS = frozenset({*_RECORDED, *_VERSIONS, "deviceProperties", "distributedInfo", "baseTimeNanoseconds"})
_SIGNS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "traceName", "trace_id"})


class FileHeader:
    """Collects the fields of one or more trace objects and the names that metadata events give."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self.keys: set[str] = set()
        self.rank: int | None = None
        self.ranks: list[int] = []
        self._world_size: int | None = None
        self._devices: dict[str, Device] = {}
        self._clock_base_ns: int | None = None
        self._recorded: dict[str, bool] = {}
        self._versions: dict[str, str] = {}
        self.processes: dict[int | None, NamedId] = {}
        self.threads: dict[tuple[int | None, int | None], NamedId] = {}
        self.hosts: set[str] = set()
        self.others: Counter[str] = Counter()  # events by category that are neither launches nor of the host
        self.names = Names()

    def name_thread(self, process: int | None, thread: int | None, name: str | None) -> None:
        """A metadata event named a thread."""
        self.threads[process, thread] = NamedId(process, thread, name=name)

    def name_process(self, process: int | None, name: str | None, label: str | None) -> None:
        """A metadata event named or labelled a process."""
        old = self.processes.get(process, NamedId(process))
        self.processes[process] = NamedId(process, name=name or old.name, label=label or old.label)

    def name_text_id(self, number: int, text: str, *, is_process: bool) -> None:
        """A process or thread whose id is text got a number."""
        if is_process:
            self.processes.setdefault(number, NamedId(number, name=text))
        else:
            self.threads.setdefault((None, number), NamedId(None, number, name=text))

    @property
    def is_kineto(self) -> bool:
        """Whether the fields met so far are those that the PyTorch profiler writes."""
        return not _SIGNS.isdisjoint(self.keys)

    @property
    def saw_no_device(self) -> bool:
        """Whether the profiler says that the machine has none."""
        return "deviceProperties" in self.keys and not self._devices

    def take(self, key: str, text: bytes | None) -> None:
        """One field; `text` is None when it was too large to keep. Any field is searched for secrets."""
        self.keys.add(key)
        if text is None:
            name = "unreadable_header" if key in KEYS else "field_not_searched"
            self._losses.count(name, category=key, example=f"larger than {KEEP_BYTES >> 20} MiB")
            return
        if is_worth_searching(text):
            self._search(key, text)
        if key not in KEYS:
            return
        try:
            self._take(key, msgspec.json.decode(text))
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
            self._losses.count("unreadable_header", category=key, example=str(error)[:100])

    def _search(self, key: str, text: bytes) -> None:
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            value = text.decode("utf-8", "replace")
        names = count_secrets(self._losses, search_metadata(key, value))
        self.names = join_names((self.names, names))

    def _take(self, key: str, value: Any) -> None:
        if key == "deviceProperties":
            for i, properties in enumerate(value):
                device = _device(i, properties)
                self._devices[device.device] = device
        elif key == "distributedInfo":
            self._take_distributed(value)
        elif key == "baseTimeNanoseconds":
            self._clock_base_ns = whole_number(int(value))
        elif key in _RECORDED:
            self._recorded[_RECORDED[key]] = bool(value)
        elif key in _VERSIONS:
            self._versions[key] = str(value)

    def _take_distributed(self, value: dict[str, Any]) -> None:
        rank = whole_number(value.get("rank"))
        if rank is not None:
            self.rank = rank
            self.ranks.append(rank)
        self._world_size = whole_number(value.get("world_size")) or self._world_size
        if "nccl_version" in value:
            self._versions["nccl"] = str(value["nccl_version"])

    def facts(self, source: str, format_name: str, *, has_launches: bool = True) -> Facts:
        """Everything as facts of the trace; what else there was, where there are no launches."""
        kineto = self.is_kineto
        return Facts(
            format=format_name,
            source=source,
            tool="PyTorch profiler (Kineto)" if kineto else "Chrome trace",
            tool_version=None,
            framework="PyTorch" if kineto else None,
            hosts=tuple(sorted(self.hosts)),
            devices=tuple(self._devices.values()),
            ranks=tuple(dict.fromkeys(self.ranks)),
            world_size=self._world_size,
            processes=tuple(sorted(self.processes.values(), key=_by_ids)),
            threads=tuple(sorted(self.threads.values(), key=_by_ids)),
            clock_base_ns=self._clock_base_ns,
            recorded=self._recorded,
            versions=self._versions,
            other_events={} if has_launches else dict(self.others),
        )


def _by_ids(named: NamedId) -> tuple[int, int]:
    return named.process or 0, named.thread or 0


def _device(position: int, properties: dict[str, Any]) -> Device:
    def number(name: str) -> int | None:
        return whole_number(properties.get(name))

    name = properties.get("name")
    number_of = number("id")
    major, minor = number("computeMajor"), number("computeMinor")
    return Device(
        device=f"gpu:{position if number_of is None else number_of}",
        name=name if isinstance(name, str) and name.strip() else None,
        memory_bytes=number("totalGlobalMem"),
        multiprocessors=number("numSms"),
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
        warp_size=number("warpSize"),
    )
