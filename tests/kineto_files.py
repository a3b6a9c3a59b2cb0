"""Kineto files as tests need them: written in any layout, and read by a slow reader that shares nothing with ours.

The reader is `json` with Decimal and plain loops: nothing in it is quick, and nothing in it is ours.
"""

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import chain, pairwise
from typing import Any

EXACT = Context(prec=200, rounding=ROUND_HALF_EVEN)
KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime")
HOST_SPANS = ("user_annotation", "Trace", "overhead", "")
DEVICE_SPANS = ("gpu_user_annotation", "cuda_sync")
READ = {*KINDS, *CALLS, *HOST_SPANS, *DEVICE_SPANS, "cpu_op", "python_function", "cpu_instant_event"}

Event = dict[str, Any]
Row = dict[str, Any]


class Literal(str):
    """A number as it shall stand in the file: `Literal("1.50")`."""


@dataclass(frozen=True)
class Layout:
    """How JSON text is laid out. `events` is how one event is: `kineto` as PyTorch writes it."""

    comma: str = ", "
    colon: str = ": "
    newline: str = ""
    kineto: bool = False


COMPACT = Layout(",", ":")
SPACED = Layout()
INDENTED = Layout(",", ": ", "\n")
KINETO = Layout(kineto=True)
LAYOUTS = {"compact": COMPACT, "spaced": SPACED, "indented": INDENTED, "kineto": KINETO}


def kernel(name: str = "k", ts: str = "100.000", dur: str = "2.000", **args: Any) -> Event:
    """A kernel's event; `args` with _ for blanks are added to the usual ones, None takes one away."""
    usual = {"device": 0, "context": 1, "stream": 7, "correlation": 1}
    return event("kernel", name, ts, dur, pid=0, tid=7, **usual | args)


def call(name: str = "cudaLaunchKernel", ts: str = "90", dur: str = "5", *, pid: Any = 1, **args: Any) -> Event:
    """A runtime call's event."""
    return event("cuda_runtime", name, ts, dur, pid=pid, tid=2, **{"correlation": 1} | args)


def event(cat: str, name: str, ts: str, dur: str | None = None, *, pid: Any = 1, tid: Any = 2, **args: Any) -> Event:
    """A complete event."""
    times = {"ts": Literal(ts)} | ({} if dur is None else {"dur": Literal(dur)})
    given = {key.replace("_", " "): value for key, value in args.items() if value is not None}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": given}


def write_file(events: Iterable[Event], layout: Layout = KINETO, *, before: Any = None, after: Any = None) -> bytes:
    """A trace object with `events`; `before` and `after` are the fields around them."""
    head = {"schemaVersion": 1} if before is None else before
    if not layout.kineto:
        return dump({**head, "traceEvents": list(events), **(after or {})}, layout).encode()
    fields = [f"{json.dumps(key)}: {dump(value, SPACED)}" for key, value in head.items()]
    listed = ",\n".join(_as_kineto_writes_it(each) for each in events)
    fields.append(f'"traceEvents": [\n{listed}\n  ]')
    fields += [f"{json.dumps(key)}: {dump(value, SPACED)}" for key, value in (after or {}).items()]
    return ("\n{\n  " + ",\n  ".join(fields) + "\n}\n").encode()


def dump(value: Any, layout: Layout, depth: int = 0) -> str:
    """`value` as JSON; a `Literal` as it is."""
    if isinstance(value, Literal):
        return str(value)
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    inner = [dump(each, layout, depth + 1) for each in (value.values() if isinstance(value, dict) else value)]
    if isinstance(value, dict):
        inner = [
            json.dumps(key, ensure_ascii=False) + layout.colon + text for key, text in zip(value, inner, strict=True)
        ]
    left, right = "{}" if isinstance(value, dict) else "[]"
    if not layout.newline or not inner:
        return left + layout.comma.join(inner) + right
    step = layout.newline + "  " * (depth + 1)
    return left + step + (layout.comma + step).join(inner) + layout.newline + "  " * depth + right


def _as_kineto_writes_it(each: Event) -> str:
    plain = ", ".join(f"{json.dumps(key)}: {dump(value, SPACED)}" for key, value in each.items() if key != "args")
    if "args" not in each:
        return f"  {{\n    {plain}\n  }}"
    args = ", ".join(
        f"{json.dumps(key, ensure_ascii=False)}: {dump(value, SPACED)}" for key, value in each["args"].items()
    )
    return f'  {{\n    {plain},\n    "args": {{\n      {args}\n    }}\n  }}'


def members(data: bytes, cuts: Iterable[int]) -> bytes:
    """`data` as a gzip file of several members, cut at these places."""
    places = sorted({0, len(data), *(cut for cut in cuts if 0 <= cut <= len(data))})
    return b"".join(gzip.compress(data[a:b], 1, mtime=0) for a, b in pairwise(places)) or data


