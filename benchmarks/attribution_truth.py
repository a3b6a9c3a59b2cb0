"""How often launches get the right call site, on synthetic Kineto traces of which every launch is known.

    python -m benchmarks.attribution_truth                                  all cases, in about a minute
    python -m benchmarks.attribution_truth --only graph --layers 2 --misses

Chains of ops, chains of modules as the profiler wrote them, and innermost frames are held against the account of
`tools/make_kineto.py`, exactly: one link too few is wrong. Missing is what isn't known, and what is reported of a
replayed kernel by its replay alone. A kernel that no capture has must get nothing; where its twin's record was lost
close by, nobody could tell the two apart, and either answer is reported as it is. Addresses of objects, which frames of
builtins end in, don't count. JSON goes to stdout, a Markdown table to stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from tools.kineto_maker import Chain, LaunchTruth, LaunchTruths, Options, write_trace

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.launched import NEEDED

PARTS: Final = ("ops", "modules", "frame")
_COLUMNS: Final = ("op_chain", "module_recorded", "frame")
_VERDICTS: Final = ("right", "wrong", "missing")
_ARROW: Final = " > "
_MODULE: Final = "nn.Module: "
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_MOST_MISSES: Final = 3  # reported of each part of a row

_EAGER: Final = Options(steps=4)
_GRAPH: Final = Options(steps=8, mode="graph")
_CAPTURE: Final = Options(mode="capture", seed=11)
_BATCHES: Final = (1, 8, 32, 64, 128)
_GRAPHS: Final = replace(_GRAPH, steps=22, batches=_BATCHES)  # 20 replays, four of each graph
_CAPTURES: Final = (replace(_CAPTURE, batches=_BATCHES),)
_EAGER_RUN: Final = replace(_EAGER, seed=11)


@dataclass(frozen=True, slots=True)
class Case:
    """A trace to attribute, and those that its replays may take their call sites from."""

    name: str
    trace: Options
    captures: tuple[Options, ...] = ()


CASES: Final = (
    Case("eager", _EAGER),
    Case("eager, two threads", replace(_EAGER, threads=2)),
    Case("eager, compiled", replace(_EAGER, compiled=True)),
    Case("eager, no stacks", replace(_EAGER, stack=False)),
    Case("captures", replace(_CAPTURE, batches=_BATCHES)),
    Case("graph, eager run", _GRAPH, (_EAGER_RUN,)),
    Case("graph, its capture", _GRAPH, (_CAPTURE,)),
    Case("graph, node ids, its capture", replace(_GRAPH, graph_node_ids=True), (_CAPTURE,)),
    Case("graph, two threads, eager run", replace(_GRAPH, threads=2), (replace(_EAGER_RUN, threads=2),)),
    Case("graph, compiled, its capture", replace(_GRAPH, compiled=True), (replace(_CAPTURE, compiled=True),)),
    Case("5 graphs, eager run", _GRAPHS, (replace(_EAGER_RUN, batches=_BATCHES, steps=5, prefill_every=0),)),
    Case("5 graphs, their captures", _GRAPHS, _CAPTURES),
    Case("5 graphs, captures of 2 others", _GRAPHS, (replace(_CAPTURE, batches=(4, 256)),)),
    Case("5 graphs, 5 % of records lost", replace(_GRAPHS, drop_kernels=0.05), _CAPTURES),
    Case("5 graphs, 20 % of records lost", replace(_GRAPHS, drop_kernels=0.2), _CAPTURES),
    Case("5 graphs, 5 % of kernels added", replace(_GRAPHS, add_kernels=0.05), _CAPTURES),
    Case("5 graphs, 20 % of kernels added", replace(_GRAPHS, add_kernels=0.2), _CAPTURES),
    Case("5 graphs, 10 % lost, 10 % added", replace(_GRAPHS, drop_kernels=0.1, add_kernels=0.1), _CAPTURES),
    Case(
        "5 graphs, node ids, 10 % lost, 10 % added",
        replace(_GRAPHS, graph_node_ids=True, drop_kernels=0.1, add_kernels=0.1),
        _CAPTURES,
    ),
)


class Site(NamedTuple):
    """Chains of ops and of modules, joined, and the innermost frame; None where there is none."""

    ops: str | None
    modules: str | None
    frame: str | None


class Known(NamedTuple):
    """A launch and its right site. `way`: `called`, `captured` without device time, or `replayed` with a graph."""

    stream: int | None
    start_ns: int
    kernel: str
    way: str
    site: Site


@dataclass(slots=True)
class Score:
    """Of the launches of one case that came about in one way: the verdicts on each part, and some misses."""

    case: str
    way: str
    launches: int = 0
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: {part: Counter() for part in PARTS})
    misses: list[str] = field(default_factory=list)

    def add(self, known: Known, row: dict[str, Any]) -> None:
        """Judges what was found of a launch."""
        self.launches += 1
        is_told = row["how"] != "graph_launch"
        for part, column, wanted in zip(PARTS, _COLUMNS, known.site, strict=True):
            verdict = judge(wanted, row[column], is_told=is_told)
            self.verdicts[part][verdict] += 1
            if verdict != "right" and self._missed(part) <= _MOST_MISSES:
                self.misses.append(f"{part} {verdict}: expected {wanted}, found {row[column]} of {known.kernel[:80]}")

    def as_json(self) -> dict[str, Any]:
        """Counts."""
        verdicts = {part: {verdict: counts[verdict] for verdict in _VERDICTS} for part, counts in self.verdicts.items()}
        return {"case": self.case, "way": self.way, "launches": self.launches, **verdicts, "misses": self.misses}

    def _missed(self, part: str) -> int:
        return self.verdicts[part].total() - self.verdicts[part]["right"]


def judge(wanted: str | None, found: str | None, *, is_told: bool) -> str:
    """`right`, `wrong` or `missing`; unless `is_told`, what was found is the replay's, not the kernel's."""
    if wanted == found:
        return "right"
    return "missing" if found is None or not is_told else "wrong"


def run_case(case: Case) -> list[Score]:
    """Makes the case's traces, attributes the first, and judges every launch of it.

    Raises:
        LookupError: The launches found are not those made.
    """
    with TemporaryDirectory() as folder, ExitStack() as opened:
        paths = [Path(folder, f"{number}.json") for number in range(1 + len(case.captures))]
        truth, *_ = [_write(options, path) for options, path in zip((case.trace, *case.captures), paths, strict=True)]
        trace, *captures = [opened.enter_context(inferometer.open(path, NEEDED)) for path in paths]
        each = attribute(trace, captures=captures).each()
        rows = each.select("stream", "start_ns", "kernel", "how", *_COLUMNS).to_dicts()
    scores: dict[str, Score] = {}
    for known, row in _pair(list(_known(truth)), rows):
        scores.setdefault(known.way, Score(case.name, known.way)).add(known, row)
    return list(scores.values())


def table(scores: Iterable[Score]) -> list[str]:
    """A Markdown table, one row per case and way."""
    head = ("case", "way", "launches", "chain of ops", "chain of modules", "innermost frame")
    lines = [f"| {' | '.join(head)} |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for score in scores:
        shown = (_shown(score.verdicts[part], score.launches) for part in PARTS)
        lines.append(f"| {score.case} | {score.way} | {score.launches:,} | {' | '.join(shown)} |")
    return lines


def _write(options: Options, path: Path) -> LaunchTruths:
    with path.open("wb") as file:
        truth = write_trace(options, file, launches=True).by_launch
    assert truth is not None
    return truth


def _known(truth: LaunchTruths) -> Iterator[Known]:
    for launch in truth.launches:
        way = "called" if launch.graph_id is None else "replayed"
        yield Known(launch.stream, launch.start_ns, launch.kernel, way, _site_of(launch))
    for call in truth.captured_calls:
        yield Known(None, call.start_ns, call.kernel, "captured", _site(call.chain))


def _site_of(launch: LaunchTruth) -> Site:
    """That of the call; of a replayed kernel, what stands around it in the captured program, below the replay."""
    outer, inner = launch.chain, launch.captured or Chain()
    return _site(Chain(outer.ops + inner.ops, outer.modules + inner.modules, outer.frames + inner.frames))


def _site(chain: Chain) -> Site:
    frames = [name for name in chain.frames if not name.startswith(_MODULE)]
    frame = _ADDRESS.sub("", frames[-1]) if frames else None
    return Site(_ARROW.join(chain.ops) or None, _ARROW.join(chain.modules) or None, frame)


def _pair(known: list[Known], rows: list[dict[str, Any]]) -> Iterator[tuple[Known, dict[str, Any]]]:
    """What is known of each launch and its row: on a stream, launches are distinguished by their starts."""
    known.sort(key=lambda launch: _place(launch.stream, launch.start_ns))
    rows.sort(key=lambda row: _place(row["stream"], row["start_ns"]))
    if len(known) != len(rows):
        raise LookupError(f"expected {len(known):,} launches, found {len(rows):,}")
    for launch, row in zip(known, rows, strict=True):
        if (launch.stream, launch.start_ns, launch.kernel) != (row["stream"], row["start_ns"], row["kernel"]):
            raise LookupError(
                f"expected {launch.kernel} at {launch.start_ns}, found {row['kernel']} at {row['start_ns']}"
            )
        yield launch, row


def _place(stream: int | None, start_ns: int) -> tuple[int, int]:
    return -1 if stream is None else stream, start_ns


def _shown(verdicts: Counter[str], launches: int) -> str:
    rest = ", ".join(f"{verdicts[name]:,} {name}" for name in _VERDICTS[1:] if verdicts[name])
    return f"{100 * verdicts['right'] / launches:.2f} %" + (f" ({rest})" if rest else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS", help="cases whose name has these words")
    parser.add_argument("--layers", type=int, metavar="N", help="decoder layers of the model (32)")
    parser.add_argument("--misses", action="store_true", help="tell some of what is not right")
    options = parser.parse_args(arguments)
    scores = []
    for case in CASES:
        if options.only in case.name:
            captures = tuple(replace(each, layers=options.layers) for each in case.captures)
            scores.extend(run_case(Case(case.name, replace(case.trace, layers=options.layers), captures)))
    print(json.dumps([score.as_json() for score in scores], indent=1))
    print("\n".join(table(scores)), file=sys.stderr)
    if options.misses:
        print("\n".join(f"- {score.case}: {miss}" for score in scores for miss in score.misses), file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
