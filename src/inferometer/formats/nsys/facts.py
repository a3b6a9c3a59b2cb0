"""What is next to the events of an export: versions, devices, processes, threads, the clock's base."""

from collections.abc import Iterator

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.nsys.ids import Strings, process_of, thread_of
from inferometer.formats.nsys.tracks import Tracks
from inferometer.privacy.metadata import Search, search_metadata
from inferometer.trace.facts import Device, Facts, NamedId

_TOOL = "NVIDIA Nsight Systems"
_TOOL_VERSIONS = ("PROFILER_VERSION", "PRODUCT_VERSION", "EXPORT_PRODUCT_VERSION")
_VERSIONS = {"EXPORT_SCHEMA_VERSION": "export_schema", "CUDA_DRIVER_VERSION": "cuda_driver_version"}
_ABOUT = ("META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV")
_EXPECTED = {"CUPTI_ACTIVITY_KIND_KERNEL": "kernels", "CUPTI_ACTIVITY_KIND_RUNTIME": "calls of the host"}
_GPU_NUMBERS = ("id", "totalMemory", "smCount", "computeMajor", "computeMinor", "threadsPerWarp")


def read_facts(export: Export, strings: Strings, tracks: Tracks, format_name: str) -> Facts:
    """The facts of the whole export, whatever tables were asked for; what it lacks that most have is a note."""
    about = {**_pairs(export, "META_DATA_EXPORT"), **_pairs(export, "META_DATA_CAPTURE")}
    version = next((about[key] for key in _TOOL_VERSIONS if key in about), None)
    return Facts(
        format=format_name,
        source=export.name,
        tool=_TOOL,
        tool_version=version,
        hosts=(tracks.host,) if tracks.host else (),
        devices=_devices(export),
        processes=_processes(export),
        threads=_threads(export, strings),
        clock_base_ns=_clock_base(export),
        notes=tuple(_notes(export)),
        versions={ours: about[theirs] for theirs, ours in _VERSIONS.items() if theirs in about},
    )


def find_private(export: Export) -> Search:
    """Secrets, variables of the environment and names in what the export says of the capture and the machine."""
    return search_metadata("", {table: _pairs(export, table) for table in _ABOUT})


def _notes(export: Export) -> Iterator[str]:
    for table, what in _EXPECTED.items():
        if not export.columns(table):
            yield f"The export has no table {table}: no {what} were recorded. Record with nsys profile --trace=cuda."
        elif not export.estimate(table):
            yield f"The table {table} is empty: no {what} were recorded."


def _pairs(export: Export, table: str) -> dict[str, str]:
    return dict(read_all(export, table, [], ["name", "value"]).drop_nulls().rows())


def _devices(export: Export) -> tuple[Device, ...]:
    rows = read_all(export, "TARGET_INFO_GPU", _GPU_NUMBERS, ["name"])
    devices = []
    for row in rows.drop_nulls("id").unique("id", keep="first", maintain_order=True).sort("id").iter_rows(named=True):
        major, minor = row["computeMajor"], row["computeMinor"]
        devices.append(
            Device(
                device=f"gpu:{row['id']}",
                name=row["name"],
                memory_bytes=row["totalMemory"],
                multiprocessors=row["smCount"],
                compute_capability=None if major is None else f"{major}.{minor or 0}",
                warp_size=row["threadsPerWarp"],
            )
        )
    return tuple(devices)


def _processes(export: Export) -> tuple[NamedId, ...]:
    rows = read_all(export, "PROCESSES", ["pid"], ["name"]).drop_nulls("pid").unique("pid", keep="first").sort("pid")
    return tuple(NamedId(pid, name=name) for pid, name in rows.rows())


def _threads(export: Export, strings: Strings) -> tuple[NamedId, ...]:
    rows, packed = read_all(export, "ThreadNames", ["nameId", "globalTid"]), pl.col("globalTid")
    named = rows.with_columns(strings.find(rows["nameId"]).alias("name"))
    found = named.select(process_of(packed).alias("process"), thread_of(packed).alias("thread"), "name").drop_nulls()
    unique = found.unique(["process", "thread"], keep="first").sort("process", "thread")
    return tuple(NamedId(process, thread, name=name) for process, thread, name in unique.rows())


def _clock_base(export: Export) -> int | None:
    rows = read_all(export, "TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"])
    bases = rows["utcEpochNs"].drop_nulls()
    return int(bases[0]) if len(bases) else None
