"""What begins with the import of torch may wait for threads that import it, too: PyTorch does so for every range."""

import subprocess
import sys
from pathlib import Path

from inferometer.record import torch_watch

PROGRAM = """
import runpy, sys, threading
Watch = runpy.run_path(sys.argv[1])["Watch"]

def begin():
    other = threading.Thread(target=lambda: __import__("torch"), daemon=True)
    other.start()
    other.join(30)
    print("waits for ever" if other.is_alive() else "goes on")

Watch(begin).watch()
import torch
print(torch.whole, torch.__spec__._initializing)
"""


def test_another_thread_may_import_torch_while_the_recording_begins(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("whole = True\n")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, program, torch_watch.__file__], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["goes on", "True False"]
