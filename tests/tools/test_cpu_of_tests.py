"""CPU seconds by test file, children's too."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPENDS = """
import subprocess, sys

def test_a():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.5: pass"], check=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read as Linux has them")
def test_what_a_child_takes_counts_for_its_file(tmp_path: Path) -> None:
    (tmp_path / "test_spends.py").write_text(SPENDS)
    (tmp_path / "test_idles.py").write_text("def test_b(): pass\n")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tools.cpu_of_tests",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
    ]
    done = subprocess.run([*words, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    spent = re.findall(r"^ +([\d.]+)  (test_\w+\.py)$", done.stdout, re.MULTILINE)
    assert [file for _, file in spent] == ["test_spends.py", "test_idles.py"]
    assert float(spent[0][0]) >= 0.4
