"""A Ray cluster that is running already: how to get to it, and how many tasks it has room for."""

import re
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

from inferometer.errors import InputError, Unavailable, printable
from inferometer.units import format_counted

AUTO: Final = "auto"
_ADDRESS: Final = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")
_PATIENCE_S: Final = 10.0
_START: Final = (
    "Start one with `ray start --head`, join it with `ray start --address=HOST:PORT`, and run mine on a node."
)


def join(address: str) -> None:
    """Join the cluster; `AUTO` is that of this machine, or of `RAY_ADDRESS`.

    Raises:
        Unavailable: Ray isn't installed, or doesn't get there.
    """
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise Unavailable("ray is not installed", hint="pip install 'inferometer[fleet]', on every node")
    if address != AUTO:
        _check_answers(address)
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise Unavailable(f"Ray at {address}: expected a cluster of which this machine is a node: {error}",
                          hint=_START) from error  # fmt: skip


def check_address(address: str) -> str:
    """The address, where it may be one.

    Raises:
        InputError: It isn't.
    """
    if address != AUTO and _ADDRESS.fullmatch(address) is None:
        raise InputError(
            f"--ray: expected HOST:PORT, found {printable(address)!r}",
            hint="Without an address, write --ray after the paths: the word after it is taken for one.",
        )
    return address


def _check_answers(address: str) -> None:
    """Ray itself waits for a minute, and then shows a traceback."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        raise Unavailable(f"Ray at {address}: nothing answers: {error}", hint=_START) from error


def room(nodes: Iterable[Mapping[str, Any]], memory_bytes: int) -> int:
    """How many tasks of one CPU and so much memory run at once; `nodes` as `ray.nodes()` has them.

    Raises:
        Unavailable: None.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    count = sum(min(int(each.get("CPU", 0)), int(each.get("memory", 0) // memory_bytes)) for each in alive)
    if not count:
        most = max((each.get("memory", 0) for each in alive if each.get("CPU", 0) >= 1), default=0)
        raise Unavailable(
            f"Ray: expected a node with a CPU and {memory_bytes >> 20:,} MiB for a task, found "
            f"{format_counted(len(alive), 'node')}, the largest with {int(most) >> 20:,} MiB",
            hint="Give --memory less, or nodes more.",
        )
    return count
