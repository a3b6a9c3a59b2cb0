"""The tables of a trace: every column declared once, with its type, unit, meaning and why it may be null.

Readers are checked against these declarations and docs/reference/tables.md is made from them. A column without a
`null` reason is never null. Times are integer nanoseconds on the trace's clock (`facts.clock_base_ns` ties that to
the wall clock where the source says so). Lists that frameworks print (shapes, strides) stay JSON text as recorded.
"""

from collections.abc import Sequence
from functools import cached_property

import msgspec
import polars as pl

_NOT_RECORDED = "the source doesn't record it"
_NO_HOST_SIDE = "no host side was recorded"
_NO_STATISTIC = "the source doesn't print this statistic"
REPEATED_TEXT = ("kind", "kernel", "device", "host", "api")
"""Columns whose text repeats from row to row."""


class Column(msgspec.Struct, frozen=True):
    """One column: `null` says why a value may be missing; an empty `null` means that it never is."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    null: str = ""


class Table(msgspec.Struct, frozen=True, dict=True):
    """One table of the trace. `time` names the column that orders its rows in time, where it has one."""

    name: str
    row: str
    columns: Sequence[Column]
    time: str | None = None

    @cached_property
    def schema(self) -> pl.Schema:
        """Column names and types in the declared order."""
        return pl.Schema({column.name: column.dtype for column in self.columns})

    def complete(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """`frame` with exactly the declared columns in their order; those that it lacks are null."""
        present = set(frame.collect_schema().names())
        missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in self.schema.items() if name not in present]
        return frame.with_columns(missing).select(list(self.schema))

    @staticmethod
    def plain(frame: pl.LazyFrame) -> pl.LazyFrame:
        """`frame` with its types as declared: text that was kept as categories is text again."""
        return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))

    def compact(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """`frame` with text that repeats from row to row as categories, other text as text."""
        types = self.compact_schema
        return frame.with_columns(
            pl.col(name).cast(types[name]) for name, dtype in self.schema.items() if dtype == pl.String
        )

    @cached_property
    def compact_schema(self) -> pl.Schema:
        """Types that `compact` gives."""
        repeated = {name: pl.Categorical() for name in REPEATED_TEXT if self.schema.get(name) == pl.String}
        return pl.Schema({**self.schema, **repeated})

    @cached_property
    def empty(self) -> pl.LazyFrame:
        """The table with no rows."""
        return pl.LazyFrame(schema=self.schema)


_I64 = pl.Int64()
_TEXT = pl.String()
_F64 = pl.Float64()
_DIM3 = pl.Array(pl.Int64(), 3)

_PROCESS = Column("process", _I64, "Process id; a text id becomes a negative number named in `facts.processes`.")
_THREAD = Column("thread", _I64, "Thread id; a text id becomes a negative number named in `facts.threads`.")
_RANK = Column("rank", _I64, "Rank of the process in its distributed job.", "the source names no rank")
_START = Column("start_ns", _I64, "When it began, ns on the trace's clock.")
_DUR = Column("dur_ns", _I64, "How long it took, ns.")


def _maybe(column: Column, null: str) -> Column:
    return Column(column.name, column.dtype, column.meaning, null)


LAUNCHES = Table(
    "launches",
    "One execution of device work.",
    [
        Column("kind", _TEXT, "`kernel`, `memcpy`, `memset`, or `graph`: a whole CUDA graph recorded as one."),
        Column("kernel", _TEXT, "The kernel's or copy's name, as in the file."),
        Column("device", _TEXT, "Where it ran: `gpu:7`, `cpu`, `webgpu:0`.", "the file names no device"),
        Column("context", _I64, "The driver's context id.", _NOT_RECORDED),
        Column("stream", _I64, "The ordered lane of work on the device.", _NOT_RECORDED),
        Column("queue", _I64, "The queue of the hardware that took it: AMD's streams share those.", _NOT_RECORDED),
        _RANK,
        Column("host", _TEXT, "Name of the machine.", "the file names no host"),
        Column(
            "process",
            _I64,
            "Process that queued it; `correlation_id` is unique only together with it.",
            "calls were not read, or the file has several host processes and doesn't say which",
        ),
        _START,
        _DUR,
        Column("queued_ns", _I64, "When the driver queued it, ns on the profiler's own clock.", _NOT_RECORDED),
        Column("correlation_id", _I64, "Ties it to the host call that queued it.", _NO_HOST_SIDE),
        Column("external_id", _I64, "Ties it to the framework op that queued it.", "no op was open, or none recorded"),
        Column("graph_id", _I64, "The captured graph it is part of.", "not from a graph, or not recorded"),
        Column("graph_node_id", _I64, "The node of that graph.", "not from a graph, or not recorded"),
        Column("grid", _DIM3, "Blocks along x, y, z.", "a copy, or not recorded"),
        Column("block", _DIM3, "Threads a block along x, y, z.", "a copy, or not recorded"),
        Column("registers", _I64, "Registers a thread; on AMD the vector registers.", "a copy, or not recorded"),
        Column("accum_registers", _I64, "Accumulation registers a thread, which AMD counts apart.", _NOT_RECORDED),
        Column("scalar_registers", _I64, "Scalar registers a wave of AMD's.", _NOT_RECORDED),
        Column("shared_bytes", _I64, "Shared memory a block, bytes.", "a copy, or not recorded"),
        Column("scratch_bytes", _I64, "Private memory a thread (scratch), bytes.", _NOT_RECORDED),
        Column("bytes", _I64, "Bytes moved by a copy or set, as recorded; never modelled.", "a kernel"),
        Column("occupancy", _F64, "Achieved occupancy as the profiler estimates it, 0 to 1.", _NOT_RECORDED),
    ],
    time="start_ns",
)

COLLECTIVES = Table(
    "collectives",
    "What a launch that communicates exchanges, as its source records it.",
    [
        Column("kernel", _TEXT, "The launch's kernel; it and the four columns that follow find its row in `launches`."),
        Column("device", _TEXT, "The launch's device.", "the file names no device"),
        Column("stream", _I64, "The launch's stream.", _NOT_RECORDED),
        _RANK,
        Column("start_ns", _I64, "When the launch began, ns on the trace's clock."),
        Column(
            "collective", _TEXT, "The collective, as recorded (`allreduce`, `_allgather_base`, `send`).", "not readable"
        ),
        Column("dtype", _TEXT, "Type of an element, as recorded (`BFloat16`).", _NOT_RECORDED),
        Column("elements_in", _I64, "Elements that this rank puts in.", _NOT_RECORDED),
        Column("elements_out", _I64, "Elements that this rank gets out.", _NOT_RECORDED),
        Column("group", _TEXT, "Name of the process group.", _NOT_RECORDED),
        Column("group_description", _TEXT, "What the program calls that group.", _NOT_RECORDED),
        Column("group_size", _I64, "Ranks in the group.", _NOT_RECORDED),
        Column("group_ranks", _TEXT, "The group's ranks, a list as recorded; long ones are cut short.", _NOT_RECORDED),
        Column("splits_in", _TEXT, "Elements for each rank, a list as recorded; empty: equal.", _NOT_RECORDED),
        Column("splits_out", _TEXT, "Elements from each rank, a list as recorded; empty: equal.", _NOT_RECORDED),
        Column("source_rank", _I64, "The rank that is received from.", "not point to point, or not recorded"),
        Column("destination_rank", _I64, "The rank that is sent to.", "not point to point, or not recorded"),
        Column("sequence_number", _I64, "The collective's number in its group.", _NOT_RECORDED),
    ],
    time="start_ns",
)
COLLECTIVE_KEY = ("kernel", "device", "stream", "rank", "start_ns")
"""The columns that a row of `collectives` shares with the launch that it is about."""

CALLS = Table(
    "calls",
    "A driver or runtime call on the host.",
    [
        Column("api", _TEXT, "The function's name (`cudaLaunchKernel`)."),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        _START,
        _DUR,
        Column("correlation_id", _I64, "Ties it to the device work that it queued.", _NOT_RECORDED),
        Column("external_id", _I64, "Ties it to the framework op around it.", "no op was open, or not recorded"),
        Column("path_id", _I64, "Node of `call_paths` that it was called from.", "no call stacks were recorded"),
        Column("kernel", _TEXT, "The kernel that the call launches or captures.", "not a launch, or not recorded"),
        Column("grid", _DIM3, "Blocks along x, y, z.", "not a launch, or not recorded"),
        Column("block", _DIM3, "Threads a block along x, y, z.", "not a launch, or not recorded"),
        Column("stream", _I64, "The stream named in the call.", _NOT_RECORDED),
        Column("bytes", _I64, "Bytes named in the call.", "not a copy, or not recorded"),
    ],
    time="start_ns",
)

OPS = Table(
    "ops",
    "A framework operator (`aten::mm`).",
    [
        Column("op", _TEXT, "The operator's name."),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        _START,
        _DUR,
        Column("external_id", _I64, "Ties it to calls and launches.", _NOT_RECORDED),
        Column(
            "record_function_id", _I64, "Names it in an execution trace of the same run.", "no observer asked for it"
        ),
        Column("parent", _I64, "`external_id` of the op around it.", "the source gives nesting by time only"),
        Column("input_dims", _TEXT, "Shapes of the inputs, JSON.", "shapes were not recorded"),
        Column("input_dtypes", _TEXT, "Types of the inputs, JSON.", "shapes were not recorded"),
        Column("input_strides", _TEXT, "Strides of the inputs, JSON.", "shapes were not recorded"),
        Column("scalars", _TEXT, "Values of the scalar inputs, JSON.", "shapes were not recorded"),
        Column("input_storages", _TEXT, "What it reads: `[storage, bytes]` of each, JSON.", "no execution trace"),
        Column("written_storages", _TEXT, "What it writes: `[storage, bytes]` of each, JSON.", "no execution trace"),
        Column("sequence_number", _I64, "Ties a forward op to its backward.", "no autograd"),
        Column("kernel_file", _TEXT, "File of a compiled kernel.", "not compiled, or not recorded"),
        Column("kernel_hash", _TEXT, "Hash of a compiled kernel.", "not compiled, or not recorded"),
        Column("kernel_backend", _TEXT, "What compiled it (`triton`).", "not compiled, or not recorded"),
    ],
    time="start_ns",
)

OP_NODES = Table(
    "op_nodes",
    "A framework operator as an execution trace has it: what it was called with, and no times.",
    [
        Column("op", _TEXT, "The operator's name, or that of a range of the user's."),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        Column("thread", _I64, "Its thread, as the trace numbers them from 1.", _NOT_RECORDED),
        Column("node", _I64, "The node's number: nodes have them in the order in which they begin.", "not readable"),
        Column("parent", _I64, "`node` of the op around it, or of its thread.", _NOT_RECORDED),
        Column("record_function_id", _I64, "Names it in a profile of the same run.", "no profiler asked for it"),
        Column("input_dims", _TEXT, "Shapes of the inputs, JSON.", "not readable"),
        Column("input_dtypes", _TEXT, "Types of the inputs, JSON.", "not readable"),
        Column("input_strides", _TEXT, "Strides of the inputs, JSON.", _NOT_RECORDED),
        Column("scalars", _TEXT, "Values of the scalar inputs, JSON.", "not readable"),
        Column("input_storages", _TEXT, "What it reads: `[storage, bytes]` of each, JSON.", "not readable"),
        Column("written_storages", _TEXT, "What it writes: `[storage, bytes]` of each, JSON.", "not readable"),
        Column("output_dims", _TEXT, "Shapes of the outputs, JSON.", "not readable"),
        Column("output_dtypes", _TEXT, "Types of the outputs, JSON.", "not readable"),
        Column("sequence_number", _I64, "Ties a forward op to its backward.", "no autograd"),
        Column("schema", _TEXT, "The operator's signature.", "not an operator, or not recorded"),
        Column("kernel_file", _TEXT, "File of a compiled kernel.", "not compiled, or not recorded"),
        Column("kernel_backend", _TEXT, "What compiled it (`triton`).", "not compiled, or not recorded"),
    ],
)

FRAMES = Table(
    "frames",
    "A Python function or module call.",
    [
        Column("frame", _TEXT, "`file(line): function`, `nn.Module: Linear_3`, or a builtin."),
        Column("module", _TEXT, "The module's name where the frame is a module call.", "not a module call"),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        _START,
        _DUR,
        Column("frame_id", _I64, "The profiler's number of this call.", _NOT_RECORDED),
        Column("parent", _I64, "`frame_id` of the caller.", "outermost, or not recorded"),
    ],
    time="start_ns",
)

SPANS = Table(
    "spans",
    "A range that the user or the profiler named (NVTX, record_function, ProfilerStep).",
    [
        Column("span", _TEXT, "The range's name."),
        Column("domain", _TEXT, "Who named it: `user_annotation`, `cuda_sync`, `instant`, an NVTX domain.", "unnamed"),
        _RANK,
        _maybe(_PROCESS, "on a device's track"),
        _maybe(_THREAD, "on a device's track"),
        Column("device", _TEXT, "Device whose track it is on.", "on a host thread"),
        Column("stream", _I64, "Stream that it is on.", "on a host thread"),
        _START,
        Column("dur_ns", _I64, "How long it took, ns; 0 for an instant."),
        Column(
            "input_dims", _TEXT, "Shapes of what it was given, JSON: PyTorch's ranges of collectives.", _NOT_RECORDED
        ),
        Column("input_dtypes", _TEXT, "Types of what it was given, JSON.", _NOT_RECORDED),
    ],
    time="start_ns",
)

FRAMEWORK_RANGES = frozenset({"TraceMe"})
"""Domains of `spans` in which a framework names its own work, next to what its users name: of XLA and JAX."""

GRAPH_NODES = Table(
    "graph_nodes",
    "A node of a graph, as it was created on the host.",
    [
        Column("graph_node_id", _I64, "The node, as launches that replay it name it; unique only in its process."),
        Column(
            "original_node_id",
            _I64,
            "The node that it was cloned from; a clone may have a row without it, too.",
            "not a clone, or not recorded",
        ),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        Column("start_ns", _I64, "When it was created, ns on the trace's clock."),
        Column("name", _TEXT, "What the source calls its creation (`Graph Node Creation`).", _NOT_RECORDED),
    ],
    time="start_ns",
)

CALL_PATHS = Table(
    "call_paths",
    "One node of the interned tree of call paths.",
    [
        Column("path_id", _I64, "The node's number."),
        Column("parent_id", _I64, "The caller's node.", "a root"),
        Column("name", _TEXT, "What the node is called in reports."),
        Column("frame", _TEXT, "`file:line function`.", "not a frame"),
        Column("module", _TEXT, "Path of the module that runs here.", "not in a module"),
        Column("depth", _I64, "Distance from the root, 0 there."),
        _maybe(_RANK, "not of one rank"),
    ],
)

PATH_TOTALS = Table(
    "path_totals",
    "Time already summed by call path.",
    [
        Column("path_id", _I64, "Node of `call_paths`."),
        Column("order", _I64, "Position in the source."),
        Column("calls", _I64, "Times called.", _NOT_RECORDED),
        Column("host_ns", _I64, "Host time, ns.", _NOT_RECORDED),
        Column("device_busy_ns", _I64, "Union of device intervals below it, ns.", _NOT_RECORDED),
        Column("span_ns", _I64, "First launch to last end, ns.", _NOT_RECORDED),
        Column("self_ns", _I64, "Without its children, ns.", _NOT_RECORDED),
        Column("backend", _TEXT, "Backend that ran it.", _NOT_RECORDED),
        _RANK,
    ],
)

COUNTERS = Table(
    "counters",
    "One sample of a device or host metric.",
    [
        Column("metric", _TEXT, "The metric's name."),
        Column("device", _TEXT, "Device that it was taken on.", "a host metric, or not recorded"),
        Column("host", _TEXT, "Machine that it was taken on.", _NOT_RECORDED),
        _RANK,
        Column("process", _I64, "Process that it belongs to.", "not of one process"),
        Column("time_ns", _I64, "When it was taken, ns on the trace's clock."),
        Column("value", _F64, "The sample.", "the source holds no finite number"),
        Column("unit", _TEXT, "Unit of the value.", _NOT_RECORDED),
    ],
    time="time_ns",
)

KERNEL_COUNTERS = Table(
    "kernel_counters",
    "What a profiler counted while one launch ran: a metric of it, measured.",
    [
        Column("launch", _I64, "Position of the launch in the source, from 0; launches have no start there."),
        Column("kernel", _TEXT, "The kernel's name, as in the file."),
        Column("device", _TEXT, "Where it ran.", "the file names no device"),
        Column("process", _I64, "Process that queued it.", _NOT_RECORDED),
        Column("stream", _I64, "The ordered lane of work on the device.", _NOT_RECORDED),
        Column("grid", _DIM3, "Blocks along x, y, z.", _NOT_RECORDED),
        Column("block", _DIM3, "Threads a block along x, y, z.", _NOT_RECORDED),
        Column("metric", _TEXT, "The metric's name, as in the file (`dram__bytes_read.sum`)."),
        Column("value", _F64, "What was counted, in `unit`.", "the source holds no finite number"),
        Column("unit", _TEXT, "A base unit: `byte`, `ns`, `hz`, `byte/s`, `%`.", "a count, or not recorded"),
        _RANK,
    ],
)

HLO_OPS = Table(
    "hlo_ops",
    "An instruction of a program compiled by XLA, and the work that XLA models for one execution: never measured.",
    [
        Column("module", _TEXT, "The compiled program (`jit_step`).", "the source names no program"),
        Column("op", _TEXT, "The instruction (`fusion.12`), as in `ops`."),
        Column("category", _TEXT, "XLA's kind of instruction (`convolution fusion`).", _NOT_RECORDED),
        Column("framework_op", _TEXT, "Path of the framework's op (`jit(step)/dot_general`).", _NOT_RECORDED),
        Column("source", _TEXT, "`file:line` that it comes from.", _NOT_RECORDED),
        Column("flops", _I64, "Floating-point operations, modelled by XLA.", "XLA models none, or not recorded"),
        Column("model_flops", _I64, "Those that the program asks for, modelled by XLA.", _NOT_RECORDED),
        Column("bytes_accessed", _I64, "Bytes read and written, modelled by XLA.", "XLA models none, or not recorded"),
        _RANK,
    ],
)

_ALLOCATED_AT = Column(
    "path_id", _I64, "Node of `call_paths` that allocated it, the innermost.", "no stack was recorded"
)

MEMORY_BLOCKS = Table(
    "memory_blocks",
    "A block of device memory that an allocator held when a snapshot was taken.",
    [
        Column("device", _TEXT, "Where it lies.", "the file names no device"),
        Column("segment", _I64, "Address of the segment that it is a part of: what the driver gave as one."),
        Column("stream", _I64, "The stream that its segment is for.", _NOT_RECORDED),
        Column("pool", _TEXT, "`small` or `large`, and the private pool where it is of one.", _NOT_RECORDED),
        Column("address", _I64, "Where it begins; addresses above 2^63 are negative."),
        Column("bytes", _I64, "Its size: what the allocator rounded up to."),
        Column("requested_bytes", _I64, "What the program asked for, bytes.", "free, or not recorded"),
        Column("state", _TEXT, "`active_allocated`, `active_pending_free` (freed, a stream may use it), `inactive`."),
        _ALLOCATED_AT,
        _RANK,
    ],
)

MEMORY_EVENTS = Table(
    "memory_events",
    "Something that an allocator of device memory did.",
    [
        Column(
            "action",
            _TEXT,
            "`alloc`, `free`, `free_requested`, `free_completed`, `segment_alloc`, `oom`, …; `sample`: of no block.",
        ),
        Column("device", _TEXT, "Where.", "the file names no device"),
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        Column("order", _I64, "Its place among the events of its device, from 0."),
        Column("time_ns", _I64, "When, ns on the trace's clock.", _NOT_RECORDED),
        Column("address", _I64, "Of which block or segment.", "of none"),
        Column("bytes", _I64, "Its size.", "of none"),
        Column("stream", _I64, "For which stream.", _NOT_RECORDED),
        Column("allocated_bytes", _I64, "What is allocated on the device by then, bytes.", _NOT_RECORDED),
        Column("reserved_bytes", _I64, "What the allocator has reserved there by then, bytes.", _NOT_RECORDED),
        _ALLOCATED_AT,
        _RANK,
    ],
    time="time_ns",
)

HOST_EVENTS = Table(
    "host_events",
    "What the operating system did with a thread.",
    [
        Column("kind", _TEXT, "`oncpu`, `runq`, `read`, `write`, `mmap`, …"),
        _RANK,
        _maybe(_PROCESS, _NOT_RECORDED),
        _maybe(_THREAD, _NOT_RECORDED),
        _START,
        _DUR,
    ],
    time="start_ns",
)

TOTALS = Table(
    "totals",
    "Kernel time already summed by the source.",
    [
        Column("section", _I64, "Which table of the source, from 0; sections are never summed together."),
        Column("step", _I64, "The engine's step.", "not by step"),
        Column("kernel", _TEXT, "The kernel's name."),
        Column("layer", _TEXT, "Layer of the model.", _NOT_RECORDED),
        Column("role", _TEXT, "What the kernel does in the layer.", _NOT_RECORDED),
        Column("device", _TEXT, "Where it ran.", _NOT_RECORDED),
        Column("count", _I64, "Launches.", _NO_STATISTIC),
        Column("total_ns", _I64, "Sum of durations, ns.", _NO_STATISTIC),
        Column("mean_ns", _F64, "Mean duration, ns.", _NO_STATISTIC),
        Column("median_ns", _F64, "Median duration, ns.", _NO_STATISTIC),
        Column("min_ns", _I64, "Shortest, ns.", _NO_STATISTIC),
        Column("max_ns", _I64, "Longest, ns.", _NO_STATISTIC),
        Column("stddev_ns", _F64, "Sample standard deviation, ns.", _NO_STATISTIC),
        Column("resolution_ns", _F64, "Half of the last printed digit of `total_ns`, ns.", "times are exact"),
        _RANK,
    ],
)

STEPS = Table(
    "steps",
    "One pass of the engine over a batch.",
    [
        Column("step", _I64, "The engine's number of it, or its position."),
        Column("phase", _TEXT, "`prefill`, `decode` or `mixed`.", "not known"),
        Column("process", _I64, "Process that ran it.", _NOT_RECORDED),
        _RANK,
        Column("start_ns", _I64, "When it began, ns on the trace's clock.", _NOT_RECORDED),
        Column("dur_ns", _I64, "How long it took, ns.", _NOT_RECORDED),
        Column(
            "gpu_busy_ns",
            _I64,
            "Union of device intervals in it, ns; of a source that prints sums, its sum over the step.",
            _NOT_RECORDED,
        ),
        Column("batch", _I64, "Sequences in the batch.", _NOT_RECORDED),
        Column("prefill_tokens", _I64, "Prompt tokens processed.", _NOT_RECORDED),
        Column("decode_tokens", _I64, "Tokens generated.", _NOT_RECORDED),
        Column("context_len", _I64, "Tokens in the KV cache before it.", _NOT_RECORDED),
        Column("anchor", _TEXT, "The mark or kernel that delimits steps.", _NOT_RECORDED),
        Column("source", _TEXT, "`recorded` or `found`; `unobserved`: recorded, with its times alone."),
    ],
    time="start_ns",
)

TESTS = Table(
    "tests",
    "A test of a benchmark, run in repetitions one after the other.",
    [
        Column("test", _TEXT, "Its name (`pp512`), with the settings in which tests of the file differ."),
        Column("order", _I64, "Its place in the file, from 0: the `process` of its repetitions in `steps`."),
        Column("phase", _TEXT, "`prefill`, `decode` or `mixed`.", "not known"),
        Column("batch", _I64, "Sequences that ran at once.", _NOT_RECORDED),
        Column("prefill_tokens", _I64, "Prompt tokens of a repetition.", _NOT_RECORDED),
        Column("decode_tokens", _I64, "Tokens that a repetition generated.", _NOT_RECORDED),
        Column("context_len", _I64, "Tokens in the KV cache before a repetition.", _NOT_RECORDED),
        Column("repetitions", _I64, "How many there were.", "the source prints statistics without their number"),
        Column("mean_ns", _F64, "Mean time of a repetition, ns.", _NO_STATISTIC),
        Column("stddev_ns", _F64, "Sample standard deviation of that, ns.", "one repetition, or not printed"),
        Column("tokens_per_s", _F64, "Mean of the rates of the repetitions.", _NO_STATISTIC),
        Column("tokens_per_s_stddev", _F64, "Its sample standard deviation.", "one repetition, or not printed"),
        Column("time_ns", _I64, "When it began, ns on the trace's clock.", _NOT_RECORDED),
        _RANK,
    ],
)

FUNCTION_TIMES = Table(
    "function_times",
    "A function in one cycle.",
    [
        Column("cycle", _I64, "The cycle's number, from 1."),
        Column("process", _I64, "Process.", _NOT_RECORDED),
        Column("function", _TEXT, "The function's name."),
        Column("class", _TEXT, "The source's class of functions.", _NOT_RECORDED),
        Column("device", _TEXT, "`host` or `gpu:7`."),
        Column("dur_ns", _I64, "Time of all its calls in the cycle, ns."),
        Column("calls", _I64, "Calls in the cycle.", _NOT_RECORDED),
        Column("beta", _F64, "Share of the cycle, 0 to 1.", _NOT_RECORDED),
        Column("anchor", _TEXT, "The call that delimits cycles.", _NOT_RECORDED),
        Column("cycle_dur_ns", _I64, "Length of the cycle, ns.", _NOT_RECORDED),
        _RANK,
    ],
)

FUNCTION_METRICS = Table(
    "function_metrics",
    "A metric while a function ran, in one cycle.",
    [
        Column("cycle", _I64, "The cycle's number, from 1."),
        Column("process", _I64, "Process.", _NOT_RECORDED),
        Column("function", _TEXT, "The function's name."),
        Column("metric", _TEXT, "The metric's name."),
        Column("device", _TEXT, "Device of the metric."),
        Column("mu", _F64, "Duration-weighted mean.", "no sample"),
        Column("sigma", _F64, "Duration-weighted spread.", "no sample"),
        Column("unit", _TEXT, "Unit of `mu` and `sigma`.", "the source doesn't tell it: values are as recorded"),
        Column("interpolation", _TEXT, "How the source filled the gaps between samples.", _NOT_RECORDED),
        _RANK,
    ],
)

LOG = Table(
    "log",
    "One line of an engine's log, or of free text in a file.",
    [
        Column("line", _I64, "Line number in the source, from 1."),
        Column("time_ns", _I64, "When it was written, ns on the trace's clock.", "no time stamp"),
        Column("level", _TEXT, "Severity as printed.", "none printed"),
        Column("source", _TEXT, "Module or file that wrote it.", "none printed"),
        Column("kind", _TEXT, "What the reader took it for.", "not recognised"),
        Column("text", _TEXT, "The line itself."),
        Column("fields", _TEXT, "Parsed fields, a JSON object.", "none found"),
        _RANK,
    ],
)

SELECTIONS = Table(
    "selections",
    "An engine's choice of a kernel.",
    [
        Column("op", _TEXT, "The operator."),
        Column("variant", _TEXT, "The kernel chosen."),
        Column("reason", _TEXT, "Why, as the engine says.", "not recorded"),
        Column("time_ns", _I64, "When, ns on the trace's clock.", "no time stamp"),
        _RANK,
    ],
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        LAUNCHES,
        COLLECTIVES,
        CALLS,
        OPS,
        OP_NODES,
        FRAMES,
        SPANS,
        GRAPH_NODES,
        CALL_PATHS,
        PATH_TOTALS,
        COUNTERS,
        KERNEL_COUNTERS,
        HLO_OPS,
        MEMORY_BLOCKS,
        MEMORY_EVENTS,
        HOST_EVENTS,
        TOTALS,
        STEPS,
        TESTS,
        FUNCTION_TIMES,
        FUNCTION_METRICS,
        LOG,
        SELECTIONS,
    )
}
ALL_TABLES = frozenset(TABLES)
