"""What the files of a pretended Linux say of load, clocks and others."""

import os

import pytest

from inferometer.hardware.measure.load import HostLoad, read_text
from inferometer.processes import own_cores

SECOND = 100 * (os.cpu_count() or 1)  # ticks of all cores


def stat(busy: int, idle: int) -> str:
    """user nice system idle iowait irq softirq steal guest guest_nice"""
    return f"cpu  {busy} 0 0 {idle} 0 0 0 0 {busy} 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"


def process(user: int, system: int) -> str:
    fields = ["R", *["0"] * 10, str(user), str(system), "0", "0", "20"]
    return f"7 (a) very strange na) me) {' '.join(fields)}"


def test_load_and_runnable_tasks() -> None:
    load = HostLoad(read={"/proc/loadavg": "0.52 0.58 0.59 3/602 4711\n"}.get)
    assert load.state() == {"load": 0.52, "runnable": 3}


def test_others_are_what_is_busy_and_not_ours() -> None:
    files = {"/proc/stat": stat(1_000, 5_000), "/proc/7/stat": process(100, 20)}
    load = HostLoad(own=(7,), read=files.get)
    assert load.state() == {}
    files |= {
        "/proc/stat": stat(1_000 + SECOND // 2, 5_000 + SECOND // 2),
        "/proc/7/stat": process(100 + SECOND // 4, 20),
    }
    assert load.state() == {"others_share": pytest.approx((SECOND // 2 - SECOND // 4) / (SECOND // 2 * 2))}
    assert load.state() == {}  # no second has passed


def test_a_process_that_began_later_is_ours_too() -> None:
    files, own = {"/proc/stat": stat(1_000, 5_000)}, set[int]()
    load = HostLoad(own, read=files.get)
    load.state()
    own.add(7)
    files |= {"/proc/stat": stat(1_000 + SECOND, 5_000), "/proc/7/stat": process(SECOND, 0)}
    assert load.state() == {"others_share": 0}


def test_a_process_that_ended_keeps_what_it_took() -> None:
    files = {"/proc/stat": stat(1_000, 5_000), "/proc/7/stat": process(500, 0)}
    load = HostLoad(own=(7,), read=files.get)
    load.state()
    del files["/proc/7/stat"]
    files["/proc/stat"] = stat(1_000, 5_000 + SECOND)
    assert load.state() == {"others_share": 0}


def test_clocks_are_those_of_cpufreq_else_of_cpuinfo() -> None:
    cpufreq = {f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq": f"{core}000000\n" for core in (1, 2, 3)}
    info = {"/proc/cpuinfo": "processor : 0\ncpu MHz\t\t: 2596.122\nprocessor : 1\ncpu MHz\t\t: 2596.122\n"}
    ticks = {"/proc/stat": stat(0, 1)}
    assert HostLoad(cores=(1, 2, 3), read=(cpufreq | info | ticks).get).state() == {"core_clock_hz": 2e9}
    assert HostLoad(cores=(0,), read=(info | ticks).get).state() == {"core_clock_hz": 2_596_122_000}


def test_what_isnt_there_is_left_out() -> None:
    assert HostLoad(read=lambda path: None).state() == {}
    assert HostLoad(read=lambda path: "?").state() == {}
    assert read_text("/nowhere/at/all") is None


def test_this_machine_answers() -> None:
    if read_text("/proc/stat") is None:
        pytest.skip("needs /proc, which this system lacks")
    found = HostLoad(own=(os.getpid(),)).state()
    assert found["load"] >= 0
    assert own_cores()
