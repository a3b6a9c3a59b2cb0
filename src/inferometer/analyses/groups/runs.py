"""From pairs to groups: runs of launches that belong together, joined over variants, optional roles and ops.

A run is what one call launched on one stream. Runs of one op with the same roles in order are one group, whatever
variants filled the roles. A run that lacks some roles of a longer one of the same op belongs to it; these roles are
optional. So an op that calls several library functions is one group, and isn't split. The same roles in another op are
the same library call from another site. A run without an op goes to the group that launched the very same kernels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.groups.kernel_roles import Role, role_of
from inferometer.analyses.groups.ordered_launches import NONE, Ordered

Roles = tuple[str, ...]


class RunGroup(msgspec.Struct):
    """Runs of one kind: `roles` in order; per role, the kernels (numbers in `Ordered.kernels`) with launches and ns.

    `count` runs, `by_name` of them without an op, the others of so many `calls` of ops; `present`: runs that have the
    role; `ops` and how many runs have them. `pairs` of folded names; `signatures`, rows of the frame of runs that were
    joined.
    """

    roles: Roles
    count: int = 0
    by_name: int = 0
    calls: int = 0
    present: Counter[str] = msgspec.field(default_factory=Counter)
    kernels: defaultdict[str, Counter[int]] = msgspec.field(default_factory=lambda: defaultdict(Counter))
    ns: Counter[int] = msgspec.field(default_factory=Counter)
    ops: Counter[str] = msgspec.field(default_factory=Counter)
    pairs: set[tuple[int, int]] = msgspec.field(default_factory=set)
    signatures: list[int] = msgspec.field(default_factory=list)

    @property
    def is_parted(self) -> bool:
        """Whether several of its runs are of one call of an op."""
        return 0 < self.calls < self.count - self.by_name

    def absorb(self, other: "RunGroup") -> None:
        """Take the runs of `other`, whose roles are among ours."""
        self.count += other.count
        self.by_name += other.by_name
        self.present += other.present
        for role, kernels in other.kernels.items():
            self.kernels[role] += kernels
        self.ns += other.ns
        self.ops += other.ops
        self.pairs |= other.pairs
        self.signatures += other.signatures


class Runs(msgspec.Struct, frozen=True):
    """`groups`, and the `signature` of each run that they hold.

    `rows` of all launches in runs, in order; `run` of each, a place in `signature`.
    """

    groups: list[RunGroup]
    roles: dict[str, Role]
    signature: NDArray[np.int64]
    rows: NDArray[np.int64]
    run: NDArray[np.int64]


def find_runs(work: Ordered, together: NDArray[np.bool_]) -> Runs:
    """The groups that the launches form; `together[i]` says that launch i + 1 is of the same call as launch i."""
    roles = [role_of(kernel) for kernel in work.kernels]
    rows, run = _rows_of_runs(together)
    launches = pl.DataFrame(
        {
            "run": run,
            "row": rows,
            "kernel": work.kernel[rows],
            "dur_ns": work.dur_ns[rows],
            "op": work.op_name[rows],
            "op_row": work.op[rows],
        }
    )
    runs = launches.group_by("run", maintain_order=True).agg("kernel", pl.col("op", "op_row").max())
    runs = runs.filter(~_is_nameless(roles))
    kinds = (
        runs.group_by("kernel", "op")
        .agg(pl.len().alias("count"))
        .sort("count", "kernel", "op", descending=[True, False, False])
    )
    kinds = kinds.with_row_index("signature").with_columns(pl.col("signature").cast(pl.Int64))
    signed = runs.join(kinds.select("kernel", "op", "signature"), on=["kernel", "op"], maintain_order="left")
    times = (
        launches.join(signed.select("run", "signature"), on="run")
        .group_by("signature", "kernel")
        .agg(pl.col("dur_ns").sum())
    )
    spent: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for signature, kernel, ns in times.iter_rows():
        spent[signature][kernel] = ns
    groups = [_one_kind(work, roles, spent[kind["signature"]], **kind) for kind in kinds.iter_rows(named=True)]
    joined = _across_ops(_joined(groups))
    _count_calls(joined, signed)
    placed = signed.select("run").with_row_index("place")
    kept = launches.select("run", "row").join(placed, on="run", maintain_order="left")
    return Runs(
        groups=joined,
        roles={role.key: role for role in roles},
        signature=signed["signature"].to_numpy(),
        rows=kept["row"].cast(pl.Int64).to_numpy(),
        run=kept["place"].cast(pl.Int64).to_numpy(),
    )


def _count_calls(groups: Sequence[RunGroup], runs: pl.DataFrame) -> None:
    """How many calls of ops the runs of each group are of: two runs of one call are parted by other launches."""
    of = pl.DataFrame(
        {
            "signature": [signature for group in groups for signature in group.signatures],
            "group": [number for number, group in enumerate(groups) for _ in group.signatures],
        },
        schema={"signature": pl.Int64, "group": pl.Int64},
    )
    called = runs.filter(pl.col("op_row") != NONE).join(of, on="signature")
    for number, calls in called.group_by("group").agg(pl.col("op_row").n_unique()).iter_rows():
        groups[number].calls = calls


def _rows_of_runs(together: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Rows of launches that have a companion, and the number of the run that each is in."""
    after = np.zeros(len(together), dtype=np.bool_)
    after[1:] = together[:-1]
    rows = np.flatnonzero(together | after)
    return rows, np.cumsum(~after, dtype=np.int64)[rows]


