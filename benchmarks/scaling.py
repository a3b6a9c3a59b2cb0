"""How every command's cost grows with its input: Kineto files of both modes, Nsight Systems exports, engines' logs.

Which commands there are is asked of the registry: one that reads a file and has no case here ends the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.answers import (
    Answer,
    check_calls,
    check_compare,
    check_compare_of_start,
    check_export,
    check_families,
    check_findings,
    check_groups,
    check_import,
    check_kernels,
    check_names,
    check_report,
    check_spans,
    check_sql,
    check_steps,
    check_summary,
    check_timeline,
    read_peer,
)
from benchmarks.cases import REPETITIONS_PEER, TOOL, Case, Point, ours, peer
from benchmarks.site_answers import (
    check_captured,
    check_launches,
    check_launches_by_span,
    check_replay,
    check_roofline,
    check_tree,
)
from benchmarks.suite import Suite
from benchmarks.trace_files import (
    TraceFile,
    Truth,
    know_more,
    make_export,
    make_log,
    make_names,
    make_trace_file,
)

_LABELS: Final = ("start", "small", "middle", "large")
_LAYERS: Final = "--layers 1"
_MODES: Final = {"eager": "", "graph": "--mode graph --graph-node-ids"}
_CHANGES: Final = {"eager": "--slow silu 6", "graph": "--slow silu 6", "log": "--fault attention"}  # 5 % of a step
_CHANGED: Final = {"eager": "silu", "graph": "silu", "log": "attend"}
_KNOWN: Final = ("kernels", "calls", "spans", "devices")
_KNOWN_KINETO: Final = (*_KNOWN, "replays")
_MADE: Final = "{}"
_CANDIDATE: Final = "{candidate}"
_EAGER: Final = "{eager}"
# Steps, kernels, decode batches, names: first those of the start. Full: Kineto files of 14, 51 and 192 MB, exports of
# 7, 28 and 115 MB, logs of 0.5, 2 and 8 MB; all of it in about a quarter of an hour.
_SIZES: Final[Mapping[str, Mapping[str, Sequence[int]]]] = {
    "full": {
        "eager": (2, 6, 22, 82),
        "graph": (2, 20, 75, 280),
        "nsys": (2_000, 50_000, 200_000, 800_000),
        "log": (8, 50, 200, 800),
        "names": (200, 2_500, 10_000, 40_000),
    },
    "small": {
        "eager": (2, 2, 3, 4),
        "graph": (2, 3, 4, 6),
        "nsys": (2_000, 4_000, 8_000, 16_000),
        "log": (8, 12, 16, 24),
        "names": (200, 1_500, 2_000, 2_500),
    },
}
_ASK: Final = """
import json
from inferometer.registry import collect
print(json.dumps(sorted(collect("inferometer.commands", "run"))))
"""
# They read no file that grows, or many: `benchmarks.fleet` has these.
_NO_FILE: Final = frozenset(
    {
        *("ab", "bench", "chat", "completion", "formats", "hardware", "leaderboard", "mcp", "operators", "record"),
        *("fleet", "mine", "rules", "counters", "memory", "ops"),
        "serve",  # benchmarks/serve.py
        "watch",  # benchmarks/watch.py
    }
)


@dataclass(frozen=True, slots=True)
class _Input:
    """A file of one kind and size; `candidate` is the same run with one change, where the kind has one.

    `eager` is, for a run with graphs, the eager run of the same size and batch.
    """

    kind: str
    label: str
    file: TraceFile
    candidate: TraceFile | None = None
    eager: TraceFile | None = None

    @property
    def start(self) -> bool:
        return self.label == _LABELS[0]


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to call a command. `makes` is the suffix of what it writes.

    In the options `{}` stands for that, `{candidate}` and `{eager}` for these files of `_Input`.
    """

    verb: str
    options: Sequence[str]
    check: Callable[..., Answer]
    kinds: Sequence[str]
    what: str = ""
    makes: str = ""


