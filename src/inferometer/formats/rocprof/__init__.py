"""AMD's rocprofv3: JSON (`--output-format json`), and CSV files or a folder of these (`--output-format csv`).

Source: ROCm's rocprofiler-sdk, releases 6.2 to 7, and a file of an MI350X node (2025). Fills launches (kernels and
copies), calls (HIP and HSA), spans (ROCTx, RCCL) and kernel_counters. Modules: `document` goes through the JSON,
`records` says what is in it, `process` holds what is next to the records, `batches` makes columns of them, `rows`
makes rows of a trace from columns of any of rocprofiler's files, `agents` names devices; `csv_files` finds the files of
a folder and `csv_reader` reads them.

A grid counts work-items there: blocks are grid / workgroup, rounded up. Numbers of kinds and operations change with
the release and are looked up in the file. Streams and hardware queues are two things: several streams share a queue.
Counters have a record for each instance (XCC, shader engine), which are summed for each dispatch. Times count from
the machine's boot.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"rocprofiler-sdk-tool"')


def _sniff(head: bytes) -> bool:
    """JSON by its first key, CSV by its header."""
    from inferometer.formats.rocprof.csv_files import is_csv

    return _JSON.match(head) is not None or is_csv(head)


def _sniff_path(path: Path) -> bool:
    """A folder with CSV files of rocprofv3, or with such folders of hosts."""
    from inferometer.formats.rocprof.csv_files import is_run

    return path.is_dir() and is_run(path)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.rocprof.reader import read

    return read(source, out)


FORMAT = Format(
    name="rocprof",
    title="AMD's rocprofv3: JSON, *_kernel_trace.csv and its fellows, or the folder of these",
    suffixes=(".json", ".json.gz", ".csv", ".csv.gz"),
    sniff=_sniff,
    sniff_path=_sniff_path,
    read=_read,
    tables=frozenset({"launches", "calls", "spans", "kernel_counters"}),
    limits=(
        "Allocations, scratch memory, PC samples and other records that have no table of ours are counted by name, not "
        "read. The command line is never kept. CSV files hold no bytes of copies and no host. Its "
        "Perfetto traces have a reader of their own."
    ),
    recorded_by=(
        "rocprofv3 --kernel-trace --hip-trace --memory-copy-trace --marker-trace --rccl-trace --output-format json "
        "-- python app.py"
    ),
    aliases=("rocprofv3", "rocprofiler"),
)
