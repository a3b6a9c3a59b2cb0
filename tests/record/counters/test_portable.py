"""psutil in the place of /proc, pretended and real."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from tests.record.counters.pretended import pretend, write

from inferometer.record.counters import portable
from inferometer.record.counters.portable import METRICS, Portable


class Times(NamedTuple):
    user: float
    system: float
    idle: float


class Psutil:
    def __init__(self) -> None:
        self.host, self.own, self.bytes = Times(10, 0, 10), SimpleNamespace(user=1.0, system=0.0), 0

    def cpu_times(self) -> Times:
        return self.host

    def virtual_memory(self) -> SimpleNamespace:
        return SimpleNamespace(total=1_000, available=250)

    def disk_io_counters(self) -> SimpleNamespace:
        return SimpleNamespace(read_bytes=self.bytes, write_bytes=2 * self.bytes)

    def net_io_counters(self, pernic: bool) -> dict[str, SimpleNamespace]:
        card = SimpleNamespace(bytes_recv=self.bytes, bytes_sent=self.bytes)
        return {"lo0": card, "en0": card}

    def Process(self, process: int) -> SimpleNamespace:  # noqa: N802  psutil's name
        return SimpleNamespace(cpu_times=lambda: self.own, memory_info=lambda: SimpleNamespace(rss=process))


def test_the_same_metrics_as_on_linux() -> None:
    psutil = Psutil()
    probe = Portable(psutil, 7)
    memory = {"host_mem_usage": 75, "host_mem_available": 250, "process_mem_rss": 7}
    assert probe.read(0) == memory
    psutil.host, psutil.own, psutil.bytes = Times(13, 1, 12), SimpleNamespace(user=1.5, system=1.0), 4
    assert probe.read(2_000_000_000) == memory | {
        "host_cpu_usage": pytest.approx(400 / 6),
        "others_cpu_usage": pytest.approx(250 / 6),
        "process_cpu_usage": 75,
        "disk_read": 2,
        "disk_write": 4,
        "net_rx_rate": 2,
        "net_tx_rate": 2,
    }


def test_where_proc_is_nothing_is_asked_or_said(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/stat": ""})
    place, lacking = pretend(tmp_path)
    assert portable.SOURCE.open(place) == []
    assert lacking == []


def test_the_real_library(tmp_path: Path) -> None:
    pytest.importorskip("psutil", reason="psutil isn't installed")
    (probe,) = portable.SOURCE.open(pretend(tmp_path, process=os.getpid())[0])
    probe.read(0)
    found = probe.read(1_000_000_000)
    assert found.keys() <= {metric.name for metric in METRICS}
    assert (found["process_mem_rss"] or 0) > 1 << 20
