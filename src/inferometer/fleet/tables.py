"""The tables of a digest, and of the fleet that joins them: every column declared once.

All are results of the analyses that a single trace has. Text that differs between runs of the analyses, such as paths,
isn't in them: the same content gives the same digest, byte by byte.
"""

from typing import Final

import polars as pl

from inferometer.trace.tables import Column, Table

VERSION: Final = 2
"""Of digests. Rises when a column is added or changes its meaning: digests of another version are made again."""

TRACE: Final = "trace"
"""The column that the fleet's tables have first: the SHA-256 of the content, in hexadecimal."""

_I64, _F64, _TEXT = pl.Int64(), pl.Float64(), pl.String()
_NOT_SAID = "the file doesn't say"
_NO_BOUND = "it can't be modelled; `reason` says why"
_NO_STATISTIC = "the source doesn't print this statistic"

ABOUT: Final = Table(
    "traces",
    "One trace.",
    [
        Column("format", _TEXT, "Its format, as `inferometer formats` calls it."),
        Column("tool", _TEXT, "What recorded it.", _NOT_SAID),
        Column("framework", _TEXT, "What ran the model.", _NOT_SAID),
        Column("model", _TEXT, "The model.", _NOT_SAID),
        Column("engine", _TEXT, "The engine: as it was recorded, or by the names that it gives its steps.", _NOT_SAID),
        Column("version", _TEXT, "The engine's version.", _NOT_SAID),
        Column(
            "gpu", _TEXT, "The device that most launches ran on: as we know it, else as the file calls it.", _NOT_SAID
        ),
        Column("gpus", _I64, "Devices, other than a CPU, that ran something; one of several ranks counts for each."),
        Column("rank", _I64, "Its rank, where it is of one.", "the file names none, or several"),
        Column("world_size", _I64, "Ranks of the job.", _NOT_SAID),
        Column(
            "began_ns", _I64, "When its first launch began, ns since 1970.", "its clock isn't tied to the wall clock"
        ),
        Column("basis", _TEXT, "Where the time of kernels is from: `launches`, or `totals` that the source printed."),
        Column("launches", _I64, "Launches, copies and memory sets among them."),
        Column("held_ns", _I64, "Time for which it held its GPUs: first launch to last end, summed over them."),
        Column("busy_ns", _I64, "Time in which they ran something, the same sum."),
        Column("kernel_ns", _I64, "Time of all kernels, as `inferometer kernels` sums it."),
        Column("op_ns", _I64, "Time of all rows of `ops`; 0 where no launches, or too many, were modelled."),
        Column("modelled_ns", _I64, "That part of it which has a bound."),
        Column("bound_ns", _F64, "The bounds, as `inferometer roofline` adds them up.", "its device isn't known"),
        Column("above_ns", _F64, "Time above the bounds.", "its device isn't known"),
        Column("stepped_ns", _I64, "Windows of those steps whose launch-bound time is known."),
        Column("launch_bound_ns", _I64, "Launch-bound time of these steps, as `inferometer steps` has it."),
    ],
)
KERNELS: Final = Table(
    "kernels",
    "One kernel of a trace, by name, as `inferometer kernels` has it.",
    [
        Column("kernel", _TEXT, "Its name, demangled."),
        Column("short", _TEXT, "Its name in short, as `inferometer kernels` decodes it."),
        Column("family", _TEXT, "The family of its name: `gemm`, `attention`, `norm`, …; `other` for an unknown name."),
        Column("library", _TEXT, "Whose kernel it is, by its name."),
        Column("count", _I64, "Launches.", _NO_STATISTIC),
        Column("total_ns", _I64, "Sum of their durations."),
        Column("median_ns", _F64, "Median duration.", _NO_STATISTIC),
        Column("min_ns", _I64, "Shortest duration.", _NO_STATISTIC),
        Column("max_ns", _I64, "Longest duration.", _NO_STATISTIC),
    ],
)
OPS: Final = Table(
    "ops",
    "One op of a trace with its arguments, or the launches of one kernel whose op isn't known, as `inferometer "
    "roofline` has it. Those beyond the 2,000 with the most time are one row, `op` and `kernel` of which are null. Of "
    "arguments longer than 2,000 characters only the beginning is there, with a hash.",
    [
        Column("op", _TEXT, "The op.", "not known"),
        Column("family", _TEXT, "Its family.", "not known"),
        Column("kernel", _TEXT, "The kernel with the most of its time.", "it stands for several ops"),
        Column("input_dims", _TEXT, "Shapes, as recorded.", "not recorded"),
        Column("input_dtypes", _TEXT, "Types, as recorded.", "not recorded"),
        Column("input_strides", _TEXT, "Strides, as recorded.", "not recorded"),
        Column("scalars", _TEXT, "Other arguments, as recorded.", "not recorded"),
        Column("calls", _I64, "Calls.", "not known"),
        Column("launches", _I64, "Launches."),
        Column("total_ns", _I64, "Sum of their durations."),
        Column("flops", pl.Float64(), "Modelled, of one call.", _NO_BOUND),
        Column("read_bytes", pl.Float64(), "The same.", _NO_BOUND),
        Column("write_bytes", pl.Float64(), "The same.", _NO_BOUND),
        Column("bound_ns", _F64, "The bound of all calls.", _NO_BOUND),
        Column("binding", _TEXT, "Which bound that is.", _NO_BOUND),
        Column("above_ns", _F64, "Time above it.", _NO_BOUND),
        Column("operator", _TEXT, "The catalogue's operator that the call is.", "it is none"),
        Column("operator_args", _TEXT, "Its arguments, as JSON.", "it is none"),
        Column("reason", _TEXT, "Why it has no bound.", "it has one"),
    ],
)
PHASES: Final = Table(
    "phases",
    "The steps of one phase, of a trace's first run, as `inferometer steps` has them.",
    [
        Column("phase", _TEXT, "`prefill`, `decode` or `mixed`.", "not known"),
        Column("steps", _I64, "Steps."),
        Column("used", _I64, "Those that medians are of: neither disturbed nor partial."),
        Column("tokens", _I64, "Their tokens.", "not recorded of all steps"),
        Column("wall_median_ns", _F64, "Median time of a step on the host.", "not recorded"),
        Column("gpu_median_ns", _F64, "Median busy time of the device in a step.", "not recorded"),
        Column("window_median_ns", _F64, "Median time from a step's begin until its work has ended.", "not recorded"),
        Column("launch_bound_share", _F64, "Median part of a step that waits for launches.", "not known"),
    ],
)
CLASSES: Final = Table(
    "classes",
    "One class of kernels in the steps of one phase.",
    [
        Column("phase", _TEXT, "As in `phases`.", "not known"),
        Column("class", _TEXT, "The class.", "not known"),
        Column("total_ns", _I64, "Time in these steps."),
    ],
)
BUDGET: Final = Table(
    "budget",
    "One row of a device's time, as `inferometer timeline` has it: all add up to the device's window.",
    [
        Column("rank", _I64, "Rank.", "the file names none"),
        Column("device", _TEXT, "The device.", "the file names none"),
        Column("sort", _TEXT, "compute, several, communication, copies or idle."),
        Column("name", _TEXT, "The family of kernels, or the cause of idle time.", "neither"),
        Column("time_ns", _I64, "Time."),
    ],
)
FINDINGS: Final = Table(
    "findings",
    "One finding, as `inferometer findings` has it.",
    [
        Column("rule", _TEXT, "The rule."),
        Column("severity", _TEXT, "high, medium, low or info."),
        Column("title", _TEXT, "What it is about."),
        Column("size_ns", _I64, "Time at stake.", "it is about none"),
        Column("share", _F64, "That of what it belongs to.", "it is about none"),
        Column("explained_by", _TEXT, "The rule whose finding explains this one.", "none does"),
    ],
)
LOSSES: Final = Table(
    "losses",
    "What of a trace could not be read or had to be mended, counted under one name.",
    [
        Column("name", _TEXT, "The loss."),
        Column("severity", _TEXT, "warning or info."),
        Column("category", _TEXT, "The file's own category.", "not known"),
        Column("dropped", pl.Boolean(), "Whether these events have no row."),
        Column("count", _I64, "How often."),
    ],
)
DIGEST: Final = {table.name: table for table in (ABOUT, KERNELS, OPS, PHASES, CLASSES, BUDGET, FINDINGS, LOSSES)}
"""The tables of a digest; `traces` has one row."""

SOURCES: Final = Table(
    "sources",
    "One path that was given.",
    [
        Column("path", _TEXT, "The file, folder or URL."),
        Column("trace", _TEXT, "SHA-256 of its content.", "it couldn't be fetched or read at all"),
        Column("bytes", _I64, "Its size.", "the same"),
        Column("stamp", _TEXT, "Size and time of its last change, or what a bucket says in their place: the same stamp "
               "is the same content.", "the same"),
        Column("reason", _TEXT, "Why it was set aside.", "it has a digest"),
        Column("labels", _TEXT, "What its path says, as JSON."),
    ],
)  # fmt: skip
