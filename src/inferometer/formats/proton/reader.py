"""Reads a `.hatchet` file: nodes to `call_paths`, their device times to `path_totals`, sums by kernel to `totals`."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.trace.facts import Device, Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_NODES, _TIMES, _TOTALS = "call_paths", "path_totals", "totals"
_TIME, _COUNT, _DEVICE = "time (ns)", "count", "device_id"
_KNOWN: Final = frozenset({_TIME, _COUNT, _DEVICE, "device_type"})
_FRAME = re.compile(r"(.+):(\d+)@(.+)", re.DOTALL)
_MOST = 2**63 - 1
_HINT: Final = "Record it again; Proton writes the file at proton.finalize()."
_NOTE: Final = (
    "Times are device time of kernels, summed by Proton: no launch has one of its own. Kernels of CUDA graphs that "
    "were captured before Proton started have no scopes."
)


@dataclass(frozen=True)
class _Node:
    number: int
    parent: int | None
    depth: int
    name: str
    metrics: dict[str, Any]


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: It is no tree of Proton.
    """
    root, devices = _decode(read_held(source, hint="Profile fewer scopes, or read it with --no-limits."), source.name)
    nodes = list(_walk(root, source.name, out))
    if out.wants(_NODES):
        out.losses.see(_NODES, len(nodes))
        out.add(_NODES, len(nodes), _node_columns(nodes))
    timed = [node for node in nodes if _TIME in node.metrics and node.parent is not None]
    if out.wants(_TIMES):
        _add_times(out, timed)
        _count_others(out, nodes)
    if out.wants(_TOTALS):
        _add_totals(out, timed)
    return Facts("proton", source.name, tool="Triton Proton", devices=tuple(_devices(devices)), notes=(_NOTE,))


def _decode(data: bytes, name: str) -> tuple[dict[str, Any], Any]:
    expected = f"{name}: expected a list of a tree and its devices"
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{expected}, found no JSON that can be read ({error})", hint=_HINT) from error
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise FormatError(f"{expected}, found something else", hint=_HINT)
    return found[0], found[1] if len(found) > 1 else None


def _walk(root: dict[str, Any], name: str, out: "TraceBuilder") -> Iterator[_Node]:
    """All nodes, parents first, in the order of the file; what is below one without a name is below its parent.

    Raises:
        FormatError: The root has no name.
    """
    left: list[tuple[Any, int | None, int]] = [(root, None, 0)]
    number = 0
    while left:
        node, parent, depth = left.pop()
        fields = node if isinstance(node, dict) else {}
        frame, metrics, children = (fields.get(key) for key in ("frame", "metrics", "children"))
        text = frame.get("name") if isinstance(frame, dict) else None
        below = (parent, depth)
        if isinstance(text, str):
            yield _Node(number, parent, depth, text, metrics if isinstance(metrics, dict) else {})
            below = (number, depth + 1)
            number += 1
        elif parent is None:
            raise FormatError(f"{name}: expected a tree of nodes, each with a frame and its name", hint=_HINT)
        elif out.wants(_NODES):
            out.losses.see(_NODES)
            out.losses.count("without_name", category=_NODES)
        left += [(child, *below) for child in reversed(children if isinstance(children, list) else [])]


def _node_columns(nodes: list[_Node]) -> dict[str, list[Any]]:
    frames = [_FRAME.fullmatch(node.name) for node in nodes]
    return {
        "path_id": [node.number for node in nodes],
        "parent_id": [node.parent for node in nodes],
        "name": [node.name for node in nodes],
        "frame": [match and f"{match[1]}:{match[2]} {match[3]}" for match in frames],
        "depth": [node.depth for node in nodes],
    }


def _add_times(out: "TraceBuilder", timed: list[_Node]) -> None:
    out.losses.see(_TIMES, len(timed))
    columns = {
        "path_id": [node.number for node in timed],
        "order": range(len(timed)),
        "calls": [_whole(out, _TIMES, node, _COUNT) for node in timed],
        "self_ns": [_whole(out, _TIMES, node, _TIME) for node in timed],
    }
    out.add(_TIMES, len(timed), columns)


def _count_others(out: "TraceBuilder", nodes: list[_Node]) -> None:
    """Metrics without a place, each name once."""
    for name in dict.fromkeys(name for node in nodes if node.parent is not None for name in node.metrics):
        if name not in _KNOWN:
            out.losses.count("unknown_column", category=_TIMES, example=name)


def _add_totals(out: "TraceBuilder", timed: list[_Node]) -> None:
    sums: dict[tuple[str, str | None], list[tuple[int | None, int | None]]] = defaultdict(list)
    for node in timed:
        device = node.metrics.get(_DEVICE)
        where = f"gpu:{device}" if isinstance(device, str) and device.isdecimal() else None
        values = (_whole(out, _TOTALS, node, _TIME), _whole(out, _TOTALS, node, _COUNT))
        sums[node.name, where].append(values)
    rows = [(kernel, device, *map(_sum, zip(*each, strict=True))) for (kernel, device), each in sums.items()]
    out.losses.see(_TOTALS, len(rows))
    kernel, device, total_ns, count = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    mean_ns = [total / n if total is not None and n else None for total, n in zip(total_ns, count, strict=True)]
    columns = {
        "section": [0] * len(rows),
        "kernel": kernel,
        "device": device,
        "count": count,
        "total_ns": total_ns,
        "mean_ns": mean_ns,
    }
    out.add(_TOTALS, len(rows), columns)


def _sum(values: tuple[int | None, ...]) -> int | None:
    """Null where one of them is, or it fits no column."""
    total = None if None in values else sum(value for value in values if value is not None)
    return total if total is None or total <= _MOST else None


def _whole(out: "TraceBuilder", table: str, node: _Node, name: str) -> int | None:
    """A count or a time in ns; Proton writes some as floats."""
    value = node.metrics.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    if value is not None:
        out.losses.count("wrong_type", category=table, example=f"{name}: {str(value)[:60]}")
    return None


def _devices(found: Any) -> Iterator[Device]:
    """Of each vendor by number; the names of two vendors' devices would be one."""
    kinds = found.values() if isinstance(found, dict) else ()
    numbered = [(number, facts) for kind in kinds if isinstance(kind, dict) for number, facts in kind.items()]
    for number, facts in dict(numbered).items():
        if not number.isdecimal() or not isinstance(facts, dict):
            continue
        arch, sms = facts.get("arch"), facts.get("num_sms")
        is_sm = isinstance(arch, str) and arch.isdecimal() and len(arch) > 1
        yield Device(
            f"gpu:{number}",
            multiprocessors=sms if isinstance(sms, int) and 0 <= sms <= _MOST else None,
            compute_capability=f"{arch[:-1]}.{arch[-1]}" if isinstance(arch, str) and is_sm else None,
        )
