"""Short traces taken for long ones, whose columns are looked at batch by batch and kept lean."""

from pathlib import Path

import pytest

from inferometer.analyses import batches, intervals
from inferometer.trace import checks, lean

ROOT = Path(__file__).parents[1]
REAL = ROOT.parent / "shared" / "data" / "traces"
FILES = (
    *(ROOT / "samples" / name for name in ("decode.json.gz", "nsys.sqlite.gz", "h200/ncu_raw.csv.gz")),
    *sorted(REAL.glob("kineto/*nccl*")),
    *sorted(REAL.glob("kineto/v100_graph_branches*")),
    *sorted(REAL.glob("kineto/mi300_*qwen3*")),
)


def make_long(patch: pytest.MonkeyPatch) -> None:
    """From now on fifty rows are a batch, and every table is large."""
    patch.setattr(batches, "AT_ONCE", 50)
    patch.setattr(intervals, "_MANY", 1)
    patch.setattr(lean, "_AT_ONCE", 50)
    patch.setattr(lean, "LARGE", 0)
    patch.setattr(checks, "LARGE", 0)
