"""Side files are plain files of bounded size; nothing waits for a pipe, and no device is read without end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inferometer.errors import InputError
from inferometer.side_files import read_side_file

COMMANDS = [
    ("leaderboard", "{path}"),
    ("operators", "rms_norm", "--hardware-file", "{path}"),
]


def test_a_file_and_a_link_to_one_are_read_up_to_a_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("a")
    assert read_side_file(tmp_path / "a", most=4) == read_side_file(tmp_path / "link") == b"1234"
    with pytest.raises(InputError, match="a: expected at most 3 bytes, found more"):
        read_side_file(tmp_path / "a", most=3)


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "expected a file, found a pipe"),
        ("/dev/zero", "expected a file, found a device"),
        (tmp_path, "Is a directory"),
        (tmp_path / "no", "No such file"),
        ("a\0b", "null"),
        (tmp_path / "pipe" / "x", "Not a dir"),
    ):
        with pytest.raises(InputError, match=why):
            read_side_file(path)


def test_a_pipe_of_the_command_line_is_read_and_a_device_is_not(tmp_path: Path) -> None:
    first, second = os.pipe()
    os.write(second, b"1234")
    os.close(second)
    assert read_side_file(f"/dev/fd/{first}", pipe=True) == b"1234"
    os.close(first)
    with pytest.raises(InputError, match="expected a file, found a device"):
        read_side_file("/dev/zero", pipe=True)
    os.mkfifo(tmp_path / "pipe")  # nobody writes into it
    assert read_side_file(tmp_path / "pipe", pipe=True) == b""


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_commands_refuse_an_endless_file(words: tuple[str, ...]) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "inferometer", *(word.format(path="/dev/zero") for word in words)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "/dev/zero: expected a file, found a device" in done.stderr
