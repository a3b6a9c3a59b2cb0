"""Idle gaps of a capture by loops: what ended each, why it was, and of which kind it is."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median

from tests.truth.host import Host, Span, host
from tests.truth.raw import Capture, Launch, capture, table_order

import inferometer
from inferometer.findings.engine import Findings, find_findings
from inferometer.findings.rule import NEEDED

KIND = {"host_late": "host", "sync": "host", "dependency": "queued", "launch_gap": "queued"}


@dataclass(frozen=True)
class Piece:
    """Idle time of one cause; those of one gap have its number."""

    gap: int
    start_ns: int
    end_ns: int
    cause: str
    launch: Launch
    call: Span | None
    wait: Span | None
    kind: str = ""

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Idle:
    """A capture with its idle time. `alone`: kernels that a call of their own launched."""

    found: Capture
    host: Host
    pieces: tuple[Piece, ...]
    alone: tuple[tuple[Launch, Span], ...]

    def of(self, *kinds: str) -> list[Piece]:
        return [each for each in self.pieces if each.kind in kinds]

    @property
    def idle_ns(self) -> int:
        return total(list(self.pieces))


def total(pieces: list[Piece]) -> int:
    return sum(each.ns for each in pieces)


def lengths(pieces: list[Piece]) -> list[int]:
    """Of each gap, what it has of these."""
    sums: dict[int, int] = defaultdict(int)
    for each in pieces:
        sums[each.gap] += each.ns
    return sorted(sums.values())


@lru_cache(maxsize=2)
def findings(path: Path) -> Findings:
    """What all rules find."""
    with inferometer.open(path, NEEDED) as trace:
        return find_findings(trace)


def places_idle(file: str, shared_data: Path, folder: Path) -> tuple[Path, dict[str, Idle]]:
    """What to open, and the devices with work by name: of one capture, or of the two ranks in one folder."""
    captures = shared_data / "traces" / "kineto"
    if file != "both ranks":
        path = captures / f"{file}.json.gz"
        return path, {told.found.device: told for told in [idle(path)] if told.found.launches}
    ranks = [captures / f"rank{rank}_sampled.json.gz" for rank in (0, 1)]
    for path in ranks:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder, {f"{idle(path).found.device} of rank {rank}": idle(path) for rank, path in enumerate(ranks)}


@lru_cache(maxsize=2)
def idle(path: Path) -> Idle:
    """Read a file, and tell its gaps."""
    found, around, order = capture(path), host(path), table_order(path)
    launches = sorted(found.launches, key=lambda each: (each.start_ns, order[each.key]))
    ids = Counter(each.args.get("correlation") for each in found.launches)
    first: dict[int | None, int] = {}
    for each in found.launches:
        first.setdefault(each.args.get("correlation"), each.start_ns)
    pieces: list[Piece] = []
    dry_ns, number = launches[0].end_ns if launches else 0, 0
    for each in launches:
        if each.start_ns > dry_ns:
            number += 1
            correlation = each.args.get("correlation")
            same = bool(correlation) and ids[correlation] > 1 and first[correlation] <= dry_ns
            pieces += _parted(around, number, dry_ns, each, is_graph=same)
        dry_ns = max(dry_ns, each.end_ns)
    called = [(each, around.call_of(each.args.get("correlation"))) for each in found.launches if each.kind == "kernel"]
    alone = tuple((each, call) for each, call in called if call is not None and not is_replay(each, call))
    limit_ns = rhythm_limit(pieces, alone)
    return Idle(found, around, tuple(_with_kind(each, limit_ns) for each in pieces), alone)


def is_replay(launch: Launch, call: Span | None) -> bool:
    return bool(call and re.match(r"(cuda|cu|hip)GraphLaunch", call.name)) or bool(launch.args.get("graph node id"))


def _parted(around: Host, number: int, dry_ns: int, launch: Launch, *, is_graph: bool) -> list[Piece]:
    call, start_ns = around.call_of(launch.args.get("correlation")), launch.start_ns
    whole = Piece(number, dry_ns, start_ns, "unknown", launch, call, None)
    if is_graph:
        return [replace(whole, cause="graph")]
    if call is None:
        return [whole]
    if call.end_ns <= dry_ns:
        return [replace(whole, cause="launch_gap" if start_ns - dry_ns <= 5_000 else "dependency")]
    waits = [each for each in around.waits if each.thread == call.thread and each.start_ns <= dry_ns < each.end_ns]
    wait = max(waits, key=lambda each: each.end_ns, default=None)
    if wait is not None and wait.end_ns > call.start_ns:
        wait = None
    begins_ns = start_ns if start_ns - call.end_ns <= 50_000 else call.end_ns
    late = replace(whole, end_ns=begins_ns, cause="host_late" if wait is None else "sync", wait=wait)
    told = [late]
    if wait is not None and call.start_ns - wait.end_ns > 5_000 and wait.end_ns < start_ns:
        told = [replace(late, end_ns=wait.end_ns), replace(late, start_ns=wait.end_ns, cause="host_late")]
    rest = replace(whole, start_ns=begins_ns, cause="dependency")
    return told if begins_ns == start_ns else [*told, rest]


def rhythm_limit(pieces: list[Piece], alone: tuple[tuple[Launch, Span], ...]) -> int:
    """How late the next launch may be to count as the rhythm of launching; 0 where there is none."""
    if len(alone) < 50:
        return 0
    late = [each for each in pieces if _is_late(each)]
    between = median(launch_intervals(alone))
    return max(50_000, int(4 * between)) if len(late) >= 0.5 * len(alone) else 50_000


def launch_intervals(alone: tuple[tuple[Launch, Span], ...]) -> list[int]:
    """From one call to the next on its thread."""
    threads = defaultdict(list)
    for _, call in alone:
        threads[call.thread].append(call.start_ns)
    return [last - before for times in threads.values() for before, last in pairwise(sorted(times))]


def _is_late(piece: Piece) -> bool:
    return piece.cause == "host_late" and piece.wait is None and not is_replay(piece.launch, piece.call)


def _with_kind(piece: Piece, limit_ns: int) -> Piece:
    is_launching = _is_late(piece) and piece.ns <= limit_ns
    return replace(piece, kind="launching" if is_launching else KIND.get(piece.cause, piece.cause))
