"""A process that uses a driver's LLVM and then Triton's goes on."""

import subprocess
import sys

import pytest

from inferometer.engines.webgpu.run import driver_order


def test_triton_may_be_imported_after_adapters_were_listed() -> None:
    pytest.importorskip("wgpu", reason="wgpu isn't installed")
    pytest.importorskip("triton", reason="triton isn't installed")
    program = (
        "from inferometer.engines.webgpu.run.adapters import find_adapter\n"
        "from inferometer.errors import Unavailable\n"
        "try:\n    find_adapter()\nexcept Unavailable:\n    pass\n"
        "import triton\nprint('both')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr


def test_nothing_is_loaded_where_there_is_no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.setattr(driver_order, "find_spec", lambda name: None)
    monkeypatch.setattr("ctypes.CDLL", lambda path: pytest.fail(f"loaded {path}"))
    driver_order.load_triton_first()