_QUERY: Final = "select sum(dur_ns) as kernel_ns, count(*) as launches from launches where kind = 'kernel'"
_KINETO: Final = ("eager", "graph")
_EVENTS: Final = (*_KINETO, "nsys")
_ALL: Final = (*_EVENTS, "log")
_WAYS: Final = (
    _Way("summary", (), check_summary, _ALL),
    _Way("kernels", ("--json",), check_kernels, _ALL),
    _Way("kernels", ("--by", "family", "--json"), check_families, _EVENTS, what="kernels --by family"),
    _Way("findings", ("--json",), check_findings, _ALL),
    _Way("timeline", ("--json",), check_timeline, _EVENTS),
    _Way("calls", ("--json",), check_calls, _EVENTS),
    _Way("spans", ("--json",), check_spans, _EVENTS),
    _Way("sql", (_QUERY, "--json"), check_sql, _EVENTS),
    _Way("launches", ("--by", "op", "--json"), check_launches, _KINETO),
    _Way("launches", ("--by", "span", "--json"), check_launches_by_span, ("nsys",), what="launches --by span"),
    _Way("launches", ("--capture", _EAGER, "--json"), check_captured, ("graph",), what="launches --capture"),
    _Way("tree", ("--json",), check_tree, _EVENTS),
    _Way("roofline", ("--json",), check_roofline, ("eager",)),
    _Way("replay", ("--op", "1", "--json"), check_replay, ("eager",)),
    _Way("groups", ("--json",), check_groups, _KINETO),
    _Way("steps", ("--json",), check_steps, (*_KINETO, "log")),
    _Way("compare", (_CANDIDATE, "--json"), check_compare, (*_KINETO, "log")),
    _Way("import", ("-o", _MADE, "--json"), check_import, _ALL, makes=".ifm"),
    _Way(
        "export", ("--to", "perfetto", "-o", _MADE, "--json"), check_export, _EVENTS, "export --to perfetto", ".pftrace"
    ),
    _Way("export", ("--to", "chrome", "-o", _MADE, "--json"), check_export, _KINETO, "export --to chrome", ".out.json"),
    _Way("report", ("-o", _MADE, "--json"), check_report, _ALL, makes=".html"),
)
_NAMES_COMMAND: Final = "names"
_PEERS: Final = {"hta": ("HTA, its defaults", ()), "hta-fastest": ("HTA, its fastest", ("--fastest",))}


def _make_cases(size: str, cache: Path, peer_python: Path | None) -> tuple[list[Case], list[TraceFile]]:
    _check_coverage(_registered())
    inputs = list(_inputs(_SIZES[size], cache / "scaling"))
    cases = [_case(way, given) for way in _WAYS for given in inputs if given.kind in way.kinds]
    lists = [make_names(number, cache / "scaling") for number in _SIZES[size]["names"]]
    cases.extend(_names_case(label, file) for label, file in zip(_LABELS, lists, strict=True))
    if peer_python is not None:
        cases.extend(_peer_cases(peer_python, [given for given in inputs if given.kind in _KINETO and not given.start]))
    files = [file for given in inputs for file in (given.file, given.candidate) if file is not None]
    order = (*_ALL, _NAMES_COMMAND)
    return sorted(cases, key=lambda case: order.index(case.name.partition("/")[0])), [*files, *lists]


def _registered() -> set[str]:
    """Names of all commands. Asked in a process of its own, so that the harness stays small."""
    said = subprocess.run([sys.executable, "-c", _ASK], check=True, stdout=subprocess.PIPE).stdout
    return set(json.loads(said))


def _check_coverage(commands: set[str]) -> None:
    """Every command has a case, and every case a command.

    Raises:
        LookupError: One has none.
    """
    measured = {way.verb for way in _WAYS} | {_NAMES_COMMAND}
    if missing := sorted(commands - measured - _NO_FILE):
        raise LookupError(f"no case for the command {', '.join(missing)}: add one to benchmarks/scaling.py")
    if unknown := sorted((measured | _NO_FILE) - commands):
        raise LookupError(f"no such command: {', '.join(unknown)}; mend benchmarks/scaling.py")


def _inputs(sizes: Mapping[str, Sequence[int]], cache: Path) -> Iterator[_Input]:
    eager: dict[str, TraceFile] = {}
    for kind in _ALL:
        for label, number in zip(_LABELS, sizes[kind], strict=True):
            changes = _CHANGES.get(kind)
            file = _make_file(kind, label, number, cache)
            candidate = None if changes is None else _make_file(kind, label, number, cache, changes)
            if kind == "eager":
                eager[label] = file
            yield _Input(kind, label, file, candidate, eager[label] if kind == "graph" else None)


def _make_file(kind: str, label: str, number: int, cache: Path, changes: str = "") -> TraceFile:
    name = f"{kind}-changed" if changes else kind
    if kind == "log":
        return make_log(number, cache, name, changes)
    if kind == "nsys":
        return make_export(number, cache, _KNOWN, "--nvtx launches")
    options = " ".join(filter(None, (_MODES[kind], _LAYERS if label == _LABELS[0] else "", changes)))
    file = make_trace_file(number, cache, f"{name}-{label}", options)
    return file if changes else know_more(file, *_KNOWN_KINETO)


