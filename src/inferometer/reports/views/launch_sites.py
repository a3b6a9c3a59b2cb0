"""Device time by who launched it, and how that is known."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.launched_by.remarks import WORDS
from inferometer.analyses.launched_by.site_times import REASONS, LaunchSites
from inferometer.analyses.launched_by.sites import By
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.view import View
from inferometer.units import format_share

_TITLES: dict[By, str] = {
    "op": "Ops, outermost first",
    "module": "Module",
    "frame": "Frame",
    "user-frame": "Frame in user code",
    "span": "Range",
    "region": "Compiled region",
}
_SAID = {
    "call": "by the host call that queued it",
    "external_id": "by the op whose id it carries",
    "captured": "captured into a graph: a call without device time",
    "graph_launch": "by the call that launched its graph",
    "graph_alignment": "its place in the sequence of a graph's kernels",
    "graph_node": "the node of its graph, known from another replay",
    "node_creation": "the node of its graph, known since it was made",
}


def _sections(sites: LaunchSites) -> Sequence[Section]:
    fields = (
        Field("share", "Time", "share"),
        Field("total_ns", "Total Time", "ns"),
        Field("count", "Launches", "count"),
        Field("mean_ns", "Avg", "ns", spare=2),
        Field("kernel_count", "Kernels", "count", spare=1),
        Field("key", _TITLES[sites.by], "name", leads=True),
    )
    return [Section("Launches", fields, sites.to_polars()), _how(sites)]


def _how(sites: LaunchSites) -> Section:
    rows = [{"how": how, "total_ns": ns, "share": ns / sites.total_ns if sites.total_ns else None, "meaning": _say(how)}
            for how, ns in sites.by_how.items()]  # fmt: skip
    schema = {"how": pl.String, "total_ns": pl.Int64, "share": pl.Float64, "meaning": pl.String}
    fields = (
        Field("share", "Time", "share"),
        Field("total_ns", "Total Time", "ns"),
        Field("how", "How", "text"),
        Field("meaning", "Meaning", "sentence", spare=1),
    )
    return Section("How they were attributed", fields, pl.DataFrame(rows, schema=schema))


def _remarks(sites: LaunchSites) -> Iterator[str]:
    yield from say_rest(sites.frame.height, sites.keys)
    if sites.total_ns:
        share = format_share(sites.attributed_ns / sites.total_ns)
        yield f"{share} of the device time is attributed to {WORDS[sites.by]}."
    yield from sites.notable


def _say(how: str) -> str:
    return _SAID.get(how) or REASONS[how]


VIEW = View(schema=Schema("launches", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
