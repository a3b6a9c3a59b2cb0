"""What the files of a pretended Linux say through each source, in the units that it declares."""

from pathlib import Path

import pytest
from tests.record.counters.pretended import pretend, stat_of, write

from inferometer.errors import Unavailable
from inferometer.record.counters import (
    cpu_quota,
    cpu_waits,
    host_clock,
    host_cpu,
    host_disk,
    host_memory,
    host_network,
    pressure,
    process,
)
from inferometer.record.counters.metric import CounterSource, Reading, SystemRoots

Files = dict[str, str]


def readings(
    source: CounterSource, root: Path, *files: Files, place: SystemRoots | None = None, seconds: float = 1.0
) -> list[Reading]:
    """All metrics of a source, once for each state of the files, so many seconds apart."""
    write(root, files[0])
    probes = source.open(place or pretend(root)[0])
    found: list[Reading] = []
    for i, state in enumerate(files):
        write(root, state)
        found.append(
            {metric: value for probe in probes for metric, value in probe.read(round(i * seconds * 1e9)).items()}
        )
    return found


def stat(busy: int, idle: int, *, steal: int = 0, switches: int = 0, running: int = 1) -> Files:
    lines = f"cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 5 6 7\n"
    return {
        "/proc/stat": f"{lines}ctxt {switches}\nbtime 1\nprocesses 9\nprocs_running {running}\nprocs_blocked 0\n",
        "/proc/loadavg": "0.52 0.58 0.59 3/602 4711\n",
    }


def test_load_by_others_is_what_is_busy_and_not_ours(tmp_path: Path) -> None:
    taken = {7: 500_000_000}
    place, _ = pretend(tmp_path, cpu_ns=taken)
    write(tmp_path, stat(1_000, 5_000))
    cpu, load = host_cpu.SOURCE.open(place)
    assert cpu.read(0) == {"run_queue": 1}
    assert load.read(0) == {"load_average": 0.52}
    assert load.read(10) == {}
    write(tmp_path, stat(1_150, 5_040, steal=10, switches=300, running=4))
    taken[7] += 800_000_000
    assert cpu.read(1_000_000_000) == {
        "host_cpu_usage": 80,  # 160 of 200 ticks, with what the hypervisor took
        "others_cpu_usage": 40,  # 80 ticks are ours
        "host_cpu_steal": 5,
        "process_cpu_usage": pytest.approx(80),
        "host_context_switches": 300,
        "run_queue": 4,
    }


def test_more_than_the_host_counted_is_no_load_by_others(tmp_path: Path) -> None:
    taken = {7: 0}
    place, _ = pretend(tmp_path, cpu_ns=taken)
    write(tmp_path, stat(0, 0))
    cpu, _ = host_cpu.SOURCE.open(place)
    cpu.read(0)
    write(tmp_path, stat(9, 11))
    taken[7] = 100_000_000
    assert cpu.read(100_000_000)["others_cpu_usage"] == 0


def test_a_counter_that_goes_back_is_null(tmp_path: Path) -> None:
    first, second = (stat(10, 10, switches=n) for n in (500, 400))
    assert readings(host_cpu.SOURCE, tmp_path, first, second)[1]["host_context_switches"] is None


def test_clocks_are_those_of_cpufreq_else_of_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_clock, "own_cores", lambda: frozenset({1, 2, 5}))
    info = {"/proc/cpuinfo": "".join(f"processor : {i}\ncpu MHz\t\t: {2_000 + i}.5\n" for i in range(4))}
    assert readings(host_clock.SOURCE, tmp_path, info) == [{"cpu_frequency": 2_002, "cpu_frequency_least": 2_001.5}]
    khz = {1: 3_000_000, 2: 800_000, 5: 2_900_000}
    scaled = {f"/sys/devices/system/cpu/cpu{i}/cpufreq/scaling_cur_freq": f"{each}\n" for i, each in khz.items()}
    assert readings(host_clock.SOURCE, tmp_path, info | scaled) == [
        {"cpu_frequency": 2_900, "cpu_frequency_least": 800}
    ]


