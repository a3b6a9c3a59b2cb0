"""Devices from files: ours go out and come back, and what is wrong in a user's is named."""

from pathlib import Path

import msgspec
import pytest

from inferometer.errors import FormatError, InputError
from inferometer.hardware import Device, Quantity, devices, read_device

MINE = """{"name": "my board", "memory_bandwidth":
           {"value": 1.2e12, "unit": "B/s", "kind": "measured", "source": "my copy kernel, 2025-01-15"}}"""


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(MINE, "utf-8")
    source = "my copy kernel, 2025-01-15"
    assert read_device(path) == Device(name="my board", memory_bandwidth=Quantity(1.2e12, "B/s", "measured", source))


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_what_we_have_can_be_written_and_read_again(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "copy.json"
    path.write_bytes(msgspec.json.encode(device))
    assert read_device(str(path)) == device


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a device: Input data was truncated"),
        ("[]", "expected a device: Expected `object`, got `array`"),
        ("{}", "expected a device: Object missing required field `name`"),
        (MINE.replace("1.2e12", '"fast"'), r"Expected `int | float`, got `str` - at `\$.memory_bandwidth.value`"),
        (MINE.replace("1.2e12", "0"), r"expected a value above 0 .*, found 0 - at `\$.memory_bandwidth`"),
        (MINE.replace("1.2e12", "9" * 400), "at most 1e.30, found a greater one"),
        (
            MINE.replace("1.2e12", "1200"),
            "memory_bandwidth: expected 1e.09 to 1e.15 B/s, found 1200: is its unit right",
        ),
        (MINE.replace("B/s", "GB/s"), 'memory_bandwidth: expected the unit "B/s", found "GB/s"'),
        (MINE.replace("measured", "guessed"), r"Invalid enum value 'guessed' - at `\$.memory_bandwidth.kind`"),
        (MINE.replace("memory_bandwidth", "bandwidth"), "unknown field `bandwidth`"),
        (MINE.replace('"source"', '"from"'), r"`\$.memory_bandwidth`"),
        (MINE.replace("my copy kernel, 2025-01-15", ""), "expected a source"),
        ('{"name": "a", "matrix": {"bf17": 1}}', "Invalid enum value 'bf17'"),
        ('{"name": "a", "notes": ' + "[" * 100_000, "expected a device"),
        ("{'name': 'a'}", "malformed"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=message) as refused:
        read_device(path)
    assert refused.value.message.startswith(f"{path}: ")
    assert "--json" in str(refused.value.hint)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b'{"name": "\xff\xfe"}')
    with pytest.raises(FormatError, match=r"mine\.json: expected"):
        read_device(path)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_device(tmp_path / "none.json")
    with pytest.raises(InputError, match="directory"):
        read_device(tmp_path)


def test_a_name_that_no_file_can_have_is_said_so() -> None:
    with pytest.raises(InputError, match="null byte"):
        read_device("a\0b")


def test_a_file_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "mine.json").open("wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(InputError, match="expected at most 1,048,576 bytes, found more"):
        read_device(tmp_path / "mine.json")
