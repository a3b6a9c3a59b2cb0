"""Communication that no computation hides, by collective and message, and whether it waits for other ranks.

The time is that in which a kernel that communicates runs and none that computes does, on the device with the largest
share of its window in it; copies may run meanwhile. Which collective a kernel is of is recognised by what its source
records, by its name, or by the op that called it; size, type and group only by the record. With several ranks,
collectives that all of them leave together show how much of their time is waiting for the rank that came last; the rest
is the exchange itself.

What to do depends on the collective and its size. All-reduces of 512 KiB or less are bound by their latency: engines
do them in one shot. Larger ones, all-gathers and reduce-scatters are bound by links and should run in parallel with
computation. A send or receive waits for its other side.

Normal: tensor parallelism exchanges each layer's results twice, and nothing computes meanwhile: in generated runs 3 to
10 % of the window with two ranks, up to 17 % with eight. Training that overlaps its exchange exposes little. Fires from
8 % of the window: `low`; from 20 % `medium`, from 40 % `high`, as for a device that is idle: in both nothing computes,
and at most that time could be saved. So a healthy run of many ranks has a `low` one: what a fused or overlapped
exchange could save there.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from inferometer.analyses.timeline.budget import COMMUNICATION, part_key
from inferometer.analyses.timeline.collectives import ABOUT, bytes_per_s, work_collectives
from inferometer.analyses.timeline.ranks import Ranks, compare_ranks
from inferometer.analyses.timeline.work import at_place
from inferometer.findings.evidence.communication import known_collectives, serves
from inferometer.findings.evidence.exposed_time import sum_exposed
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, grave_place
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.findings.rules.launches.casts_and_copies import is_cast_or_copy
from inferometer.names import decode
from inferometer.names.communication import find_collective
from inferometer.units import format_bytes, format_duration, format_share

_SCALE = Scale("exposed_collectives", low=0.08, medium=0.20, high=0.40)
_SHOWN = 3
_SHOWN_SHARE = 0.1  # of the exposed time: less is not worth a sentence
_STAGED_SHARE = 0.01  # of the exposed time
_MOSTLY = 0.5  # of the time: then waiting, not the exchange, is what to look at
_SMALL_BYTES = 512 << 10  # what vLLM and SGLang reduce in one shot between eight devices
_SHORT_NS = 100_000  # NCCL's rings take 20 to 60 μs for messages of that size
_MESSAGE = ("collective", "kernel", *ABOUT)
_DIRECT = "that the devices are linked directly (nvidia-smi topo -m, rocm-smi --showtopo)"
_ONE_SHOT = f"take a one-shot path (vLLM, SGLang: no --disable-custom-all-reduce), and {_DIRECT}."
_TOGETHER = "inferometer timeline FOLDER_OF_RANKS"
_UNKNOWN_SIZE = (
    "Record how much it exchanges, and the other ranks: a long all-reduce either moves much, and should then run while "
    f"something computes, or it waits for a rank: {_TOGETHER}."
)
_NEXT = {
    "all_reduce": (
        "Let it run while something still computes (data parallel: smaller buckets, bucket_cap_mb), or send fewer "
        "bytes. nccl-tests says what rate the links reach at this size, nvidia-smi topo -m or rocm-smi --showtopo "
        "which links there are."
    ),
    "reduce_scatter": (
        "Let it run while something still computes (FSDP: reduce in groups as gradients come), or send fewer bytes; "
        "nccl-tests says what rate the links reach at this size."
    ),
    "all_gather": (
        "Gather ahead of use, while something else computes (FSDP: prefetch), or keep what is gathered; nccl-tests "
        "says what rate the links reach at this size."
    ),
    "all_to_all": (
        "Let two micro-batches take turns, so that one computes while the other is exchanged, send fewer bytes, and "
        f"see whether uneven shares make ranks wait for one another: {_TOGETHER}."
    ),
    "broadcast": (
        "Broadcast once, or not at all (data parallel: broadcast_buffers=False where buffers needn't agree), and see "
        f"whether ranks wait for the one that sends: {_TOGETHER}."
    ),
    "reduce": f"Reduce while something still computes, and see whether it waits for a rank: {_TOGETHER}.",
    "send_recv": (
        "See what the other side does meanwhile: a receive runs until it has sent. Record its rank, too, and look at "
        f"both: {_TOGETHER}. In a pipeline, more and smaller micro-batches shorten the wait."
    ),
    "other": "Find out which collective it is and who calls it: inferometer launches FILE.",
}


_UNCALLED = "Record the host's side, too: its calls and ops tell which collective it is and who asks for it."


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    grave = grave_place(launches, launches.devices, "exposed_communication_ns", _SCALE)
    if grave is None:
        return
    place, exposed_ns, severity = grave
    known = known_collectives(launches)
    collectives = at_place(work_collectives(launches.device_work, known), place.rank, place.device)
    messages = sum_exposed(launches, place, collectives, _MESSAGE, "compute")
    kinds = sum_exposed(launches, place, collectives, ("collective",), "compute")
    first = kinds.row(0, named=True)
    share = exposed_ns / place.window_ns
    ranks = compare_ranks(launches.device_work, launches.devices, known) if known.height else launches.ranks
    waited, waited_share = _waited(ranks, place, int(collectives["dur_ns"].sum()))
    most = "mostly" if first["exposed_ns"] > _MOSTLY * exposed_ns else "the most of it"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=(
            f"{place.name} communicates while nothing computes for {format_share(share)} of its time"
            + (f", {most} in {_word(first)}" if first["collective"] != "other" else "")
        ),
        evidence=(
            f"Kernels communicate and none computes for {format_duration(exposed_ns)}{launches.a_step(exposed_ns)}.",
            *(
                _message(row)
                for row in messages.head(_SHOWN).iter_rows(named=True)
                if row["exposed_ns"] >= _SHOWN_SHARE * exposed_ns
            ),
            waited,
            *_staging(launches, place, exposed_ns),
        ),
        size_ns=exposed_ns,
        share=share,
        next=_next(
            messages.filter(pl.col("collective") == first["collective"]), waited_share, has_calls=_has_calls(evidence)
        ),
        parts=(part_key(COMMUNICATION),),
    )


def _word(row: dict[str, Any]) -> str:
    return "communication" if row["collective"] == "other" else str(row["collective"]).replace("_", "-")


def _message(row: dict[str, Any]) -> str:
    size = "size not recorded" if row["message_bytes"] is None else f"{format_bytes(row['message_bytes'])} each"
    about = [size, *([row["dtype"]] if row["dtype"] else [])]
    about += [f"{row['group_size']:,} ranks"] if row["group_size"] is not None else []
    about += ["as its caller names it"] if _is_by_caller(row) else []
    rate = pl.DataFrame([row], infer_schema_length=None).select(bytes_per_s()).item()
    times = "once" if row["count"] == 1 else f"{row['count']:,} times, on average"
    return (
        f"{_word(row)} ({', '.join(about)}; {decode(row['kernel']).short_name}): {times} "
        f"{format_duration(row['dur_ns'] / row['count'])}, exposed for {format_duration(row['exposed_ns'])}"
        + ("." if rate is None else f"; {format_bytes(rate)} of message per second, waiting for other ranks included.")
    )


def _is_by_caller(row: dict[str, Any]) -> bool:
    """Whether neither the record nor the kernel's name says which collective it is."""
    return all(row[name] is None for name in ABOUT) and find_collective(row["kernel"]) != row["collective"]


