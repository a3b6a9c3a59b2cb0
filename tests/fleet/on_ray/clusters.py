"""A Ray cluster of two nodes on this machine, each a process with its own session: nothing else is ever ended."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_ENVIRONMENT: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_enable_metrics_collection": "0"}
_NODE: Final = (
    *("--block", "--disable-usage-stats", "--num-cpus=1", f"--memory={8 << 30}", f"--object-store-memory={80 << 20}"),
    *("--min-worker-port=0", "--max-worker-port=0"),  # any that is free
)
_FIRST, _SECOND = (f"--node-ip-address=127.0.0.{number}" for number in (1, 2))  # both are loopback


class Cluster:
    """`address` of the cluster; its nodes, the head first."""

    def __init__(self, folder: Path) -> None:
        self._port, client = _free_ports(2)
        self.address = f"127.0.0.1:{self._port}"
        self._folder = folder
        head = ["--head", f"--port={self._port}", "--include-dashboard=false", f"--temp-dir={folder}", _FIRST]
        if find_spec("grpc"):  # where Ray's client is installed, its server would take a port of its own choice
            head.append(f"--ray-client-server-port={client}")
        self.nodes = [self._start(*head)]
        self.nodes.append(self._start(f"--address={self.address}", _SECOND))

    def add_node(self) -> None:
        """Start one more, in place of the last."""
        self.nodes[1:] = [self._start(f"--address={self.address}", _SECOND)]

    def working(self) -> list[int]:
        """Processes of Ray that are reading something just now."""
        sessions = {node.pid for node in self.nodes}
        return [pid for pid in _pids() if _session(pid) in sessions and _title(pid).startswith("ray::read")]

    def end(self, node: "subprocess.Popen[str]") -> None:
        """Kill all processes of a node at once, as a machine that fails."""
        for pid in _pids():
            if _session(pid) == node.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        node.wait()
        if node.stdout is not None:
            node.stdout.close()

    def _start(self, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", *_NODE, *arguments],
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "Ray runtime started" in line:
                return process
        self.end(process)
        raise AssertionError("".join(said))


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        for node in cluster.nodes:
            cluster.end(node)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
