"""AMD's agents (CPUs and GPUs) as devices: the same fields in JSON, in rocpd's `extdata` and in the CSV of agents.

GPUs are numbered from 0 as HIP numbers them where none is hidden (`logical_node_type_id`), CPUs are all `cpu`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from inferometer.formats.json_text.records import Int64
from inferometer.formats.rocprof.records import convert_fields
from inferometer.trace.facts import Device
from inferometer.trace.losses import Losses

_GPU = (2, "2", "gpu")
CPU = "cpu"


class MemoryBank(msgspec.Struct, gc=False):
    """One bank of an agent's memory."""

    size_in_bytes: Int64 | None = None


class Agent(msgspec.Struct, gc=False):
    """An agent as rocprofiler describes it; `local_mem_size` is 0 there, the banks hold the size."""

    type: int | str | None = None
    name: str | None = None
    product_name: str | None = None
    node_id: Int64 | None = None
    logical_node_id: Int64 | None = None
    logical_node_type_id: Int64 | None = None
    gpu_index: Int64 | None = None
    gfx_target_version: Int64 | None = None
    cu_count: Int64 | None = None
    wave_front_size: Int64 | None = None
    mem_banks: list[MemoryBank] = []

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU: a number in JSON, a word in CSV and rocpd."""
        return (self.type.lower() if isinstance(self.type, str) else self.type) in _GPU


def name_devices(agents: Mapping[int, Agent]) -> dict[int, str]:
    """`gpu:N` or `cpu` for each agent, by the key under which rows name it."""
    numbered, devices = 0, {}
    for key, agent in agents.items():
        if not agent.is_gpu:
            devices[key] = CPU
            continue
        known = (agent.logical_node_type_id, agent.gpu_index)
        number = next((number for number in known if number is not None and number >= 0), numbered)
        devices[key] = f"gpu:{number}"
        numbered += 1
    return devices


def describe_devices(agents: Mapping[int, Agent]) -> list[Device]:
    """The GPUs among the agents."""
    names = name_devices(agents)
    return [_describe(names[key], agent) for key, agent in agents.items() if agent.is_gpu]


def join_devices(several: Iterable[list[Device]]) -> tuple[Device, ...]:
    """Those of all processes, each once, in the order of their numbers."""
    found: dict[str, Device] = {}
    for devices in several:
        for device in devices:
            found.setdefault(device.device, device)
    return tuple(sorted(found.values(), key=lambda device: (len(device.device), device.device)))


def convert_agent(fields: Mapping[str, Any]) -> Agent:
    """An agent from parsed JSON, or from a row of CSV; a field of an unexpected type is left out."""
    return convert_fields(fields, Agent, Losses(), "agents")


def _describe(device: str, agent: Agent) -> Device:
    memory_bytes = sum(bank.size_in_bytes or 0 for bank in agent.mem_banks)
    return Device(
        device,
        name=agent.product_name or agent.name or None,
        memory_bytes=memory_bytes if 0 < memory_bytes < 2**63 else None,
        multiprocessors=agent.cu_count or None,
        compute_capability=_capability(agent.gfx_target_version),
        warp_size=agent.wave_front_size or None,
        target=agent.name if agent.name and agent.name.startswith("gfx") else None,
    )


def _capability(version: int | None) -> str | None:
    """90402 is 9.4.2, which PyTorch calls compute 9.4."""
    return f"{version // 10_000}.{version // 100 % 100}" if version and version > 0 else None
