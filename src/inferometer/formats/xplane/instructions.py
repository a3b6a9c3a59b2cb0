"""HLO instructions: which one each launch belongs to, as rows of `ops` and `frames`, and what XLA says of its work.

An instruction is an op, its compiled program a module, and the line of the user's source a frame. They stand at the
host call that queued the launch, where the file has that and it queued nothing else; or else at the launch itself, on
a thread of its own for each device, to which `external_id` leads. Flops and bytes are the compiler's model: they have
a table of their own, `hlo_ops`, and nothing else takes them for measured, or for this package's model.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from inferometer.formats.xplane.plane import Plane, Value, text
from inferometer.trace.builder import TraceBuilder

TABLES = ("ops", "frames", "hlo_ops")
LAUNCHED = {  # of each launch that names its instruction
    "external_id": pl.Int64,
    "correlation_id": pl.Int64,
    "process": pl.Int64,
    "device": pl.String,
    "op": pl.String,
    "module": pl.String,
    "frame": pl.String,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
}
_WORK = ("flops", "model_flops", "bytes_accessed")
_LINE = re.compile(r"(?P<file>.+):(?P<line>\d+)")
CALLED = dict.fromkeys(("correlation_id", "process", "thread", "start_ns", "dur_ns"), pl.Int64)


@dataclass
class Instructions:
    """What planes of devices and hosts say, until all are read.

    `threads`: the number of each device's own thread, negative as of all threads that the source has no number for.
    """

    threads: Mapping[str, int]
    _called: list[pl.DataFrame] = field(default_factory=list)
    _launched: list[pl.DataFrame] = field(default_factory=list)
    _described: list[pl.DataFrame] = field(default_factory=list)
    _count: int = 0

    def note_launches(self, plane: Plane, process: int | None, device: str, rows: pl.DataFrame) -> pl.Series:
        """Note the launches of a line, and number those that name their instruction.

        Args:
            plane: Whose launches they are.
            process: Its process.
            device: Its device.
            rows: One launch each: `row`, `correlation_id`, `op`, `module`, `framework_op`, `source`, `name_id`,
                `start_ns`, `dur_ns`.

        Returns:
            The number of each launch, unique in the file; null without an instruction.
        """
        named = rows.filter(pl.col("op").is_not_null())
        ids = pl.int_range(self._count, self._count + named.height, dtype=pl.Int64, eager=True)
        self._count += named.height
        place = (pl.lit(process, dtype=pl.Int64).alias("process"), pl.lit(device).alias("device"))
        frame = pl.struct("source", "framework_op").map_elements(_frame, pl.String).alias("frame")
        self._launched.append(named.with_columns(ids.alias("external_id"), frame, *place).select(list(LAUNCHED)))
        self._described.append(_described(plane, named))
        found = pl.repeat(None, rows.height, dtype=pl.Int64, eager=True)
        return found.scatter(named["row"], ids) if named.height else found

    def note_calls(self, calls: pl.DataFrame) -> None:
        """Note host calls with an id: the columns of `CALLED`."""
        self._called.append(calls.select(list(CALLED)))

    def add_rows(self, out: TraceBuilder) -> None:
        """Hand over `ops`, `frames` and `hlo_ops`."""
        if self._launched and out.wants("ops", "frames"):
            self._add_placed(out, self._placed(pl.concat(self._launched)))
        if self._described and out.wants("hlo_ops"):
            rows = pl.concat(self._described).unique(["module", "op"], keep="first", maintain_order=True)
            out.losses.see("hlo_ops", rows.height)
            out.add("hlo_ops", rows.height, {name: rows[name] for name in rows.columns})

    def _placed(self, launched: pl.DataFrame) -> pl.DataFrame:
        """With `thread`, and the times of the call where there is one of this launch alone."""
        key = ["process", "correlation_id"]
        calls = pl.concat([pl.DataFrame(schema=CALLED), *self._called]).rename(
            {"start_ns": "at_ns", "dur_ns": "for_ns"}
        )
        first = calls.sort("at_ns", maintain_order=True).unique(key, keep="first", maintain_order=True)
        rows = launched.join(first, on=key, how="left", nulls_equal=True, maintain_order="left")
        is_alone = pl.col("correlation_id").is_not_null() & (pl.len().over(key) == 1)
        has_call = is_alone & pl.col("at_ns").is_not_null()
        own = pl.col("device").replace_strict(self.threads, return_dtype=pl.Int64)
        return rows.with_columns(
            pl.when(has_call).then("thread").otherwise(own).alias("thread"),
            pl.when(has_call).then("at_ns").otherwise("start_ns").alias("start_ns"),
            pl.when(has_call).then("for_ns").otherwise("dur_ns").alias("dur_ns"),
        )

    def _add_placed(self, out: TraceBuilder, rows: pl.DataFrame) -> None:
        where = ("process", "thread", "start_ns", "dur_ns")
        modules = rows.filter(pl.col("module").is_not_null())
        lines = rows.filter(pl.col("frame").is_not_null())
        if out.wants("frames"):
            out.losses.see("frames", modules.height + lines.height)
            out.add(
                "frames",
                modules.height,
                _some(modules, where) | {"frame": modules["module"], "module": modules["module"]},
            )
            out.add("frames", lines.height, _some(lines, where) | {"frame": lines["frame"]})
        if out.wants("ops"):
            out.losses.see("ops", rows.height)
            out.add("ops", rows.height, _some(rows, ("op", "external_id", *where)))


def _described(plane: Plane, launches: pl.DataFrame) -> pl.DataFrame:
    """A row for each instruction among the launches of a line, with what XLA says of its work."""
    rows = launches.unique(["module", "op"], keep="first", maintain_order=True)
    of_each = [plane.described(name_id) for name_id in rows["name_id"]]
    work = [pl.Series(name, [_count(each.get(name)) for each in of_each], dtype=pl.Int64) for name in _WORK]
    category = pl.Series("category", [text(each.get("hlo_category")) for each in of_each], dtype=pl.String)
    return rows.select("module", "op", category, "framework_op", "source", *work)


def _count(value: Value) -> int | None:
    """A count of operations or bytes, which XLA writes as a whole number or as a float; None for what can't be one."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**63 else None


def _frame(of: Mapping[str, str | None]) -> str | None:
    """The line of source as `frames` has it. XLA doesn't say which function it is in: JAX's op stands there."""
    match = _LINE.fullmatch(of["source"] or "")
    return f"{match['file']}({match['line']}): {of['framework_op'] or '?'}" if match else None


def _some(rows: pl.DataFrame, names: tuple[str, ...]) -> dict[str, pl.Series]:
    return {name: rows[name] for name in names}
