"""What a CPU has free: the system's number, or the room in the process's control group where that is less."""

from pathlib import Path

import pytest

from inferometer.engines.memory import free_bytes, require_memory
from inferometer.errors import Unavailable


def write_system(root: Path, available_kib: int) -> None:
    (root / "proc").mkdir()
    (root / "proc" / "meminfo").write_text(f"MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n")


def write_group(root: Path, most: str, used: int, files: tuple[int, int]) -> None:
    folder = root / "sys" / "fs" / "cgroup"
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\nactive_file {files[0]}\ninactive_file {files[1]}\n")


def test_a_system_alone_says_what_is_available(tmp_path: Path) -> None:
    assert free_bytes("cpu", root=tmp_path) is None
    write_system(tmp_path, 700)
    assert free_bytes("cpu", root=tmp_path) == 700 * 1024


@pytest.mark.parametrize(
    ("most", "used", "files", "free"),
    [
        ("max", 10, (0, 0), 700 * 1024),
        ("1000", 900, (0, 0), 100),
        ("1000", 1000, (300, 200), 500),  # full of pages that can be dropped
        ("9000000", 10, (0, 0), 700 * 1024),
        ("1000", 1000, (0, 0), 0),
    ],
)
def test_a_group_with_less_room_counts(tmp_path: Path, most: str, used: int, files: tuple[int, int], free: int) -> None:
    write_system(tmp_path, 700)
    write_group(tmp_path, most, used, files)
    assert free_bytes("cpu", root=tmp_path) == free


def test_too_much_is_refused_with_both_numbers() -> None:
    with pytest.raises(Unavailable) as error:
        require_memory("a model", 10**17, "cpu")
    assert str(error.value).startswith("a model: expected 100.000 PB on cpu, found ")
    require_memory("a model", 1, "cpu")
