"""The gate for who launched it: what `launches` and `tree` said, against what is known of the file.

All device time must be reported once, attributed or not, to the nanosecond; ops and ranges must have exactly the
kernels that were queued in them. Replays take their ops from another trace: nearly all must have one, and a right one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.answers import Answer, WrongAnswer, parse, want
from benchmarks.trace_files import Truth

_ARROW: Final = " > "
_REPLAYED: Final = "graph_replay"
_FOUND: Final = ("graph_alignment", "graph_node")
_LEAST_FOUND: Final = 0.95
_Sums = Mapping[Any, tuple[int, int]]


def check_launches(output: bytes, truth: Truth) -> Answer:
    """`launches --by op --json`: the kernels of every innermost op; replays have none, and their time is reported."""
    said = _parse_launches(output, truth)
    _want_sums("op and kernel", _known_ops(truth), _found_ops(said["rows"], truth))
    want(f"{_REPLAYED} ns", _replayed_ns(truth), said["by_how"].get(_REPLAYED, 0))
    return Answer(None, f"{len(said['rows'])} chains of ops, {_percent(said['attributed_ns'], said['total_ns'])}")


def check_launches_by_span(output: bytes, truth: Truth) -> Answer:
    """`launches --by span --json`: launches and time of every innermost range."""
    said = _parse_launches(output, truth)
    spans = truth.tables["spans"].items()
    wanted = {name: (span["own_launches"], span["own_summed_ns"]) for name, span in spans if span["own_launches"]}
    found = {row["key"]: (row["count"], row["total_ns"]) for row in said["rows"]}
    want("rows", len(found), len(said["rows"]))
    _want_sums("span", wanted, found)
    return Answer(None, f"{len(found)} ranges, {_percent(said['attributed_ns'], said['total_ns'])}")


def check_captured(output: bytes, truth: Truth, eager: Truth) -> Answer:
    """`launches --by op --capture EAGER --json`: 95 % of the replays' time has ops.

    They are those of the eager run, for every kernel that has but one there.
    """
    said = _parse_launches(output, truth)
    replayed_ns = _replayed_ns(truth)
    found_ns = sum(said["by_how"].get(how, 0) for how in _FOUND)
    if not 0 < _LEAST_FOUND * replayed_ns <= found_ns <= replayed_ns:
        raise WrongAnswer(f"expected ops for {_LEAST_FOUND:.0%} of {replayed_ns:,} replayed ns, found {found_ns:,}")
    only = {kernel: op for (op, kernel), sums in _known_ops(eager).items() if sums == _sums(eager, kernel)}
    for op, kernel in _found_ops(said["rows"], truth):
        if only.get(kernel, op) != op:
            raise WrongAnswer(f"expected {only[kernel]}, found {op} of {kernel}")
    return Answer(None, f"{found_ns / replayed_ns:.1%} of the replays' time")


def check_tree(output: bytes, truth: Truth) -> Answer:
    """`tree --json`: time adds up at every node and over the outermost; the leaves are the file's kernels."""
    said = parse(output)
    want("total_ns", _total_ns(truth), said["total_ns"])
    callees: dict[int | None, list[Mapping[str, Any]]] = defaultdict(list)
    for node in said["nodes"]:
        callees[node["parent"]].append(node)
    want("total_ns of the outermost", said["total_ns"], sum(node["total_ns"] for node in callees[None]))
    for node in said["nodes"]:
        below = callees.get(node["node"], [])
        name = f"node {node['node']}, {node['name'][:80]}"
        want(f"total_ns of {name}", node["self_ns"] + sum(callee["total_ns"] for callee in below), node["total_ns"])
        if bool(below) == (node["kind"] == "kernel"):
            raise WrongAnswer(f"expected kernels as the leaves, and no other, found {name}")
    _check_leaves([node for node in said["nodes"] if node["kind"] == "kernel"], truth)
    return Answer(None, f"{len(said['nodes']):,} nodes")


def check_roofline(output: bytes, truth: Truth) -> Answer:
    """`roofline --json`: all device time is in its rows, and every launch."""
    said = parse(output)
    want("total_ns", _total_ns(truth), said["total_ns"])
    want("total_ns of the rows", said["total_ns"], sum(row["total_ns"] for row in said["rows"]))
    want("launches", truth.rows["launches"], sum(row["launches"] for row in said["rows"]))
    return Answer(None, f"{len(said['rows']):,} rows, {_percent(said['modelled_ns'], said['total_ns'])}")


def check_replay(output: bytes, truth: Truth) -> Answer:
    """`replay --op 1 --json`: the op with the most time, and a script of it."""
    said = parse(output)
    want("number", 1, said["number"])
    compile(said["script"], "replay.py", "exec")
    return Answer(None, f"{said['op']}, {len(said['script']):,} characters")


def _check_leaves(leaves: Sequence[Mapping[str, Any]], truth: Truth) -> None:
    found = _add_up((leaf["name"], leaf["count"], leaf["total_ns"]) for leaf in leaves)
    want("launches", truth.rows["launches"], sum(count for count, _ in found.values()))
    kernels = {name: sums for name, sums in found.items() if name in truth.tables["kernels"]}
    _want_sums("kernel", {name: _sums(truth, name) for name in truth.tables["kernels"]}, kernels)


def _parse_launches(output: bytes, truth: Truth) -> dict[str, Any]:
    """What was said, if all time is reported once."""
    said = parse(output)
    total_ns = said["total_ns"]
    want("total_ns", _total_ns(truth), total_ns)
    want("attributed and unattributed ns", total_ns, said["attributed_ns"] + said["unattributed_ns"])
    want("attributed_ns of rows", said["attributed_ns"], sum(row["total_ns"] for row in said["rows"]))
    want("ns of by_how", total_ns, sum(said["by_how"].values()))
    return said


def _total_ns(truth: Truth) -> int:
    """Kernels, copies and sets."""
    return int(sum(device["summed_ns"] for device in truth.tables["devices"].values()))


def _replayed_ns(truth: Truth) -> int:
    return int(sum(api["summed_ns"] for api in truth.tables["replays"].values()))


def _sums(truth: Truth, kernel: str) -> tuple[int, int]:
    known = truth.tables["kernels"][kernel]
    return known["count"], known["total_ns"]


def _known_ops(truth: Truth) -> _Sums:
    """Launches and time by innermost op and kernel."""
    return {
        (op, kernel): (sums["count"], sums["total_ns"])
        for op, kernels in truth.tables["ops"].items()
        for kernel, sums in kernels.items()
    }


def _found_ops(rows: Sequence[Mapping[str, Any]], truth: Truth) -> _Sums:
    """The same of rows by chains of ops; without copies and sets."""
    return _add_up(
        ((row["key"].rpartition(_ARROW)[2], part["kernel"]), part["count"], part["total_ns"])
        for row in rows
        for part in row["kernels"]
        if part["kernel"] in truth.tables["kernels"]
    )


def _add_up(rows: Iterator[tuple[Any, int, int]]) -> _Sums:
    counts, times = Counter[Any](), Counter[Any]()
    for key, count, ns in rows:
        counts[key] += count
        times[key] += ns
    return {key: (count, times[key]) for key, count in counts.items()}


def _want_sums(what: str, wanted: _Sums, found: _Sums) -> None:
    """Raises `WrongAnswer` with the first key whose launches and time differ."""
    for key in sorted(wanted.keys() | found.keys()):
        if wanted.get(key) != found.get(key):
            raise WrongAnswer(
                f"{what}: expected {wanted.get(key) or 'none'}, found {found.get(key) or 'none'} of {key}"
            )


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of the time" if whole else "no time"
