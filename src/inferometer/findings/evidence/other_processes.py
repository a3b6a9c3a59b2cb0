"""Whether other processes computed on a device, as the recording's counters say: their work isn't in its file."""

import msgspec
import polars as pl

from inferometer.trace.trace import Trace
from inferometer.units import format_counted

_METRIC = "others_gpu_processes"
_MOST = 0.5


class OtherProcesses(msgspec.Struct, frozen=True):
    """`busy` of `samples` found at least one other process that computes on `device`; `busy` is above 0."""

    device: str
    busy: int
    samples: int

    @property
    def is_usual(self) -> bool:
        """Whether most samples found one."""
        return self.busy > _MOST * self.samples

    def in_words(self) -> str:
        """The sentence of evidence."""
        samples = format_counted(self.samples, "sample")
        return (
            f"In {self.busy:,} of {samples} of its counters another process computed on {self.device}: its work isn't "
            "in the file, and may be what this work waited for."
        )


def other_processes(trace: Trace, device: str | None) -> OtherProcesses | None:
    """None where no sample found any, none was taken, or counters weren't read."""
    if device is None or "counters" not in trace.scope:
        return None
    counts = (
        trace.counters.filter(pl.col("metric") == _METRIC, pl.col("device") == device)
        .select("value")
        .collect()["value"]
    )
    busy = int((counts > 0).sum())
    return OtherProcesses(device, busy, counts.drop_nulls().len()) if busy else None
