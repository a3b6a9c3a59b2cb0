"""Writes what rocprofv3 would write of a program on AMD GPUs that is synthetic, and exactly known.

    make_rocprof.py --dispatches 600 --out run.json                JSON of ROCm 7, two processes
    make_rocprof.py --dispatches 450000 --out big.json             about 300 MB
    make_rocprof.py --release 6.3 --out old.json                   no streams, and a key twice in one object
    make_rocprof.py --out run.db                                   a rocpd database with two runs
    make_rocprof.py --format csv --out folder                      CSV files
    make_rocprof.py --schema 4.1 --out new.db                      the same, of schema 4.1 as far as it is known

The same arguments give the same file; the truth goes to stdout as JSON. Times are modelled, not measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.rocprof_maker.csv_folder import write_csv
from tools.rocprof_maker.json_file import write_json
from tools.rocprof_maker.program import Options, run_program, truth_of
from tools.rocprof_maker.rocpd_file import write_rocpd


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the file")
    parser.add_argument("--dispatches", type=int, default=60)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--no-counters", action="store_true")
    parser.add_argument("--release", default="7.0", choices=("6.3", "7.0"), help="of ROCm, for JSON")
    parser.add_argument("--format", choices=("csv",), help="a folder of CSV files; others by the ending")
    parser.add_argument("--schema", default="3.0.0", choices=("3.0.0", "4.1"), help="of a database")
    given = parser.parse_args()
    options = Options(given.dispatches, given.processes, given.gpus, counters=not given.no_counters)
    runs = run_program(options)
    if given.format == "csv":
        write_csv(runs, options, given.out, release=given.release)
    elif given.out.suffix == ".db":
        write_rocpd(runs, options, given.out, schema=given.schema)
    else:
        write_json(runs, options, given.out, release=given.release)
    print(json.dumps(truth_of(runs)))


if __name__ == "__main__":
    main()