def exact_ns(microseconds: Any) -> int:
    """Nanoseconds, half to even, whatever the number of digits."""
    return int(EXACT.multiply(Decimal(microseconds), Decimal(1000)).to_integral_value(ROUND_HALF_EVEN))


def read_slowly(data: bytes) -> dict[str, list[Row]]:
    """Every table's rows as the declarations of `inferometer.trace.tables` say; for files without defects."""
    document = json.loads(data.decode("utf-8"), parse_float=Decimal, strict=False)
    rank = document.get("distributedInfo", {}).get("rank")
    tables: dict[str, list[Row]] = {name: [] for name in ("launches", "calls", "ops", "frames", "spans", "counters")}
    for each in document["traceEvents"]:
        if (placed := _row(each)) is not None:
            tables[placed[0]].append(placed[1])
    processes = {row["process"] for row in tables["calls"]} - {None}
    for row in chain.from_iterable(tables.values()):
        row["rank"] = rank
    for row in tables["launches"]:
        row["process"] = next(iter(processes)) if len(processes) == 1 else None
    return tables


def _row(each: Event) -> tuple[str, Row] | None:
    cat, args = each.get("cat", ""), each.get("args", {})
    if each["ph"] == "i":
        at = {"start_ns": exact_ns(each["ts"]), "dur_ns": 0, "device": None, "stream": None}
        return "spans", {"span": each["name"], "domain": "instant", **_place(each), **at, **_shapes({})}
    if each["ph"] != "X" or cat not in READ:
        return None
    times = {"start_ns": exact_ns(each["ts"]), "dur_ns": exact_ns(each["dur"])}
    external = {"external_id": args.get("External id", args.get("external id"))}
    if cat in KINDS:
        return "launches", _launch(each, args) | times | external
    if cat in CALLS:
        wanted = {key: args.get(key) for key in ("kernel", "grid", "block", "bytes")}
        tied = {"correlation_id": args.get("correlation"), "stream": args.get("stream"), "path_id": None}
        return "calls", {"api": each["name"], **_place(each), **times, **external, **wanted, **tied}
    if cat == "cpu_op":
        return "ops", {"op": each["name"], **_place(each), **times, **external, **_op(args)}
    if cat == "python_function":
        found = re.match(r"nn\.Module: (.*)", each["name"], re.DOTALL)
        ids = {"frame_id": args.get("Python id"), "parent": args.get("Python parent id")}
        return "frames", {
            "frame": each["name"],
            "module": found[1] if found else None,
            **_place(each),
            **times,
            **ids,
        }
    if cat in DEVICE_SPANS:
        where = {"process": None, "thread": None, "device": f"gpu:{args['device']}", "stream": args["stream"]}
        where |= _shapes({})
    else:
        where = {**_place(each), "device": None, "stream": None, **_shapes(args)}
    return "spans", {"span": each["name"], "domain": cat.lower() or None, **where, **times}


def _place(each: Event) -> Row:
    return {"process": each.get("pid"), "thread": each.get("tid")}


def _launch(each: Event, args: dict[str, Any]) -> Row:
    occupancy = args.get("est. achieved occupancy %")
    return {
        "kind": KINDS[each["cat"]],
        "kernel": each["name"],
        "device": f"gpu:{args.get('device', each['pid'])}",
        "context": args.get("context"),
        "stream": args.get("stream", each["tid"]),
        "host": None,
        "queued_ns": args.get("queued") or None,
        "correlation_id": args.get("correlation"),
        "graph_id": args.get("graph id") or None,
        "graph_node_id": args.get("graph node id") or None,
        "grid": args.get("grid"),
        "block": args.get("block"),
        "registers": args.get("registers per thread"),
        "shared_bytes": args.get("shared memory"),
        "bytes": args.get("bytes"),
        "occupancy": None if occupancy is None else float(occupancy) / 100,
        **dict.fromkeys(("queue", "accum_registers", "scalar_registers", "scratch_bytes")),
    }


def _shapes(args: dict[str, Any]) -> Row:
    return {"input_dims": args.get("Input Dims"), "input_dtypes": args.get("Input type")}


def _op(args: dict[str, Any]) -> Row:
    texts = {"input_dims": "Input Dims", "input_dtypes": "Input type", "scalars": "Concrete Inputs"}
    return {
        **{column: args.get(key) for column, key in texts.items()},
        "input_strides": args.get("Input Strides"),
        "sequence_number": args.get("Sequence number"),
        "record_function_id": args.get("Record function id") or None,
        "parent": None,
        **dict.fromkeys(("kernel_file", "kernel_hash", "kernel_backend", "input_storages", "written_storages")),
    }
