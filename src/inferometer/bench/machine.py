"""The device that candidates run on: what it is called, what its caches hold, which versions run there."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from inferometer.bench.conditions import open_gpu
from inferometer.hardware.device import Device


@dataclass(frozen=True)
class Machine:
    """Where candidates run.

    Attributes:
        on: As torch calls it: `cpu`, `cuda:0`.
        name: As its maker does.
        versions: Of Python, of packages, of the driver.
        cache_bytes: The last cache of a CPU; None: unknown, or a GPU, whose driver reports.
        device: What is known of a GPU with this name; None: nothing, or a CPU.
    """

    on: str
    name: str
    versions: dict[str, str]
    cache_bytes: int | None = None
    device: Device | None = None

    @property
    def is_cpu(self) -> bool:
        """Whether times are functional only."""
        return self.on == "cpu"


def describe_machine(on: str, packages: Sequence[str]) -> Machine:
    """The device that torch calls `on`, which must be there."""
    import torch

    versions = {"python": platform.python_version(), **_versions(("torch", "triton", *packages))}
    if on == "cpu":
        from inferometer.hardware.measure.host import read_host

        host = read_host()
        return Machine(on, host.name, versions, host.cache_bytes)
    from inferometer.hardware.known import find_device

    properties = torch.cuda.get_device_properties(on)
    toolkit = ("cuda", torch.version.cuda) if torch.version.cuda else ("rocm", torch.version.hip)
    versions |= {toolkit[0]: str(toolkit[1])}
    gpu = open_gpu(on)
    driver = None if gpu is None else gpu.driver()
    versions |= {} if driver is None else {"driver": driver}
    known = find_device(
        properties.name, multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory
    )
    place = on if ":" in on else f"{on}:{torch.cuda.current_device()}"
    return Machine(place, properties.name, versions, device=known)


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in dict.fromkeys(packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