def test_no_clock_is_said(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/cpuinfo": "processor : 0\n"})
    with pytest.raises(Unavailable, match="no clock of a core"):
        host_clock.SOURCE.open(pretend(tmp_path)[0])


def test_a_thread_that_could_run_and_waits(tmp_path: Path) -> None:
    own = "/proc/7/task"
    write(tmp_path, {"/proc/7/schedstat": "1 1 1", f"{own}/7/schedstat": "1000 500 10", f"{own}/8/schedstat": "0 0 0"})
    (probe,) = cpu_waits.SOURCE.open(pretend(tmp_path)[0])
    assert probe.read(0) == {}
    write(tmp_path, {f"{own}/7/schedstat": "1600 700 14", f"{own}/8/schedstat": "100 100 1"})
    assert probe.read(500_000_000) == {"runq_share": 0.3, "process_context_switches": 10}
    assert probe.read(900_000_000) == {"process_context_switches": 0}  # nothing ran and nothing waited: no share


def test_many_threads_are_read_less_often(tmp_path: Path) -> None:
    threads = {f"/proc/7/task/{i}/schedstat": f"{i} 0 1" for i in range(60)}
    write(tmp_path, {"/proc/7/schedstat": "1 1 1"} | threads)
    (probe,) = cpu_waits.SOURCE.open(pretend(tmp_path)[0])
    assert [bool(probe.read(ms * 1_000_000)) for ms in (0, 40, 80, 120, 160)] == [False, False, True, False, True]


def test_a_thread_that_begins_or_ends_meanwhile(tmp_path: Path) -> None:
    own = "/proc/7/task"
    write(tmp_path, {"/proc/7/schedstat": "1 1 1", f"{own}/7/schedstat": "100 0 1"})
    place, _ = pretend(tmp_path)
    (probe,) = cpu_waits.SOURCE.open(place)
    probe.read(0)
    write(tmp_path, {f"{own}/9/schedstat": "5000 5000 1"})
    assert probe.read(1_500_000_000)["process_context_switches"] == 0  # seen from here on
    write(tmp_path, {f"{own}/9/schedstat": "5100 5300 2", f"{own}/7/schedstat": "gone"})
    assert probe.read(2_000_000_000)["runq_share"] == 0.75


@pytest.mark.parametrize(
    ("groups", "path", "unit"),
    [
        ("3:cpu,cpuacct:/run\n0::/\n", "/sys/fs/cgroup/cpu,cpuacct/run/cpu.stat", "throttled_time {}000"),
        ("3:cpu,cpuacct:/docker/abc\n", "/sys/fs/cgroup/cpu/cpu.stat", "throttled_time {}000"),
        ("0::/user/run\n", "/sys/fs/cgroup/user/run/cpu.stat", "throttled_usec {}"),
        ("0::/user/run\n", "/sys/fs/cgroup/cpu.stat", "throttled_usec {}"),
    ],
)
def test_a_quota_that_holds_the_process_back(tmp_path: Path, groups: str, path: str, unit: str) -> None:
    def state(periods: int, held: int, us: int) -> Files:
        text = f"nr_periods {periods}\nnr_throttled {held}\n{unit.format(us)}\n"
        return {"/proc/7/cgroup": groups, path: text}

    found = readings(cpu_quota.SOURCE, tmp_path, state(10, 1, 5), state(20, 6, 400_005), state(20, 6, 3_000_000))
    assert found == [
        {},
        {"cpu_limited_share": 0.4, "cpu_limited_periods": 0.5},
        {"cpu_limited_share": 1},  # of several cores; and no period ended
    ]


def test_a_group_that_tells_of_no_quota_is_said(tmp_path: Path) -> None:
    write(tmp_path, {"/proc/7/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.stat": "usage_usec 5\n"})
    with pytest.raises(Unavailable, match="quota"):
        cpu_quota.SOURCE.open(pretend(tmp_path)[0])


def test_memory_and_swapping(tmp_path: Path) -> None:
    memory = {"/proc/meminfo": "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nSwapTotal: 0 kB\n"}
    first, second = (
        memory | {"/proc/vmstat": f"nr_free_pages 1\npswpin {n}\npswpout 0\nxpswpin 9\npgmajfault {2 * n}\n"}
        for n in (1, 4)
    )
    found = readings(host_memory.SOURCE, tmp_path, first, second)
    size = {"host_mem_available": 400 * 1024, "host_mem_usage": pytest.approx(60)}
    assert found == [size, size | {"swap_in": 3 * 4096, "swap_out": 0, "host_major_faults": 6}]


def disks(read: int, written: int, busy_ms: int) -> Files:
    line = f"1 0 {read} 5 1 0 {written} 5 0 {busy_ms} 9 0 0"
    names = ("sda", "sda1", "dm-0", "loop0", "nvme0n1")
    return {
        "/proc/diskstats": "".join(f"  8  {i} {name} {line}\n" for i, name in enumerate(names)),
        **{f"/sys/block/{name}/size": "1" for name in ("sda", "dm-0", "loop0", "nvme0n1")},
    }


def test_traffic_of_whole_disks_and_of_others(tmp_path: Path) -> None:
    own = [{"/proc/7/io": f"rchar: 9\nread_bytes: {n}\nwrite_bytes: {2 * n}\n"} for n in (0, 1_000)]
    found = readings(host_disk.SOURCE, tmp_path, disks(0, 0, 0) | own[0], disks(2, 4, 250) | own[1])
    assert found == [
        {},
        {
            "disk_read": 2 * 2 * 512,
            "disk_write": 2 * 4 * 512,
            "process_disk_read": 1_000,
            "process_disk_write": 2_000,
            "others_disk_read": 2_048 - 1_000,
            "others_disk_write": 4_096 - 2_000,
            "disk_util": 25,
        },
    ]


def test_own_traffic_that_is_forbidden_is_said_and_the_disks_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, lacking = pretend(tmp_path)
    read = place.files.read

    def refuse(path: str) -> str:
        if path.endswith("/io"):
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(place.files, "read", refuse)
    found = readings(host_disk.SOURCE, tmp_path, disks(0, 0, 0), disks(1, 1, 0), place=place)
    assert found[1] == {"disk_read": 1_024, "disk_write": 1_024, "disk_util": 0}
    assert set(lacking) == {"host_disk: /proc/7/io is forbidden: own traffic isn't known"}


def network(received: int, sent: int) -> Files:
    line = f"{received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0"
    names = ("lo", "eth0", "veth1")
    return {"/proc/net/dev": "Inter-| Receive\n face |bytes\n" + "".join(f"  {name}:{line}\n" for name in names)}


def test_the_network_without_the_loopback(tmp_path: Path) -> None:
    found = readings(host_network.SOURCE, tmp_path, network(0, 0), network(100, 20), seconds=0.5)
    assert found[1] == {"net_rx_rate": 400, "net_tx_rate": 80}
    write(tmp_path, {"/sys/class/net/eth0/device/vendor": "1"})  # hardware: what passes through veth1 is the same
    found = readings(host_network.SOURCE, tmp_path, network(0, 0), network(100, 20), seconds=0.5)
    assert found[1] == {"net_rx_rate": 200, "net_tx_rate": 40}


def test_pressure_is_a_share_of_the_time(tmp_path: Path) -> None:
    def state(us: int) -> Files:
        some, full = (
            f"{word} avg10=0.00 avg60=0.00 avg300=0.00 total={n}\n" for word, n in (("some", us), ("full", us // 2))
        )
        return {"/proc/pressure/cpu": some + full, "/proc/pressure/io": some + full}

    assert readings(pressure.SOURCE, tmp_path, state(0), state(500_000)) == [
        {},
        {"cpu_pressure": 0.5, "io_pressure": 0.5, "io_pressure_full": 0.25},
    ]
    (tmp_path / "proc/pressure/cpu").unlink()
    (tmp_path / "proc/pressure/io").unlink()
    with pytest.raises(Unavailable, match="pressure"):
        pressure.SOURCE.open(pretend(tmp_path)[0])


def test_own_memory_and_faults(tmp_path: Path) -> None:
    states = [
        {"/proc/7/stat": stat_of(minor=n, major=1, threads=3, name="a) b ("), "/proc/7/statm": "90 10 5 1 0 4 0"}
        for n in (100, 150)
    ]
    found = readings(process.SOURCE, tmp_path, *states)
    size = {"process_mem_rss": 40_960, "process_threads": 3, "process_count": 1, "cpu_stopped": 0}
    assert found == [size, size | {"process_minor_faults": 50, "process_major_faults": 0}]


def test_a_process_that_a_signal_stopped(tmp_path: Path) -> None:
    size = {"/proc/7/statm": "90 10 5 1 0 4 0"}
    going, stopped = ({"/proc/7/stat": stat_of(state=state)} for state in "RT")
    found = readings(process.SOURCE, tmp_path, size | going, size | stopped)
    assert [each["cpu_stopped"] for each in found] == [0, 1]
