"""What a terminal shows of a large file while the library reads it."""

import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import event, kernel, write_file

from inferometer.commands.base import TraceArgument
from inferometer.commands.options import progress
from inferometer.formats.kineto import sections
from inferometer.formats.kineto.native import sections as native
from inferometer.formats.kineto.native.columns import Decoded
from inferometer.formats.kineto.native.rows import SectionRows

pytestmark = needs_library
OPS, KERNELS = 300, 60


class Terminal:
    """Keeps what is written to `file`."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.file = os.fdopen(slave, "w", encoding="utf-8")
        self._chunks: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def end(self) -> str:
        """All that was written."""
        self.file.close()
        self._thread.join()
        os.close(self._master)
        return b"".join(self._chunks).decode()

    def _listen(self) -> None:
        while chunk := _read(self._master):
            self._chunks.append(chunk)


def _read(file: int) -> bytes:
    try:
        return os.read(file, 1 << 16)
    except OSError:  # its other end was closed
        return b""


@pytest.mark.parametrize("from_bytes", [0, 1 << 30], ids=["in threads", "in one"])
def test_rows_and_kernels_are_shown_before_all_is_read(
    from_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "_EARLY_S", 0.0)
    monkeypatch.setattr(sections, "SECTION_BYTES", 8_000)
    monkeypatch.setattr(native, "FROM_BYTES", from_bytes)
    add = SectionRows.add

    def slowly(self: SectionRows, section: Decoded) -> bool:
        time.sleep(0.12)  # longer than between two pictures
        return add(self, section)

    monkeypatch.setattr(SectionRows, "add", slowly)
    events = [event("cpu_op", f"op {n}", str(n), "1") for n in range(OPS)]
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([*events, *[kernel("gemm", str(n), "1") for n in range(KERNELS)]]))
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.file)
        trace = TraceArgument(str(path)).open({"ops", "launches"}, early=True)
    text = terminal.end()
    counts = [int(count) for count in re.findall(r"So far: (\d+) ops", text)]
    assert trace.ops.collect().height == OPS
    assert counts == sorted(counts)
    assert 0 < counts[0] < OPS
    assert counts[-1] == OPS
    assert f"in {KERNELS} kernels:" in text
