"""`inferometer hardware` as users meet it."""

import csv
import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import kernel, write_file

from inferometer.hardware import devices

NAMES = [device.name for device in devices()]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    gpu = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_018_279_936, "numSms": 132}
    head = {"schemaVersion": 1, "deviceProperties": [gpu]}
    path.write_bytes(write_file([kernel("gemm", "100", "10", correlation=1)], before=head))
    return path


def test_every_device_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("hardware", capsys=capsys)
    assert (code, err) == (0, "")
    assert [name for name in NAMES if name not in out] == []
    assert "Bandwidth (GB/s)" in out
    assert "Peaks are dense" in out


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_tables_for_programs_have_exact_numbers(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("hardware", f"--{form}", capsys=capsys)
    rows = list(csv.DictReader(out.splitlines(), delimiter="," if form == "csv" else "\t"))
    assert [row["Device"] for row in rows] == NAMES
    (row,) = [row for row in rows if row["Device"] == "H100 SXM"]
    assert (row["Memory (GiB)"], row["Bandwidth (GB/s)"], row["BF16 (TFLOP/s)"]) == ("80.0", "3350.0", "989.4")


def test_markdown_is_one_table_with_notes(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("hardware", "--markdown", capsys=capsys)
    assert "| RTX 4090 | 24.0 | 1008.0 | 165.2 | 330.3 | 82.6 | - | 31.5 |" in out


def test_json_has_every_value_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("hardware", "--json", capsys=capsys)
    listed = json.loads(out)["devices"]
    assert [device["name"] for device in listed] == NAMES
    (h100,) = [device for device in listed if device["name"] == "H100 SXM"]
    assert h100["link"] == {
        "value": 450e9,
        "unit": "B/s",
        "kind": "derived",
        "source": "NVIDIA H100 Tensor Core GPU, datasheet: 900 GB/s both ways, halved",
    }


def test_one_device_shows_its_facts_with_sources(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("hardware", "nvidia h100 80gb hbm3", capsys=capsys)
    assert code == 0
    for words in ("H100 SXM", "bf16 peak, matrix units", "989.4", "TFLOP/s", "whitepaper", "measured", "1,830 MHz"):
        assert words in out


@pytest.mark.parametrize(
    ("name", "message"),
    [("H100", '"H100" may be several devices: H100 NVL, H100 PCIe, H100 SXM'), ("MI300Y", "nearest first: MI300X")],
)
def test_a_name_that_means_no_single_device_is_refused(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("hardware", name, capsys=capsys)
    assert (code, out) == (3, "")
    assert message in err


def test_the_devices_of_a_trace_are_told(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("hardware", "--of", trace_file, capsys=capsys)
    assert code == 0
    assert "H100 SXM" in out
    _, out, _ = run("hardware", "--of", trace_file, "--json", capsys=capsys)
    (row,) = json.loads(out)["devices"]
    assert (row["traced"]["device"], row["launches"], row["device"]["name"]) == ("gpu:0", 1, "H100 SXM")


def test_a_device_that_json_printed_can_be_edited_and_given_back(
    tmp_path: Path, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, printed, _ = run("hardware", "H100 SXM", "--json", capsys=capsys)
    mine = tmp_path / "mine.json"
    mine.write_text(printed.replace('"name": "H100 SXM"', '"name": "my node"'), "utf-8")
    _, out, _ = run("hardware", "--hardware-file", mine, "--csv", capsys=capsys)
    names = [row["Device"] for row in csv.DictReader(out.splitlines())]
    assert names == ["my node", *(name for name in NAMES if name != "H100 SXM")]
    _, out, _ = run("hardware", "my node", "--hardware-file", mine, "--json", capsys=capsys)
    assert json.loads(out)["power"]["value"] == 700
    _, out, _ = run("hardware", "--of", trace_file, "--hardware-file", mine, capsys=capsys)
    assert "my node" in out


def test_a_device_file_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text('{"name": "a", "memory": {"value": 80, "unit": "GB", "kind": "measured", "source": "x"}}', "utf-8")
    code, out, err = run("hardware", "--hardware-file", mine, capsys=capsys)
    assert (code, out) == (3, "")
    assert f'error: {mine}: expected a device: memory: expected the unit "B", found "GB"' in err
    code, _, err = run("hardware", "--hardware-file", tmp_path / "none.json", capsys=capsys)
    assert code == 3
    assert "No such file" in err


def test_a_name_and_a_trace_together_are_refused(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("hardware", "H20", "--of", trace_file, capsys=capsys)
    assert code == 2
    assert "mutually exclusive" in err


def test_measuring_writes_a_file_that_device_file_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    code, out, err = run("hardware", "--measure", "--quick", "--on", "cpu", capsys=capsys)
    assert (code, err) == (0, "")
    for words in ("fp32 peak, vector units", "launch of an empty kernel", "TFLOP/s", "on 20"):
        assert words in out
    (file,) = tmp_path.iterdir()
    assert f"File      {file.name}" in out
    name = json.loads(file.read_bytes())["name"]
    code, out, _ = run("hardware", name, "--hardware-file", file, "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out) == {"schema": {"name": "device", "version": 1}, **json.loads(file.read_bytes())}


def test_a_measured_file_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text("precious", "utf-8")
    words = ("hardware", "--measure", "--quick", "--on", "cpu", "-o", mine)
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (3, "")
    assert "already exists" in err
    assert mine.read_text("utf-8") == "precious"
    assert "is no device file" in run(*words, "--force", capsys=capsys)[2]
    assert mine.read_text("utf-8") == "precious"
    mine.write_text('{"name": "old", "vendor": "me"}', "utf-8")
    code, out, _ = run(*words, "--force", "--json", capsys=capsys)
    assert code == 0
    printed = json.loads(out)
    assert printed["device"] == json.loads(mine.read_bytes())
    assert printed["file"] == str(mine)


def test_what_cannot_be_measured_is_refused_before_any_time_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, code, message in (
        (("-o", tmp_path / "none" / "mine.json", "--on", "cpu"), 3, "no such folder"),
        (("-o", tmp_path, "--force", "--on", "cpu"), 3, "is a folder"),
        (("--on", "tpu"), 3, 'expected cpu, gpu or gpu:1 to measure on, found "tpu"'),
        (("--on", "gpu:9999"), 4, "torch"),
        (("H20",), 2, "the device at hand"),
    ):
        found, out, err = run("hardware", "--measure", *words, capsys=capsys)
        assert (found, out) == (code, "")
        assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--quick",), ("--on", "cpu"), ("-o", "x.json"), ("--force",)])
def test_options_of_measuring_want_measure(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("hardware", *words, capsys=capsys)
    assert code == 2
    assert "--measure" in err