def _waited(ranks: Ranks, place: BusiestDevice, total_ns: int) -> tuple[str, float | None]:
    """What of the collectives' time is waiting for other ranks, in words and as a share of all their time, if known."""
    rows = at_place(ranks.frame, place.rank, place.device)
    if rows.is_empty():
        return "Other ranks aren't in the trace: whether it waits for them or moves data isn't known.", None
    if not rows["compared"][0]:
        return (
            "None of it could be matched with other ranks': whether it waits for them or moves data isn't known.",
            None,
        )
    waited_ns, compared_ns, compared = (int(rows[name][0]) for name in ("waited_ns", "compared_ns", "compared"))
    of_them = waited_ns / compared_ns if compared_ns else 0.0
    return (
        (
            f"In {compared:,} collectives that could be matched, {format_duration(compared_ns)} together, it waited "
            f"{format_duration(waited_ns)} ({format_share(of_them)}) for the rank that came last; the rest is the "
            "exchange itself."
        ),
        waited_ns / total_ns if total_ns else 0.0,
    )


def _staging(launches: LaunchEvidence, place: BusiestDevice, exposed_ns: int) -> Iterator[str]:
    """Copies and casts that calls of communication make, on this device."""
    rows = launches.rows
    staging = serves(launches, rows.node) & rows.each(is_cast_or_copy)
    of_place = place.of(rows.work.with_row_index("row"))["row"].to_numpy()
    times_ns = rows.dur_ns[of_place][staging[of_place]]
    if len(times_ns) > 1 and times_ns.sum() >= _STAGED_SHARE * exposed_ns:
        yield (
            f"Besides them, {len(times_ns):,} copies and casts that calls of communication make take "
            f"{format_duration(int(times_ns.sum()))}."
        )


def _has_calls(evidence: Evidence) -> bool:
    return evidence.trace.calls.head(1).collect().height > 0


def _next(messages: pl.DataFrame, waited_share: float | None, *, has_calls: bool) -> str:
    """One thing to do about the collective that is exposed the longest; `messages` are its rows.

    `waited_share`: None where it isn't known.
    """
    if waited_share is not None and waited_share >= _MOSTLY:
        return f"Find out why a rank comes late before the exchange is tuned: {_TOGETHER}."
    collective = str(messages["collective"][0])
    if collective == "other" and not has_calls:
        return _UNCALLED
    if collective != "all_reduce":
        return _NEXT[collective]
    of_no_size = pl.col("message_bytes").is_null()
    is_short = of_no_size & (pl.col("dur_ns") <= _SHORT_NS * pl.col("count"))
    small_ns, short_ns, unknown_ns, all_ns = (
        int(messages.filter(which)["exposed_ns"].sum())
        for which in (pl.col("message_bytes") <= _SMALL_BYTES, is_short, of_no_size, pl.lit(value=True))
    )
    if small_ns + short_ns > _MOSTLY * all_ns:
        if small_ns > short_ns:
            return f"Check that all-reduces of 512 KiB and less {_ONE_SHOT}"
        return f"Their size isn't recorded, but they are short: check that all-reduces of 512 KiB and less {_ONE_SHOT}"
    return _UNKNOWN_SIZE if waited_share is None and unknown_ns > _MOSTLY * all_ns else _NEXT[collective]


RULE = Rule("exposed_collectives", _find, (_SCALE,))
