"""Reads what rocprofv3 wrote, JSON or CSV."""

from collections.abc import Sequence

from inferometer.errors import FormatError
from inferometer.formats.rocprof.agents import describe_devices, join_devices
from inferometer.formats.rocprof.csv_files import is_csv
from inferometer.formats.rocprof.csv_reader import read_csv
from inferometer.formats.rocprof.document import Document, OutOfOrder, Reads
from inferometer.formats.rocprof.process import Process
from inferometer.formats.source import Source
from inferometer.privacy.metadata import join_names
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_device_work
from inferometer.trace.facts import Facts, NamedId
from inferometer.trace.private import count_secrets
from inferometer.trace.tables import TABLES

NAME = "rocprof"
TOOL = "rocprofv3"


def read(source: Source, out: TraceBuilder) -> Facts:
    """Read the tables that `out` wants.

    Raises:
        FormatError: It is nothing of rocprofv3.
    """
    if source.is_folder or is_csv(source.head):
        facts = read_csv(source, out, NAME, TOOL)
        check(out)
        return facts
    return _read_json(source, out)


def _read_json(source: Source, out: TraceBuilder) -> Facts:
    try:
        processes = _pass_over(source, out)
    except OutOfOrder:
        if not source.rewindable:
            raise FormatError(
                f"{source.name}: expected the kernels' names before the records, found them after these",
                hint="Save it to a file first: a file is read twice.",
            ) from None
        out.reset()
        known = _pass_over(source, TraceBuilder(()), "lookups")
        processes = _pass_over(source, out, "records", known)
    check(out)
    out.names = join_names(count_secrets(out.losses, process.private) for process in processes)
    return Facts(
        NAME,
        source.name,
        tool=TOOL,
        hosts=tuple(dict.fromkeys(process.host for process in processes if process.host)),
        devices=join_devices(describe_devices(process.agents) for process in processes),
        processes=tuple(NamedId(process.pid) for process in processes if process.pid is not None),
    )


def check(out: TraceBuilder) -> None:
    """Remarks about the rows just read."""
    check_device_work(out, whole=out.narrow("launches") == frozenset(TABLES["launches"].schema))


def _pass_over(
    source: Source, out: TraceBuilder, reads: Reads = "all", known: Sequence[Process] = ()
) -> Sequence[Process]:
    """Go through the file once; see `Document`."""
    with source.open() as stream:
        document = Document(source, stream, out, reads, known)
        document.read()
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    return document.processes
