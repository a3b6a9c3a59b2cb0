"""Reports, which only nsys reads: a stand-in for it on PATH."""

import os
from pathlib import Path

import pytest
from tests.nsys_files import export, kernel, write_sqlite
from tests.traces import rows

import inferometer
from inferometer.errors import FormatError, Unavailable


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report, and a PATH on which only the stand-in can be found."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    path = tmp_path / "my report.nsys-rep"
    path.write_bytes(b"\x00\x01binary")
    return path


def install(folder: Path, script: str) -> None:
    nsys = folder / "bin" / "nsys"
    nsys.write_text(f"#!/bin/sh\n{script}\n")
    nsys.chmod(0o755)


def test_nsys_exports_the_report(report: Path) -> None:
    made = write_sqlite(report.parent / "made.sqlite", export(KERNEL=[kernel(0, 5)]))
    # nsys export --type sqlite --force-overwrite true --output TARGET REPORT
    install(report.parent, f'[ "$8" = "{report}" ] && /bin/cat "{made}" > "$7"')
    assert rows(inferometer.open(report), "launches", "dur_ns") == [5]
    assert inferometer.open(report).facts.source == str(report)


def test_without_nsys_the_message_says_what_to_do(report: Path) -> None:
    with pytest.raises(Unavailable, match=r"only nsys can read a report, .*\n  Install .* nsys export --type sqlite"):
        inferometer.open(report)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'version too new' >&2; exit 3", "nsys export ended with 3: version too new"),
        ("exit 0", "nsys export ended with 0: it says nothing"),
        ("printf '\\377\\000'; exit 1", "nsys export ended with 1"),
    ],
)
def test_what_nsys_says_is_passed_on(script: str, message: str, report: Path) -> None:
    install(report.parent, script)
    with pytest.raises(FormatError, match=message):
        inferometer.open(report)


def test_an_nsys_that_can_not_be_run_is_an_error(report: Path) -> None:
    install(report.parent, "")
    (report.parent / "bin" / "nsys").write_bytes(b"\x7fELF nonsense")
    with pytest.raises((FormatError, Unavailable), match="nsys"):
        inferometer.open(report)
    assert os.environ["PATH"] == str(report.parent / "bin")
