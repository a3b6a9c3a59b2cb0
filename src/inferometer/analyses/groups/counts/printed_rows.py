"""Rows of a printed table of kernels as questions about counts need them: with the role that each name plays."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
import polars as pl

from inferometer.analyses.groups.counts.mixture import long_launches
from inferometer.analyses.groups.kernel_roles import Role, role_of
from inferometer.analyses.groups.members import MemberKernel, Refusal
from inferometer.names import KernelName, decode


class PrintedRow(msgspec.Struct, frozen=True, dict=True):
    """One kernel of one section. Statistics are None where they weren't printed, or the kernel has several rows."""

    kernel: str
    count: int
    total_ns: int | None
    mean_ns: float | None
    median_ns: float | None
    max_ns: int | None

    @cached_property
    def name(self) -> KernelName:
        """What the kernel's name says."""
        return decode(self.kernel)

    @cached_property
    def role(self) -> Role:
        """The part it plays in a call."""
        return role_of(self.kernel)

    @cached_property
    def long(self) -> int | None:
        """How many of its launches are far longer than the others; see `mixture`."""
        return long_launches(self.count, self.mean_ns, self.median_ns, self.max_ns)

    def part(self) -> MemberKernel:
        """All its launches as part of a role."""
        return MemberKernel(self.kernel, self.count, self.count, self.total_ns)


def printed_rows(totals: pl.DataFrame) -> list[PrintedRow]:
    """The kernels of one section that have counts, the most time first; rows of one kernel (of steps) are joined."""
    statistics = ("mean_ns", "median_ns", "max_ns")
    alone = (pl.when(pl.len() == 1).then(pl.col(column).first()).alias(column) for column in statistics)
    whole = pl.when(pl.col("total_ns").is_not_null().all()).then(pl.col("total_ns").sum()).alias("total_ns")
    rows = (
        totals.filter(pl.col("count") > 0)
        .group_by("kernel", maintain_order=True)
        .agg(pl.col("count").sum(), whole, *alone)
        .sort("total_ns", descending=True, nulls_last=True, maintain_order=True)
    )
    return [PrintedRow(**row) for row in rows.iter_rows(named=True)]


def launches(rows: Iterable[PrintedRow]) -> int:
    """The sum of their counts."""
    return sum(row.count for row in rows)


def refuse(rows: Sequence[PrintedRow], count: int, why: str) -> Refusal:
    """These rows look like a group of `count` calls, and aren't one."""
    return Refusal(tuple(row.kernel for row in rows), count, why, sum(row.total_ns or 0 for row in rows))


def by_count(rows: Sequence[PrintedRow]) -> list[PrintedRow]:
    """The most launched first."""
    return sorted(rows, key=lambda row: (-row.count, row.kernel))
