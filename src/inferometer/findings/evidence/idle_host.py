"""Idle time because the host was late: what it did meanwhile, and the advice that fits that."""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.timeline.host_activity import HostActivity, find_activity
from inferometer.findings.evidence.host_path import HostPath, describe_site, find_host_path, longest_ops, outermost_op
from inferometer.findings.evidence.idle_kinds import count_gaps
from inferometer.findings.evidence.idle_words import MOSTLY, Words, describe_activity, describe_size
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice
from inferometer.findings.rule import Evidence
from inferometer.names.apis import api_kind
from inferometer.units import format_counted, format_duration, format_share

_SITES = 2  # places in the code to name
_SITE_SHARE = 0.1  # of the time: less is not worth a sentence
_SPREAD = 0.5  # of the window: calls that come again over so much of it are no beginning
_OFTEN = 10  # slow calls
_WARM_UP = (
    "Warm up before the profiler starts, or leave this part out (--between): code is loaded, libraries start and "
    "memory is mapped only once."
)
_KEEP_MEMORY = (
    "Keep the memory: no torch.cuda.empty_cache() between steps, buffers allocated once, "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where fragments are given back."
)
_CAPTURE = (
    "This is the capture of a graph, not a run of it: profile its replays, and give them this file as their capture "
    "(inferometer launches REPLAY --capture THIS_FILE)."
)
_AHEAD = (
    "Launch the next replay before the last has ended, without a wait of the host between them: what {api} takes is "
    "then behind the device's work. It takes longer while each node is traced, and the first time (cudaGraphUpload "
    "before it)."
)
_ONE_BY_ONE = (
    "Launch less, one by one: replay a CUDA graph (torch.compile(mode='reduce-overhead'); in vLLM without "
    "--enforce-eager, in SGLang without --disable-cuda-graph)."
)


def describe_host(evidence: Evidence, launches: LaunchEvidence, place: BusiestDevice, gaps: pl.DataFrame) -> Words:
    """Title, evidence and next step of idle time of the kind `host`."""
    ends = (pl.col("gap_start_ns") + pl.col("gap_ns")).alias("end_ns")
    stretches = gaps.select("rank", "process", "thread", pl.col("gap_start_ns").alias("start_ns"), ends)
    captured = launches.attribution.launches.filter("is_captured").select("rank", "process", "thread", "called_ns")
    activity = find_activity(evidence.trace, stretches, captured)
    called = launches.work.filter(launches.is_alone).select("rank", "process", "thread", "called_ns")
    path = find_host_path(evidence.trace, gaps, called)
    sites = _sites(launches, gaps)
    return Words(
        f"waits {{share}} of its time for the host{_where(activity, path, sites)}",
        (
            _size(launches, place, gaps),
            *_beside(place.of(launches.gaps.filter(pl.col("kind") == "launching"))),
            *describe_activity(activity),
            *_path(path),
            *([] if path else _ops(evidence, gaps)),
            *_ended(sites, activity.total_ns),
        ),
        _next(evidence, activity, path, place),
    )


def _size(launches: LaunchEvidence, place: BusiestDevice, gaps: pl.DataFrame) -> str:
    after = gaps.filter(pl.col("waited_in").is_not_null())
    waited = ""
    if after.height:
        names = ", ".join(sorted(after["waited_in"].cast(pl.String).unique()))
        waited = f" {format_duration(int(after['gap_ns'].sum()))} of it follow a wait of the host ({names})."
    return (
        f"Idle for {describe_size(place, gaps)}{launches.a_step(int(gaps['gap_ns'].sum()))}, because the call for the "
        f"next work returned only after the device had gone idle.{waited}"
    )


def _beside(launching: pl.DataFrame) -> Iterator[str]:
    """What `timeline` calls `host_late` too, and this finding leaves out."""
    if launching.height:
        count, longest_ns = count_gaps(launching)
        more = f"{format_counted(count, 'more gap')} of up to {format_duration(longest_ns)}"
        verb = "is" if count == 1 else "are"
        idle = format_duration(int(launching["gap_ns"].sum()))
        yield f"Not counted here: {more} {verb} the rhythm of launching one by one, {idle} in all."


def _where(activity: HostActivity, path: HostPath | None, sites: list[tuple[str | None, int]]) -> str:
    """What the host did, or where it was, or else what it launched next, as the end of the title."""
    least = MOSTLY * activity.total_ns
    if activity.time_ns("capture") > least:
        return ", which captures a graph"
    if graph := _graph_launch(activity):
        return f", which is mostly in {graph}"
    if activity.time_ns("slow_call", "compiling") > least:
        return f", which is mostly in {_slow_words(activity)}"
    for kind in ("allocation", "copy", "wait"):
        if activity.time_ns(kind) > least:
            return f", which is mostly in {_first_api(activity, kind)}"
    if path is not None and path.launches < MOSTLY:
        return f", which is in {path.name}"
    site, site_ns = next(iter(sites), (None, 0))
    return f", mostly before it launches {site}" if site and site_ns > least else ""


