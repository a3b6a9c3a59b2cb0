"""Ingestion of Kineto files: `inferometer` next to HolisticTraceAnalysis and `json.load`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.answers import (
    check_compare,
    check_compare_of_start,
    check_findings,
    check_help,
    check_import,
    check_kernels,
    check_report,
    check_summary,
    read_peer,
)
from benchmarks.bars import (
    GB,
    MIB,
    Bar,
    growth,
    peak,
    ratio,
    seconds,
    show_factor,
    show_fraction,
    show_gb,
    show_mib,
    show_seconds,
)
from benchmarks.cases import REPETITIONS, REPETITIONS_LARGE, TOOL, Case, ours, peer
from benchmarks.suite import Suite
from benchmarks.trace_files import TraceFile, make_gzip, make_ranks, make_trace_file

_STEPS: Final = {"full": (215, 860), "small": (1, 4)}  # full: 504 MB and 2.0 GB
_RANKS: Final = {"full": (21, 40), "small": (1, 2)}  # steps, ranks; full: 40 files of 49 MB
_CHANGED: Final = ("--slow silu 6", "silu")  # of the candidate
_HTA_S: Final = 34.6  # that HTA took for 504 MB where bars were set in seconds


def _make_cases(size: str, cache: Path, peer_python: Path | None) -> tuple[list[Case], list[TraceFile]]:
    steps, steps_large = _STEPS[size]
    plain, large = make_trace_file(steps, cache), make_trace_file(steps_large, cache)
    packed = make_gzip(plain)
    start, ranks = make_trace_file(1, cache), make_ranks(*_RANKS[size], cache)
    candidate = make_trace_file(steps, cache, "slow", _CHANGED[0])
    cases = [*_plain(plain, packed), *_large(large), *_start(start)]
    cases += _ranks(ranks)
    if size == "full" and sys.platform == "linux":  # small files may be in memory; macOS doesn't let go of a file
        cases += _from_disk(plain, packed, large, ranks)
    cases.append(_compare(plain, candidate, is_full=size == "full"))
    cases.append(peer("json-load", "json.load and a sum", Path(sys.executable), "json_load.py", plain, read_peer))
    if peer_python is not None:
        script = "hta_breakdown.py"
        cases.append(peer("hta", "HTA, its defaults", peer_python, script, plain, read_peer))
        cases.append(peer("hta-fastest", "HTA, its fastest", peer_python, script, plain, read_peer, "--fastest"))
    return cases, [plain, packed, candidate, large, ranks, start]


def _plain(file: TraceFile, packed: TraceFile) -> Iterator[Case]:
    store, truth = file.path.with_suffix(".ifm"), file.truth
    of_packed = packed.path.with_suffix(".ifm")
    yield ours("kernels", "kernels", file.path, truth, check_kernels, "--json")
    yield ours("kernels-gz", "kernels", packed.path, truth, check_kernels, "--json")
    yield ours("import", "import", file.path, truth, check_import, "-o", store, "--json", makes=store)
    yield ours("import-gz", "import", packed.path, truth, check_import, "-o", of_packed, "--json", makes=of_packed)
    yield ours("kernels-store", "kernels", store, truth, check_kernels, "--json")
    yield ours("summary", "summary", file.path, truth, check_summary)
    yield ours("summary-gz", "summary", packed.path, truth, check_summary)
    yield ours("findings", "findings", file.path, truth, check_findings, "--json")
    page = file.path.with_suffix(".html")
    yield ours("report", "report", file.path, truth, partial(check_report, made=page), "-o", page, "--json", makes=page)
    yield Case("help", "inferometer --help", (TOOL, "--help"), None, check_help, REPETITIONS)


def _large(file: TraceFile) -> Iterator[Case]:
    store, truth, some = file.path.with_suffix(".ifm"), file.truth, REPETITIONS_LARGE
    yield ours("kernels-large", "kernels", file.path, truth, check_kernels, "--json", repetitions=some)
    yield ours(
        "import-large", "import", file.path, truth, check_import, "-o", store, "--json", repetitions=some, makes=store
    )
    yield ours("kernels-store-large", "kernels", store, truth, check_kernels, "--json", repetitions=some)


def _ranks(folder: TraceFile) -> Iterator[Case]:
    store, truth, some = folder.path.with_suffix(".ifm"), folder.truth, REPETITIONS_LARGE
    yield ours("kernels-ranks", "kernels", folder.path, truth, check_kernels, "--json", repetitions=some)
    yield ours(
        "import-ranks", "import", folder.path, truth, check_import, "-o", store, "--json", repetitions=some, makes=store
    )


def _from_disk(plain: TraceFile, packed: TraceFile, large: TraceFile, ranks: TraceFile) -> Iterator[Case]:
    """The first look at a profile: nothing of it is in memory."""
    for name, file in (("", plain), ("-gz", packed), ("-large", large), ("-ranks", ranks)):
        yield ours(
            f"kernels{name}-disk", "kernels", file.path, file.truth, check_kernels, "--json",
            repetitions=REPETITIONS_LARGE, from_disk=True,
        )  # fmt: skip


def _start(file: TraceFile) -> Iterator[Case]:
    """What an answer takes where nearly nothing is read."""
    yield ours("kernels-start", "kernels", file.path, file.truth, check_kernels, "--json")
    yield ours("summary-start", "summary", file.path, file.truth, check_summary)


def _compare(file: TraceFile, candidate: TraceFile, *, is_full: bool) -> Case:
    gated = partial(check_compare, candidate=candidate.truth, changed=_CHANGED[1])
    check = gated if is_full else check_compare_of_start
    return ours("compare", "compare", file.path, file.truth, check, candidate.path, "--json")


_BARS: Final = (
    Bar("`kernels`: time over HTA's", 1 / 50, show_fraction, ratio("kernels", "hta")),
    Bar("`kernels`: peak memory", 220 * MIB, show_mib, peak("kernels")),
    Bar("`kernels`, large file: peak memory", 600 * MIB, show_mib, peak("kernels-large")),
    Bar("`kernels`: time ratio over size ratio, large file", 0.85, show_factor, growth("kernels-large", "kernels")),
    Bar("`import`: time over HTA's", 1 / 16, show_fraction, ratio("import", "hta")),
    Bar("`import`: peak memory", 500 * MIB, show_mib, peak("import")),
    Bar("`import`, large file: peak memory", 1.2 * GB, show_gb, peak("import-large")),
    Bar("`summary`: time over HTA's", 1 / 13, show_fraction, ratio("summary", "hta")),
    Bar("`summary`: peak memory", 500 * MIB, show_mib, peak("summary")),
    Bar("`findings`: time over HTA's", 1 / 13, show_fraction, ratio("findings", "hta")),
    Bar("`findings`: peak memory", 500 * MIB, show_mib, peak("findings")),
    Bar("`report`: time over HTA's", 1 / 10, show_fraction, ratio("report", "hta")),
    Bar("`compare` of two: time over HTA's of one", 4 / _HTA_S, show_fraction, ratio("compare", "hta")),
    Bar(
        "`kernels`, 40 ranks: time ratio over size ratio, large file",
        1.2,
        show_factor,
        growth("kernels-ranks", "kernels-large"),
    ),
    Bar(
        "`kernels`, from disk, 40 ranks: time ratio over size ratio, large file",
        1.2,
        show_factor,
        growth("kernels-ranks-disk", "kernels-large-disk"),
    ),
    Bar(
        "`import`, 40 ranks: time ratio over size ratio, large file",
        1.2,
        show_factor,
        growth("import-ranks", "import-large"),
    ),
    Bar("`kernels` of 2 MB: time over HTA's of 504 MB", 0.25 / _HTA_S, show_fraction, ratio("kernels-start", "hta")),
    Bar("`summary` of 2 MB: time over HTA's of 504 MB", 0.4 / _HTA_S, show_fraction, ratio("summary-start", "hta")),
    Bar("`kernels` from the store: time", 1.0, show_seconds, seconds("kernels-store")),
    Bar("`kernels`, `.json.gz` over plain: time", 1.15, show_factor, ratio("kernels-gz", "kernels")),
    Bar(
        "`kernels`, from disk, `.json.gz` over plain: time",
        1.15,
        show_factor,
        ratio("kernels-gz-disk", "kernels-disk"),
    ),
    Bar("`import`, `.json.gz` over plain: time", 1.15, show_factor, ratio("import-gz", "import")),
    Bar("`summary`, `.json.gz` over plain: time", 1.15, show_factor, ratio("summary-gz", "summary")),
    Bar("`--help`: time", 0.3, show_seconds, seconds("help")),
    Bar("`kernels`: time over HTA's fastest", None, show_fraction, ratio("kernels", "hta-fastest")),
    Bar("`import`: time over HTA's fastest", None, show_fraction, ratio("import", "hta-fastest")),
    Bar("`kernels`: time over `json.load`'s", None, show_fraction, ratio("kernels", "json-load")),
    Bar("`import`: time ratio over size ratio, large file", None, show_factor, growth("import-large", "import")),
    Bar("`kernels` from the large file's store: time", None, show_seconds, seconds("kernels-store-large")),
)

_NOTES: Final = """\
- Every output of ours, also of the timed runs, agreed with the generator's truth before a time was written.
- HTA is HolisticTraceAnalysis from PyPI: load, then `get_gpu_kernel_breakdown(visualize=False)`. The bars are on its
  defaults. Its fastest settings known are measured too: the ijson backend, which leaves Python frames unread, and the
  least arguments.
- The folder of ranks holds about the bytes of the large file. Where a bar was set in seconds, its limit here is its
  share of the time that HTA took then. `compare` is of two files with one kernel that was made slower.
- Files are in the page cache, as they are once they were read. In the cases *from disk* they were taken out of it
  before each run, as they are when somebody first opens them.
- Peers ran on the smaller file only: on the large one they would take too long, and nothing is extrapolated.
- AMD's TraceLens is left out: it isn't on PyPI (the package of that name there is another project)."""

SUITE: Final = Suite(
    name="ingest",
    title="Ingestion: speed and memory",
    make_cases=_make_cases,
    bars=_BARS,
    notes=_NOTES,
    libraries=("polars", "msgspec", "isal", "numpy"),
    peers=("HolisticTraceAnalysis", "pandas", "numpy", "ijson"),
)
