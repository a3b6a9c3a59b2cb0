"""The library under the compiler's checks: nothing is found in it, and what is planted is found."""

import shutil
from pathlib import Path

import pytest
from tests.fuzz.native import __main__ as checked

from inferometer.formats.kineto.native import build

needs_checks = pytest.mark.skipif(not checked.find_runtime(), reason="no compiler here has checks of memory")
SECONDS = 2.0


def build_of(folder: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The library of sources in which a piece of `json.h` is another."""
    shutil.copytree(build.FOLDER, folder, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    source = folder / "json.h"
    assert source.read_text().count(old) == 1
    source.write_text(source.read_text().replace(old, new))
    monkeypatch.setattr(build, "FOLDER", folder)
    return build.build(checked.OPTIONS, folder / "checked.so")


@needs_checks
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("DEEPEST = 32;", "DEEPEST = 32 ;", 0),
        ("return at_ == end_ ? '\\0' : *at_;", "return *at_;", 1),
    ],
    ids=["as it is", "with a byte read behind the text"],
)
def test_the_checks_find_what_is_planted_and_nothing_else(
    old: str, new: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    library = build_of(tmp_path / "sources", old, new, monkeypatch)
    assert checked.run(library, checked.find_runtime(), SECONDS, seed=3) == code
    told = capfd.readouterr()
    assert ("AddressSanitizer" in told.err) == bool(code)
    assert ("were decoded" in told.out) != bool(code)