def _graph_launch(activity: HostActivity) -> str | None:
    """The call that launches graphs, where most of the time is in such calls, short or long."""
    calls = activity.calls.with_columns(pl.col("api").cast(pl.String))
    graphs = calls.filter(pl.Series([api_kind(api) == "graph" for api in calls["api"]], dtype=pl.Boolean))
    if int(graphs["time_ns"].sum()) <= MOSTLY * activity.total_ns:
        return None
    return str(graphs.sort("time_ns", descending=True)["api"][0])


def _slow_words(activity: HostActivity) -> str:
    calls = activity.calls.filter(pl.col("activity") == "slow_call")
    if activity.time_ns("compiling") > activity.time_ns("slow_call"):
        return "compilers and tuners"
    first = calls.row(0, named=True)
    return f"slow calls ({first['api']}{', …' if calls.height > 1 else ''})"


def _first_api(activity: HostActivity, kind: str) -> str:
    return str(activity.calls.filter(pl.col("activity") == kind)["api"][0])


def _path(path: HostPath | None) -> Iterator[str]:
    if path is not None:
        yield (
            f"For {format_duration(path.open_ns)} of these {format_duration(path.total_ns)} "
            f"({format_share(path.open_ns / path.total_ns)}) it was in {path.text}."
        )


def _ops(evidence: Evidence, gaps: pl.DataFrame) -> Iterator[str]:
    """Where nothing was open for most of the time, the ops that were open the longest."""
    total_ns = int(gaps["gap_ns"].sum())
    stated = [
        f"{name} ({format_duration(open_ns)})"
        for name, open_ns in longest_ops(evidence.trace, gaps, _SITES)
        if open_ns >= _SITE_SHARE * total_ns
    ]
    if stated:
        yield f"The ops that were open the longest meanwhile: {', '.join(stated)}."


def _sites(launches: LaunchEvidence, gaps: pl.DataFrame) -> list[tuple[str | None, int]]:
    """What launched the work that ended the gaps, and the gaps' time; the most first."""
    columns = ("op", "user_frame")
    sites = launches.attribution.sites.select("node", pl.col("op_chain").alias("op"), "user_frame")
    sites = sites.with_columns(outermost_op("op"))
    known = gaps.select("node", "gap_ns").join(sites, on="node", how="left")
    sums = known.group_by(columns).agg(pl.col("gap_ns").sum()).sort("gap_ns", *columns, descending=[True, False, False])
    return [(describe_site(op, frame), int(ns)) for op, frame, ns in sums.head(_SITES).iter_rows()]


def _ended(sites: list[tuple[str | None, int]], idle_ns: int) -> Iterator[str]:
    stated = [(site, ns) for site, ns in sites if site and ns >= _SITE_SHARE * idle_ns]
    if stated:
        listed = ", ".join(f"{site} ({format_duration(ns)})" for site, ns in stated)
        yield f"The work that ended the gaps is launched by {listed}."


def _next(evidence: Evidence, activity: HostActivity, path: HostPath | None, place: BusiestDevice) -> str:
    least = MOSTLY * activity.total_ns
    if evidence.trace.facts.framework == "WebGPU":
        return (
            "Put more decode steps into a submit, or record the next one before the tokens of the last are read back: "
            "see how steps part into recording, submitting, waiting and reading, inferometer spans."
        )
    if activity.time_ns("capture") > least:
        return _CAPTURE
    if graph := _graph_launch(activity):
        return _AHEAD.format(api=graph)
    if activity.time_ns("slow_call", "compiling", "allocation") > least:
        return _KEEP_MEMORY if _comes_again(activity, place) else _WARM_UP
    if activity.time_ns("copy") > least:
        return (
            "Copy from or to pinned memory with non_blocking=True, and read what comes back a step later: the copy "
            f"({_first_api(activity, 'copy')}) holds the host."
        )
    if activity.time_ns("wait") > least:
        return (
            f"Find what {_first_api(activity, 'wait')} waits for while this device has no work: another device, "
            "another rank, or a host function on a stream."
        )
    if path is None and evidence.trace.facts.format == "xplane":
        return (
            "See what JAX and XLA do between the launches: inferometer tree, or the lanes of inferometer report. Where "
            "Python's functions are missing, record with python_tracer_level = 1 in jax.profiler.ProfileOptions."
        )
    if path is None and activity.time_ns("op") > least:
        return "See which lines call these ops: record with torch.profiler with with_stack=True, then inferometer tree."
    if path is None:
        return (
            "Record the host's side, and see what it does meanwhile: torch.profiler with with_stack=True, or nsys "
            "profile --python-sampling=true --trace=cuda,nvtx,osrt."
        )
    if path.launches >= MOSTLY:
        return f"See what {path.name} does between its launches: inferometer tree. {_ONE_BY_ONE}"
    return f"Queue the next work before {path.name}, or do that on another thread or on the device."


def _comes_again(activity: HostActivity, place: BusiestDevice) -> bool:
    """Whether slow calls are many, and spread over the window: then they are no beginning."""
    calls = activity.calls.filter(pl.col("activity").is_in(["slow_call", "allocation"]))
    first = calls.filter(pl.col("time_ns") >= MOSTLY * pl.col("time_ns").max())
    if int(first["count"].sum()) < _OFTEN:
        return False
    spread_ns = int(first["last_ns"].max()) - int(first["first_ns"].min())  # type: ignore[arg-type]
    return spread_ns >= _SPREAD * place.window_ns