def _is_nameless(roles: Sequence[Role]) -> pl.Expr:
    """Runs of copies and fills alone without an op: these have no names that another run could teach."""
    moves = pl.Series([number for number, role in enumerate(roles) if role.key.startswith("runtime ")], dtype=pl.Int64)
    return (pl.col("op") == NONE) & pl.col("kernel").list.eval(pl.element().is_in(moves.implode())).list.all()


def _one_kind(
    work: Ordered, roles: Sequence[Role], ns: dict[int, int], *, kernel: list[int], op: int, count: int, signature: int
) -> RunGroup:
    """Runs of the same kernels in the same op."""
    keys = [roles[each].key for each in kernel]
    group = RunGroup(tuple(dict.fromkeys(keys)), count, count if op == NONE else 0)
    for each, key in zip(kernel, keys, strict=True):
        group.kernels[key][each] += count
    group.present = Counter(dict.fromkeys(group.roles, count))
    group.ns = Counter(ns)
    group.ops = Counter({} if op == NONE else {work.ops[op]: count})
    folds = [int(work.fold_of_kernel[each]) for each in kernel]
    group.pairs = set(pairwise(folds))
    group.signatures = [signature]
    return group


def _joined(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """Groups of one op whose roles are the same, or among those of a longer one, made one; also runs without an op."""
    found: list[RunGroup] = []
    in_order = sorted(groups, key=lambda group: (not group.ops, -len(group.roles), -group.count))
    for group in in_order:
        hosts = [
            other for other in found if _is_among(group.roles, other.roles) and (group.ops.keys() <= other.ops.keys())
        ]
        if not hosts:
            found.append(group)
            continue
        best = max(hosts, key=lambda other: (_holds(other, group), other.roles == group.roles, other.count))
        best.absorb(group)
    return found


def _holds(host: RunGroup, group: RunGroup) -> bool:
    """Whether a run without an op launched only kernels that `host` did: a forward and a backward share roles.

    Runs of an op have theirs, whichever variants it chose.
    """
    return bool(group.ops) or all(
        kernels.keys() <= host.kernels[role].keys() for role, kernels in group.kernels.items()
    )


def _is_among(roles: Roles, longer: Roles) -> bool:
    """Whether `roles` stand in `longer` in this order, others perhaps between."""
    rest = iter(longer)
    return all(role in rest for role in roles)


def _across_ops(groups: Iterable[RunGroup]) -> list[RunGroup]:
    by_roles: dict[Roles, RunGroup] = {}
    for group in groups:
        if group.roles in by_roles:
            by_roles[group.roles].absorb(group)
        else:
            by_roles[group.roles] = group
    return list(by_roles.values())
