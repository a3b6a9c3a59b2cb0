"""What can begin before polars is imported: whether a scan is enough, and the process that cuts for it."""

from inferometer.formats.kineto.cut import CutFailed, CuttingProcess, is_worth_a_process
from inferometer.formats.source import Limits, Source


def is_scan(source: Source, tables: frozenset[str] | None) -> bool:
    """Whether the launch scan may answer: launches alone are wanted, and a full read could still follow."""
    return tables is not None and tables == {"launches"} and source.rewindable


def start(source: Source, tables: frozenset[str] | None) -> None:
    """Start the cutting process where that pays; it becomes `source.ahead`. It knows the usual limits only."""
    if is_scan(source, tables) and source.path and source.limits == Limits() and is_worth_a_process(source):
        try:
            source.ahead = CuttingProcess(source.path)
        except CutFailed:
            return
