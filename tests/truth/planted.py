"""Files with a planted fault, from the generator or from rows made by hand, and their marked steps as plain rows."""

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.kineto_files import COMPACT, call, dump, event, exact_ns, kernel, write_file
from tests.truth.host import Span, host, shared_ns, union
from tests.truth.raw import Launch, capture, duration, table_order, timed_events
from tools.kineto_maker import Options, write_trace
from tools.kineto_maker.faults import Fault

SMALL = Options(steps=8, layers=4, lean=True, mode="graph", prefill_every=0)
_MARK = re.compile(r"step\[(?P<phase>DECODE|EXTEND) bs=(?P<batch>\d+)")
_PHASES = {"DECODE": "decode", "EXTEND": "prefill"}
_CATEGORIES = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


@dataclass
class Step:
    """A mark of SGLang's on the host, and the launches that were called for from its start to the next one's."""

    phase: str
    tokens: int
    start_ns: int
    end_ns: int
    launches: list[Launch] = field(default_factory=list)

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns


def write_planted(folder: Path, fault: Fault, **changes: Any) -> Path:
    """A file of one rank, or the folder of all ranks' files `rank0.json.gz` and on."""
    options = replace(SMALL, fault=fault, **changes)
    for rank in range(options.world):
        file = BytesIO()
        write_trace(replace(options, rank=rank), file)
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(file.getvalue(), 1))
    return folder if options.world > 1 else folder / "rank0.json.gz"


def write_rows(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    calls: Iterable[Mapping[str, Any]] = (),
    spans: Iterable[Mapping[str, Any]] = (),
    ops: Iterable[Mapping[str, Any]] = (),
) -> Path:
    """A file of rows of `tests.findings.rule_traces`; `calls` launch nothing."""
    events = []
    seen = set()
    for number, row in enumerate(rows, start=1_000):
        work, queued = row["work"], row["call"]
        correlation = work.get("correlation_id", number)
        ours = {"correlation": correlation, "graph node id": work.get("graph_node_id"), "grid": work.get("grid")}
        kind = {"cat": _CATEGORIES[work.get("kind", "kernel")]}
        events.append(kernel(work.get("kernel", "k"), *_times(work), stream=work.get("stream", 7), **ours) | kind)
        if correlation not in seen:
            events.append(call(queued["api"], *_times(queued), correlation=correlation))
            seen.add(correlation)
    events += [call(each["api"], *_times(each), correlation=None) | {"tid": each["thread"]} for each in calls]
    events += [event("user_annotation", each["span"], *_times(each)) for each in spans]
    events += [event("cpu_op", each["op"], *_times(each)) for each in ops]
    path.write_bytes(gzip.compress(write_file(events), 1))
    return path


def add_early(path: Path, before_ns: int) -> None:
    """Puts a short kernel, and its call, so long before the first launch of a file."""
    began_ns = min(each.start_ns for each in capture(path).launches) - before_ns
    rows = {name: {"start_ns": began_ns - ago, "dur_ns": 5_000} for name, ago in (("call", 6_000), ("kernel", 0))}
    made = [call(*("cudaLaunchKernel", *_times(rows["call"])), correlation=1), kernel("early", *_times(rows["kernel"]))]
    text = gzip.decompress(path.read_bytes()).decode()
    opened = '"traceEvents": ['
    early = "".join(f"{dump(each, COMPACT)}," for each in made)
    path.write_bytes(gzip.compress(text.replace(opened, opened + early, 1).encode(), 1))


def _times(row: Mapping[str, Any]) -> tuple[str, str]:
    return tuple(f"{row[name] // 1000}.{row[name] % 1000:03d}" for name in ("start_ns", "dur_ns"))  # type: ignore[return-value]


def launch_call(path: Path, launch: Launch) -> Span:
    """The call that queued it."""
    found = host(path).call_of(launch.correlation)
    assert found is not None
    return found


def steps_of(path: Path) -> list[Step]:
    """In the order of time; each of these files begins with a mark."""
    steps = []
    for each in timed_events(path):
        if each["cat"] == "user_annotation" and (found := _MARK.match(each["name"])):
            start_ns = exact_ns(each["ts"])
            end_ns = start_ns + exact_ns(each["dur"])
            steps.append(Step(_PHASES[found["phase"]], int(found["batch"]), start_ns, end_ns))
    steps.sort(key=lambda each: each.start_ns)
    for launch in in_order(path):
        called_ns = launch_call(path, launch).start_ns
        began = [each for each in steps if each.start_ns <= called_ns]
        began[-1].launches.append(launch)
    return steps


def in_order(path: Path) -> list[Launch]:
    """The launches by time; of those that begin together, as the table has them."""
    order = table_order(path)
    return sorted(capture(path).launches, key=lambda each: (each.start_ns, order[each.key]))


def a_step(time_ns: float, steps: Sequence[Step]) -> str:
    some = sum(bool(each.launches) for each in steps)
    return f", {duration(time_ns / some)} per step over {some} steps"


def busy_ns(launches: Iterable[Launch]) -> int:
    """Time in which at least one of them ran."""
    return sum(end - start for start, end in union((each.start_ns, each.end_ns) for each in launches))


def windows(path: Path, steps: Sequence[Step]) -> list[tuple[int, int]]:
    """How long each step lasts, and idles: until its mark and its work have ended, from its mark or the one before."""
    running = union((each.start_ns, each.end_ns) for each in capture(path).launches)
    found, before_ns = [], steps[0].start_ns
    for step in steps:
        since_ns = max(step.start_ns, before_ns)
        before_ns = max(since_ns, step.end_ns, *(each.end_ns for each in step.launches))
        idle_ns = before_ns - since_ns - shared_ns([(since_ns, before_ns)], running)
        found.append((before_ns - since_ns, idle_ns))
    return found
