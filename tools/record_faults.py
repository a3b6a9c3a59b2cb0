"""Records pairs of runs on this machine's CPU, the second of which has a known fault, and trims them to samples.

    record_faults.py record cpu_contention --out FOLDER               FOLDER/cpu_contention-0/{normal,fault}.ifm
    record_faults.py record cpu_quota --repeat 3 --seconds 12 --out FOLDER
    record_faults.py campaign --repeat 3 --nulls 20 --out FOLDER      every fault; goes on where it was ended
    record_faults.py toggle cpu_contention --out FOLDER               FOLDER/cpu_contention-toggled-0/run.ifm
    record_faults.py trim FOLDER/cpu_contention-0 samples/recorded/cpu_contention --seconds 6

The program is a small decoder with random weights, as `inferometer record` sees it. Nothing is made up: a fault is a
thing that is really done to the program or next to it, or a change of the program itself; `fault_recorder/faults.py`
lists them with what `compare` should say, and `python -m benchmarks.recorded_faults FOLDER` asks whether it does. Needs
Linux, torch and `taskset`; a quota needs a control group that may be made.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fault_recorder.faults import FAULTS
from fault_recorder.program import Program, run_program
from fault_recorder.recording import record_pair
from fault_recorder.toggling import record_toggled
from fault_recorder.trimming import trim_pair


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and does what it says. Returns the exit code."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    if given.kind == "work":
        run_program(Program(**given.program), given.seconds, given.place)
    elif given.kind == "trim":
        trim_pair(given.pair, given.out, given.seconds)
    elif given.kind == "toggle":
        print(record_toggled(given.fault, given.out, times=given.times, on_s=given.on, off_s=given.off))
    else:
        wanted = [given.fault] * given.repeat if given.kind == "record" else _lacking(given)
        for name in wanted:
            print(record_pair(name, given.out, given.seconds), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    record = kinds.add_parser("record", help="record pairs of one fault")
    record.add_argument("fault", choices=FAULTS)
    campaign = kinds.add_parser("campaign", help="record pairs of every fault, in turns")
    campaign.add_argument("--nulls", type=int, default=20, help="pairs of normal runs")
    for each, repeat in ((record, 1), (campaign, 3)):
        each.add_argument("--out", type=Path, required=True, help="a folder on the disk in question")
        each.add_argument("--seconds", type=float, default=10.0, help="of steps, in each run")
        each.add_argument("--repeat", type=int, default=repeat, help="pairs of a fault")
    trim = kinds.add_parser("trim", help="make a pair small, and drop names of the machine")
    trim.add_argument("pair", type=Path)
    trim.add_argument("out", type=Path)
    trim.add_argument("--seconds", type=float, default=6.0, help="of steps, in each run")
    toggle = kinds.add_parser("toggle", help="record one run in which a fault comes and goes")
    toggle.add_argument("fault", choices=FAULTS)
    toggle.add_argument("--out", type=Path, required=True, help="a folder on the disk in question")
    toggle.add_argument("--times", type=int, default=3, help="how often it comes")
    toggle.add_argument("--on", type=float, default=6.0, help="seconds with it")
    toggle.add_argument("--off", type=float, default=8.0, help="seconds without it, before, between and after")
    work = kinds.add_parser("work", help="the recorded program; `record` starts it")
    work.add_argument("--seconds", type=float, required=True)
    work.add_argument("--place", type=Path, required=True, help="a folder for its files")
    work.add_argument("--program", type=json.loads, required=True, help="fields of Program, as JSON")
    return parser


def _lacking(given: argparse.Namespace) -> Iterator[str]:
    """The faults in turns, and between them the pairs of normal runs, without those that are there."""
    faulty = [name for name in FAULTS if name != "none"]
    nulls = 0
    for round_ in range(given.repeat):
        for at, name in enumerate(faulty):
            if not (given.out / f"{name}-{round_}" / "truth.json").exists():
                yield name
            due = given.nulls * (round_ * len(faulty) + at + 1) // (given.repeat * len(faulty))
            for null in range(nulls, due):
                if not (given.out / f"none-{null}" / "truth.json").exists():
                    yield "none"
            nulls = due


def _end(*_: object) -> None:
    """What runs next to is ended on the way out, and the control group removed."""
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
