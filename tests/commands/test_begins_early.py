"""A large file is read from the start on: what the answer needs besides is imported meanwhile."""

import subprocess
import sys
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[2] / "samples/decode.json.gz"
PROGRAM = """
import sys
from inferometer.formats.kineto import ahead

start = ahead.start

def look(source, tables):
    print("imported already:", *sorted({"numpy", "polars"} & sys.modules.keys()), file=sys.stderr)
    start(source, tables)

ahead.start = look
from inferometer.commands.main import main
main(sys.argv[1:])
"""


def test_kernels_are_looked_for_before_polars_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "kernels", SAMPLE, "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "imported already:\n")
