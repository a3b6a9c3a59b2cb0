"""Reports, which only ncu reads: a stand-in for it on PATH; and what ncu says when it counts nothing."""

from pathlib import Path

import pytest
from tests.formats.ncu.test_reader import HEAD, opened
from tests.ncu_files import RAW, in_locale

import inferometer
from inferometer.errors import FormatError, Unavailable


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report, and a PATH on which only the stand-in can be found."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    path = tmp_path / "my report.ncu-rep"
    path.write_bytes(b"NVR\x00binary")
    return path


def install(folder: Path, script: str) -> None:
    ncu = folder / "bin" / "ncu"
    ncu.write_text(f"#!/bin/sh\n{script}\n")
    ncu.chmod(0o755)


def test_ncu_prints_the_report(report: Path) -> None:
    page = report.parent / "page"
    page.write_text(in_locale(RAW))
    # ncu --import REPORT --csv --page raw --print-units base
    install(report.parent, f'[ "$1 $3 $5 $7 $LC_ALL" = "--import --csv raw base C" ] || exit 1; '
                           f'[ "$2" = "{report}" ] && /bin/cat "{page}"')  # fmt: skip
    trace = inferometer.open(report)
    assert trace.kernel_counters.collect().equals(inferometer.open(RAW).kernel_counters.collect())
    assert trace.facts.source == str(report)


def test_without_ncu_the_message_has_the_command(report: Path) -> None:
    with pytest.raises(Unavailable, match=r"only ncu can read a report, .*\n  Install .* ncu --import .* --page raw"):
        inferometer.open(report)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo '==ERROR== no report'; exit 3", "ncu --import ended with 3: ==ERROR== no report"),
        ("echo 'too new' >&2; exit 1", "ncu --import ended with 1: too new"),
        ("exit 1", "ncu --import ended with 1: it says nothing"),
        ("exit 0", "expected rows of launches below the header of ncu, found none"),
    ],
)
def test_what_ncu_says_is_passed_on(script: str, message: str, report: Path) -> None:
    install(report.parent, script)
    with pytest.raises(FormatError, match=message):
        inferometer.open(report)


def test_counters_that_the_user_may_not_read_are_explained(tmp_path: Path) -> None:
    text = (
        "==PROF== Connected to process 7 (/usr/bin/python3)\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters.\n"
        "==PROF== Disconnected from process 7\n"
    )
    with pytest.raises(FormatError, match=r"ncu says: ERR_NVGPUCTRPERM - The user .*\n  This user may not read"):
        opened(tmp_path, text)
    with pytest.raises(FormatError, match="found none\n  Export it again"):
        opened(tmp_path, f"{HEAD},a\n")
