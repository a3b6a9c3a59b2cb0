"""Writes a PyTorch-profiler (Kineto) trace of LLM serving that is synthetic, and exactly known.

    make_kineto.py --steps 8 --out trace.json                     eager, stacks and shapes: about 18 MB
    make_kineto.py --steps 218 --out big.json                     about 500 MB, 100,000 kernels
    make_kineto.py --mode graph --graph-node-ids --out graph.json  decode steps replay a CUDA graph
    make_kineto.py --mode capture --batches 1 8 32 --out capture.json  how such graphs came about
    make_kineto.py --slow silu 1.3 --out candidate.json           the same run, one kernel 1.3 times as slow
    make_kineto.py --fault host-late --gz --out late.json.gz      the device waits for Python in every decode step
    make_kineto.py --fault slow-rank --world 2 --rank 1 --out rank1.json  one of two ranks that wait for each other

The same arguments give the same bytes. Times are modelled, not measured.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any, Final, get_args

from kineto_maker import Options, Truth, write_trace
from kineto_maker.faults import FAULTS, Fault
from kineto_maker.options import MODELS, Layout, Marks, Mode

_DEFAULTS: Final = Options()


def main(arguments: list[str] | None = None) -> int:
    """Parses the command line, writes the trace, and the truth where it was asked for. Returns the exit code."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    out: Path = given.pop("out")
    truth_out: Path | None = given.pop("truth")
    launches: bool = given.pop("truth_launches")
    if launches and truth_out is None:
        parser.error("--truth-launches needs --truth FILE")
    mode = "w" if given.pop("force") else "x"
    try:
        options = _options(given)
    except ValueError as error:
        parser.error(str(error))
    try:
        truth = _write(options, out, mode, launches=launches)
        if truth_out is not None:
            with truth_out.open(mode, encoding="utf-8") as file:
                file.write(json.dumps(truth.as_json(), indent=1) + "\n")
    except FileExistsError as error:
        parser.error(f"{error.filename} exists already; --force replaces it")
    print(f"{sum(truth.events.values())} events, {truth.kernels} kernels", file=sys.stderr)
    return 0


def _options(given: dict[str, Any]) -> Options:
    if given["slow"] is not None:
        pattern, factor = given["slow"]
        given["slow"] = (pattern, float(factor))
    given["batches"] = tuple(given["batches"])
    return Options(**given)


def _write(options: Options, out: Path, mode: str, *, launches: bool) -> Truth:
    if str(out) == "-":
        return write_trace(options, sys.stdout.buffer, launches=launches)
    with io.FileIO(out, mode) as raw, io.BufferedWriter(raw, 1 << 20) as file:
        return write_trace(options, file, launches=launches)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the trace; - is stdout")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="what the trace holds, as JSON")
    parser.add_argument(
        "--truth-launches",
        action="store_true",
        help="say in FILE, too, what was open around the call of every launch, and what a replayed kernel is",
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    _add_work(parser.add_argument_group("what runs"))
    _add_host(parser.add_argument_group("how it runs"))
    _add_record(parser.add_argument_group("what is recorded"))
    return parser


def _add_work(group: argparse._ArgumentGroup) -> None:
    default = _DEFAULTS
    group.add_argument("--steps", type=int, default=default.steps, metavar="N")
    group.add_argument("--model", choices=list(MODELS), default=default.model)
    group.add_argument("--layers", type=int, metavar="N", help="decoder layers (the model's own number)")
    group.add_argument(
        "--batch", type=int, default=default.batch, metavar="N", help="requests in a decode step (%(default)s)"
    )
    group.add_argument(
        "--prefill-every",
        type=int,
        default=default.prefill_every,
        metavar="N",
        help="steps 0, N, 2N... are prefill; 0: none is (%(default)s)",
    )
    group.add_argument("--rank", type=int, default=default.rank, metavar="R")
    group.add_argument(
        "--world", type=int, default=default.world, metavar="W", help="GPUs that share the model (%(default)s)"
    )
    group.add_argument("--lockstep", action="store_true", help="ranks wait for each other in collectives")
    group.add_argument("--seed", type=int, default=default.seed, metavar="S")
    group.add_argument(
        "--slow", nargs=2, metavar=("REGEX", "FACTOR"), help="kernels that match take FACTOR times as long"
    )
    group.add_argument(
        "--fault",
        choices=get_args(Fault),
        default=default.fault,
        help="; ".join(f"{name}: {planted.words}" for name, planted in FAULTS.items()).replace("%", "%%"),
    )
    group.add_argument(
        "--fault-ms",
        type=float,
        default=default.fault_ms,
        metavar="MS",
        help="how long host-late works in a step (%(default)s)",
    )


def _add_host(group: argparse._ArgumentGroup) -> None:
    default = _DEFAULTS
    group.add_argument(
        "--mode",
        choices=get_args(Mode),
        default=default.mode,
        help="eager, or graph: decode steps replay a graph; capture: no steps, but a HIP profile of the graphs' capture"
        " (%(default)s)",
    )
    group.add_argument(
        "--batches",
        type=int,
        nargs="+",
        default=default.batches,
        metavar="N",
        help="decode steps take these batch sizes in turn; of a capture, the graphs, whatever --steps says."
        " Tiles of GEMMs depend on them",
    )
    group.add_argument("--compiled", action="store_true", help="the model of decode steps went through torch.compile")
    group.add_argument(
        "--threads", type=int, default=default.threads, metavar="N", help="2: a second one launches work, too"
    )


def _add_record(group: argparse._ArgumentGroup) -> None:
    default = _DEFAULTS
    group.add_argument("--no-stack", dest="stack", action="store_false", help="no Python frames")
    group.add_argument("--lean", action="store_true", help="no Python calls of some 100 ns: a smaller file")
    group.add_argument("--no-shapes", dest="shapes", action="store_false", help="no arguments of ops")
    group.add_argument("--graph-node-ids", action="store_true", help="replayed kernels say which graph node they are")
    group.add_argument(
        "--drop-kernels",
        type=float,
        default=default.drop_kernels,
        metavar="SHARE",
        help="so many of the replayed kernels run, but have no record",
    )
    group.add_argument(
        "--add-kernels",
        type=float,
        default=default.add_kernels,
        metavar="SHARE",
        help="so many more kernels are replayed than were captured",
    )
    group.add_argument("--marks", choices=get_args(Marks), default=default.marks, help="names of steps (%(default)s)")
    group.add_argument("--layout", choices=get_args(Layout), default=default.layout, help="of the text (%(default)s)")
    group.add_argument("--gz", action="store_true", help="compress with gzip, without a time in the header")


if __name__ == "__main__":
    sys.exit(main())
