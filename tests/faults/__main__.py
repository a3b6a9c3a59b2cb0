"""Writes a case as a pair of LatencyPrism folders, packed, to be looked at with `inferometer compare`.

python -m tests.faults fault/cpu_clock/medium/as_published FOLDER
"""

import gzip
import sys
from pathlib import Path

from tests.faults.csv_folders import write_pair
from tests.faults.grid import CASES
from tests.faults.pairs import make_pair


def main(name: str, folder: str) -> None:
    """Write the case of that name below the folder, which must not exist."""
    case = next(case for case in CASES if case.name == name)
    write_pair(make_pair(case, case.seed), Path(folder))
    for path in sorted(Path(folder).rglob("*.csv")):
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