def _case(way: _Way, given: _Input) -> Case:
    """`inferometer VERB FILE OPTIONS`."""
    path = given.file.path
    made = path.with_name(f"{path.stem}{way.makes}") if way.makes else None
    places = {_MADE: made, **{place: file.path for place, file in _beside(given).items()}}
    what = way.what or way.verb
    return ours(
        "/".join((given.kind, way.verb, *(word.lstrip("-") for word in what.split()[1:][-1:]), given.label)),
        way.verb,
        path,
        given.file.truth,
        _check(way, given, made),
        *(places.get(option) or option for option in way.options),
        repetitions=REPETITIONS_PEER,
        makes=made,
        point=Point(what, given.kind, given.file.bytes, given.start),
    )


def _beside(given: _Input) -> dict[str, TraceFile]:
    files = {_CANDIDATE: given.candidate, _EAGER: given.eager}
    return {place: file for place, file in files.items() if file is not None}


def _check(way: _Way, given: _Input, made: Path | None) -> Callable[[bytes, Truth], Answer]:
    beside = _beside(given)
    if _CANDIDATE in way.options:
        changed = _CHANGED[given.kind]
        gated = partial(check_compare, candidate=beside[_CANDIDATE].truth, changed=changed)
        return check_compare_of_start if given.start else gated
    if _EAGER in way.options:
        return partial(way.check, eager=beside[_EAGER].truth)
    return partial(way.check, made=made) if way.verb in ("export", "report") else way.check


def _names_case(label: str, file: TraceFile) -> Case:
    return Case(
        name=f"{_NAMES_COMMAND}/decode/{label}",
        command=f"inferometer names decode --json < {file.path.name}",
        argv=(TOOL, "names", "decode", "--json"),
        source=file.path,
        check=partial(check_names, truth=file.truth),
        repetitions=REPETITIONS_PEER,
        truth=None,
        point=Point("names decode", "list", file.bytes, label == _LABELS[0]),
        stdin=file.path,
    )


def _peer_cases(python: Path, inputs: Sequence[_Input]) -> Iterator[Case]:
    for name, (title, options) in _PEERS.items():
        for given in inputs:
            point = Point(title, given.kind, given.file.bytes, given.start)
            case = peer(title, title, python, "hta_breakdown.py", given.file, read_peer,
                        *options, point=point)  # fmt: skip
            yield replace(case, name=f"{given.kind}/{name}/{given.label}")


_NOTES: Final = """\
- Every output of ours, also of the timed runs, agreed with the truth before a time was written: kernels, APIs, ranges
  and devices with plain SQL over what `json.load` reads, or over the export; rows with the generator's own count;
  steps with the generator's, or with a count of the log's titles; in comparisons the one kernel that was changed is
  named, and both runs' kernel time is right; names with their labels. Of `launches`, the kernels of every op agreed
  with the generator's, those of every range with plain SQL's, and what is unattributed is the graphs' time alone or
  stands outside any op; of `tree`, time adds up at every node, and the leaves are the kernels. Of each command and
  kind, the largest file's answer stands below.
- `launches --capture` reads two files, the graph file and the eager file of the same size: costs are set next to the
  size of the first alone. At least 95 % of the replayed time got ops, those of the eager run wherever a kernel has but
  one there; the answer says how much it was.
- Eager files have many host events per launch; graph files replay a CUDA graph in their decode steps, and have many
  launches a host call. The smallest file of each kind (one layer, or a few steps) shows the start.
- `bench`, `completion`, `formats`, `hardware`, `leaderboard`, `operators` read nothing that grows, and have no case.
  Exports have no groups, steps and comparisons here, logs no calls, ranges and timelines: other files show how these
  commands grow.
- HTA is HolisticTraceAnalysis from PyPI: load, then `get_gpu_kernel_breakdown(visualize=False)`. Its fastest settings
  known are the ijson backend, which leaves Python frames unread, and the least arguments. `kernels` answers the same
  question; `summary` answers more; `import` reads every event, as HTA's load does. It reads Kineto files only.
- AMD's TraceLens is left out: the package of that name on PyPI (0.7.0, read 2026-11-22) is another project, which
  evaluates AI agents and reads no profiler's file."""

SUITE: Final = Suite(
    name="scaling",
    title="How cost grows, and next to peers",
    make_cases=_make_cases,
    bars=(),
    notes=_NOTES,
    libraries=("polars", "msgspec", "isal", "adbc-driver-sqlite", "numpy"),
    peers=("HolisticTraceAnalysis", "pandas", "numpy", "ijson"),
    beside=("kernels", "summary", "import"),
)
