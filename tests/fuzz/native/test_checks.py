"""The library under the compiler's checks: nothing is found in it, and what is planted is found."""

import shutil
from pathlib import Path

import pytest
from tests.fuzz.native import __main__ as checked

from inferometer.formats.native import build

needs_checks = pytest.mark.skipif(not checked.find_runtime(), reason="no compiler here has checks of memory")
TEXTS, TEXTS_FOR_A_FAULT = 2_000, 20_000  # what is planted is found in 100 to 3,200, by the seed


def build_of(folder: Path, source: str, old: str, new: str) -> Path:
    """The library of sources in one of which a piece is another."""
    for each in build.find_sources(build.FORMATS):
        copied = folder / each.relative_to(build.FORMATS)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(each, copied)
    changed = folder / source
    assert changed.read_text().count(old) == 1
    changed.write_text(changed.read_text().replace(old, new))
    return build.build(checked.OPTIONS, folder / "checked.so", folder)


@needs_checks
@pytest.mark.parametrize(
    ("source", "old", "new", "code"),
    [
        ("kineto/native/json.h", "DEEPEST = 32;", "DEEPEST = 32 ;", 0),
        ("kineto/native/json.h", "return at_ == end_ ? '\\0' : *at_;", "return *at_;", 1),
        ("databases/native/rows.h", "needed_ <= here - header && all_ == payload - header", "true", 1),
    ],
    ids=["as it is", "with a byte read behind the text", "with a value read behind its record"],
)
def test_the_checks_find_what_is_planted_and_nothing_else(
    source: str, old: str, new: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library = build_of(tmp_path / "sources", source, old, new)
    assert checked.run(library, checked.find_runtime(), 3, texts=TEXTS_FOR_A_FAULT if code else TEXTS) == code
    told = capfd.readouterr()
    assert ("AddressSanitizer" in told.err) == bool(code)
    assert ("were decoded" in told.out) != bool(code)
