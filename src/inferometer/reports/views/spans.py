"""Named ranges with the device time that they queued."""

from collections.abc import Iterator, Sequence

from inferometer.analyses.tables.spans import SpanTable
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_share

_FIELDS = (
    Field("share", "Device Time", "share"),
    Field("busy_ns", "Device Busy", "ns"),
    Field("summed_ns", "Device Summed", "ns", spare=3),
    Field("projected_ns", "Projected", "ns", spare=4),
    Field("launches", "Launches", "count"),
    Field("own_launches", "Own Launches", "count", spare=5),
    Field("own_summed_ns", "Own Summed", "ns", spare=2),
    Field("instances", "Instances", "count", spare=1),
    Field("host_total_ns", "Host Total", "ns"),
    Field("host_mean_ns", "Host Avg", "ns", spare=6),
    Field("domain", "Domain", "text", spare=7),
    Field("span", "Name", "name", leads=True),
)
_NO_RANGES = (
    'No ranges in the selection. In PyTorch, name them with torch.profiler.record_function("name") or profiler.step(); '
    "with Nsight Systems, with NVTX (torch.cuda.nvtx.range) and --trace=cuda,nvtx; with rocprofv3, with ROCTx "
    "(roctxRangePush) and --marker-trace."
)


def _sections(table: SpanTable) -> Sequence[Section]:
    both = table.with_rest()
    fields = [field for field in _FIELDS if field.column != "domain" or both["domain"].n_unique() > 1]
    return [Section("Ranges", fields, both)]


def _remarks(table: SpanTable) -> Iterator[str]:
    if not table.ranges:
        yield _NO_RANGES
    elif not table.launches:
        yield "No device work in the selection: only times of the host are known."
    if table.frame.height < table.ranges:
        yield f"{table.frame.height:,} of {table.ranges:,} ranges shown."
    outside, unplaced = table.rest.iter_rows(named=True)
    if table.ranges and outside["launches"]:
        share = format_share(outside["share"])
        yield f"Launches in no range: {outside['launches']:,} of {table.launches:,}, {share} of the device time."
    if table.threads_differ:
        yield "No range is on a thread that queued device work: processes or threads are numbered differently."
    if table.launches and unplaced["launches"] == table.launches:
        yield "No launch can be tied to a host call: which range queued it can't be known."
    elif unplaced["launches"]:
        n = f"{unplaced['launches']:,} of {table.launches:,}"
        yield f"Launches without a call in the file: {n}. Which range queued them can't be known."
    if table.on_device:
        yield f"Spans on device tracks: {table.on_device:,}, left out because they are not ranges of the host."


VIEW = View(schema=Schema("spans", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
