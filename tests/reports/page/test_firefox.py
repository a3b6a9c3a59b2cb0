"""The page in Firefox, where there is one: charts, the bar and flame graphs have their colours, light and dark."""

import shutil
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest
from tests.reports.page.page_parts import bars

from inferometer.reports.page.blocks import Block, Slice, Stack
from inferometer.reports.page.document import render_page
from inferometer.reports.page.tree_boxes import ALL, GROUND, Box, icicle

FIREFOX = shutil.which("firefox") or shutil.which("firefox-esr")
WIDTH = 800

pytestmark = pytest.mark.skipif(FIREFOX is None, reason="needs firefox or firefox-esr on PATH")


def colors(png: bytes) -> Counter[tuple[int, ...]]:
    """How many pixels there are of each colour: of PNG with 8 bits per channel, not interlaced."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        packed += png[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    raw = zlib.decompress(packed)
    found: Counter[tuple[int, ...]] = Counter()
    above = bytearray(width * size)
    for row in range(height):
        begin = row * (width * size + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + width * size])
        _unfilter(raw[begin], line, above, size)
        found.update(tuple(line[n : n + 3]) for n in range(0, len(line), size))
        above = line
    return found


def _unfilter(kind: int, line: bytearray, above: bytearray, size: int) -> None:
    """PNG, 9.2: each byte is stored as its difference to a neighbour, or to a guess from three of them."""
    for n in range(len(line)):
        left = line[n - size] if n >= size else 0
        corner = above[n - size] if n >= size else 0
        guesses = (0, left, above[n], (left + above[n]) // 2, _paeth(left, above[n], corner))
        line[n] = (line[n] + guesses[kind]) & 0xFF


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda each: abs(guess - each))


@pytest.mark.parametrize(
    ("theme", "bar", "slice_", "ground"),
    [
        ("light", (200, 89, 10), (15, 138, 108), (255, 255, 255)),
        ("dark", (255, 154, 82), (63, 201, 162), (20, 22, 26)),
    ],
)
def test_what_is_drawn_has_its_colour(
    theme: str, bar: tuple[int, ...], slice_: tuple[int, ...], ground: tuple[int, ...], tmp_path: Path
) -> None:
    stack = Stack("Bar", "One part.", [Slice("all", "1 ms", 1.0, "var(--series-3)")])
    top = Box(ALL, "", "all", "all", "1 ms", GROUND, 100)
    tree = icicle("Tree", "a is all.", [top, Box("a", ALL, "a", "a", "1 ms", "var(--faster-3)", 100)], {}, 1)
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    blocks = [Block("kernels", "Kernels", [bars(["gemm"]), stack, tree])]
    path.write_text(render_page(blocks, title="run", theme=theme).html, "utf-8")  # type: ignore[arg-type]
    assert FIREFOX is not None
    command: list[str | Path] = [
        FIREFOX,
        "--headless",
        "--no-remote",
        "--profile",
        tmp_path,
        f"--window-size={WIDTH},700",
    ]
    subprocess.run([*command, "--screenshot", picture, path.as_uri()], check=True, capture_output=True, timeout=120)
    found = colors(picture.read_bytes())
    assert found[bar] > 2_000
    assert found[slice_] > 500 * 20
    assert found.most_common(1)[0][0] == ground
    change = (47, 111, 208) if theme == "light" else (140, 186, 255)
    assert found[change] > 500 * 15


def test_the_reader_of_pictures_knows_all_filters() -> None:
    """The same picture under each filter."""
    rows = [bytes([1, 2, 3, 4, 5, 6]), bytes([9, 8, 7, 6, 5, 4])]
    expected = Counter({(1, 2, 3): 1, (4, 5, 6): 1, (9, 8, 7): 1, (6, 5, 4): 1})
    for kind in range(5):
        above, packed = bytes(6), b""
        for row in rows:
            stored = []
            for n, byte in enumerate(row):
                left, corner = (row[n - 3], above[n - 3]) if n >= 3 else (0, 0)
                guess = (0, left, above[n], (left + above[n]) // 2, _paeth(left, above[n], corner))[kind]
                stored.append((byte - guess) & 0xFF)
            packed += bytes([kind, *stored])
            above = row
        head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBBI", 13, b"IHDR", 2, 2, 8, 2, 0, 0, 0, 0)
        data = zlib.compress(packed)
        assert colors(head + struct.pack(">I4s", len(data), b"IDAT") + data + b"\0\0\0\0") == expected
