"""The published part of an operator: importance, shapes, and the figures next to them; `NAME.json`."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

PROFILES = 1_303
"""Production profiles that shapes and importance are from."""

_RUNS = "seq_lens"  # lists of equal lengths are written as [[length, how many], ...]


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures of one shape, as they were published.

    `t_sol_ns` and `t_prod_ns` are by platform: a bound, and the time of a deployed kernel from `implementation`.
    """

    flops: int
    read_bytes: int
    written_bytes: int
    t_sol_ns: dict[str, float]
    t_prod_ns: dict[str, float]
    implementation: str

    def sol_fraction(self, platform: str) -> float | None:
        """The published bound over the deployed time; None where that wasn't published."""
        measured = self.t_prod_ns.get(platform)
        return None if measured is None else self.t_sol_ns[platform] / measured


class Traced(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where in production it was seen: frameworks, ranks of tensor parallelism, calls and their time in the traces."""

    frameworks: tuple[str, ...]
    tensor_parallel: int | None = None
    tensor_parallel_inferred: bool = False
    kernel: str | None = None
    shape: str | None = None
    calls: int | None = None
    total_ns: int | None = None

    @property
    def mean_ns(self) -> float | None:
        """Mean time of a call."""
        return None if self.total_ns is None or not self.calls else self.total_ns / self.calls


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published call. `args` are the keywords of the operator's functions; `flags` what is odd about it."""

    index: int
    label: str
    args: dict[str, Any]
    traced: Traced
    published: Published
    flags: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was published of one operator.

    `importance`: its share of GPU time over `profiles` of 1,303 production profiles; the shares of all add up to
    1.09, as profiles overlap. `status`: from traces, `curated`, or `unpublished`: then there are no shapes. `dtype`:
    whose peak its work is charged to.
    """

    source: str
    id: str
    operator: str
    dtype: str
    status: str
    phase: str
    importance: float
    profiles: int
    upstream: dict[str, str]
    shapes: tuple[Shape, ...]

    def shape(self, index: int) -> Shape | None:
        """The one of this published index; there are gaps."""
        return next((shape for shape in self.shapes if shape.index == index), None)


@cache
def read_catalogue(operator: str, package: str) -> Catalogue:
    """What `OPERATOR.json` of a package holds; of an operator without that file nothing is published."""
    from importlib.resources import files

    file = files(package) / f"{operator}.json"
    if not file.is_file():
        return _unpublished(operator)
    found = msgspec.json.decode(file.read_bytes(), type=Catalogue)
    shapes = tuple(msgspec.structs.replace(shape, args=_expand(shape.args)) for shape in found.shapes)
    return msgspec.structs.replace(found, shapes=shapes)


def _unpublished(operator: str) -> Catalogue:
    return Catalogue(
        source="", id="", operator=operator, dtype="", status="unpublished", phase="", importance=0.0, profiles=0,
        upstream={}, shapes=(),
    )  # fmt: skip


def _expand(args: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of runs as lists."""
    return {
        name: [length for length, times in value for _ in range(times)] if name == _RUNS else value
        for name, value in args.items()
    }
