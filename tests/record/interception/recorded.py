"""A sink for tests of the interception: the rows as a trace."""

import polars as pl
from tests.record.sinks import MemorySink


class Recorded(MemorySink):
    """Takes what a recording writes."""

    def rows(self, table: str) -> pl.DataFrame:
        """A table in order of time."""
        return super().rows(table).sort("start_ns", maintain_order=True)

    def ops(self) -> list[str]:
        """Names of the ops in order of time."""
        return self.rows("ops")["op"].to_list()
