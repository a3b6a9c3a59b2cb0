"""Rows of each table as events of the Trace Event Format, one JSON object per row, under the names that PyTorch writes.

Polars builds the text of a whole batch at once. Times are microseconds with three decimals, made from integers: they
say exactly the nanoseconds. What is null is left out. `FORMS` says which rows of which table have an event.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import polars as pl

Places = Mapping[int, str]
Args = Iterable[tuple[str, str]]

_LAUNCH_ARGS = (
    ("External id", "external_id"),
    ("queued", "queued_ns"),
    ("context", "context"),
    ("stream", "stream"),
    ("correlation", "correlation_id"),
    ("registers per thread", "registers"),
    ("shared memory", "shared_bytes"),
    ("graph id", "graph_id"),
    ("graph node id", "graph_node_id"),
    ("bytes", "bytes"),
)
_COLLECTIVE_NUMBERS = (
    ("In msg nelems", "elements_in"),
    ("Out msg nelems", "elements_out"),
    ("Group size", "group_size"),
    ("Src Rank", "source_rank"),
    ("Dst Rank", "destination_rank"),
    ("Seq", "sequence_number"),
)
_COLLECTIVE_TEXTS = (
    ("Collective name", "collective"),
    ("dtype", "dtype"),
    ("In split size", "splits_in"),
    ("Out split size", "splits_out"),
    ("Process Group Name", "group"),
    ("Process Group Description", "group_description"),
    ("Process Group Ranks", "group_ranks"),
)
_CALL_ARGS = (
    ("External id", "external_id"),
    ("correlation", "correlation_id"),
    ("stream", "stream"),
    ("bytes", "bytes"),
    ("path_id", "path_id"),
)
_OP_ARGS = (
    ("External id", "external_id"),
    ("Record function id", "record_function_id"),
    ("parent", "parent"),
    ("Sequence number", "sequence_number"),
)
_OP_JSON = (
    ("Concrete Inputs", "scalars"),
    ("Input type", "input_dtypes"),
    ("Input Strides", "input_strides"),
    ("Input Dims", "input_dims"),
)
_SPAN_JSON = (("Input type", "input_dtypes"), ("Input Dims", "input_dims"))
_STEP_NUMBERS = ("gpu_busy_ns", "batch", "prefill_tokens", "decode_tokens", "context_len")
_ON_DEVICE = ("gpu_user_annotation", "cuda_sync")
_ON_HOST = ("user_annotation", "overhead")
_GPU = r"^gpu:(0|[1-9][0-9]{0,17})$"
_LIMIT = 1 << 53  # a whole number of a float column is written as one up to here


@dataclass(frozen=True)
class Form:
    """How rows of `table` become events: those for which `rows` holds, all others are left out and counted.

    `text` makes the expression of an event's JSON text; it is given the names of text ids of processes and threads.
    """

    table: str
    text: Callable[[Places, Places], pl.Expr]
    rows: pl.Expr | None = None


def _launch(processes: Places, threads: Places) -> pl.Expr:
    """A launch, with what `join_collectives` adds to it."""
    kind = pl.col("kind")
    category = pl.when(kind.is_in(("memcpy", "memset"))).then("gpu_" + kind).otherwise(pl.lit("kernel"))
    occupancy = (pl.col("occupancy") * 100).round(12)  # what is 0.57 was 57
    return _event(
        _text("cat", category),
        _text("name", pl.col("kernel")),
        *_device_place(pl.col("host")),
        *_times(),
        args=[
            _device_arg(),
            *_numbers(_LAUNCH_ARGS),
            _triple("grid"),
            _triple("block"),
            _text("kind", pl.when(kind == "graph").then(kind)),
            _arg("est. achieved occupancy %", _float(occupancy)),
            *(_text(name, pl.col(column)) for name, column in _COLLECTIVE_TEXTS),
            *_numbers(_COLLECTIVE_NUMBERS),
        ],
    )


def _call(processes: Places, threads: Places) -> pl.Expr:
    driver = pl.col("api").str.contains(r"^cu[A-Z]")
    return _event(
        _text("cat", pl.when(driver).then(pl.lit("cuda_driver")).otherwise(pl.lit("cuda_runtime"))),
        _text("name", pl.col("api")),
        *_host_place(processes, threads),
        *_times(),
        args=[*_numbers(_CALL_ARGS), _text("kernel", pl.col("kernel")), _triple("grid"), _triple("block")],
    )


def _op(processes: Places, threads: Places) -> pl.Expr:
    compiled = [_text(name, pl.col(name)) for name in ("kernel_file", "kernel_hash", "kernel_backend")]
    return _event(
        _text("cat", pl.lit("cpu_op")),
        _text("name", pl.col("op")),
        *_host_place(processes, threads),
        *_times(),
        args=[*_numbers(_OP_ARGS), *(_arg(name, _checked(column)) for name, column in _OP_JSON), *compiled],
    )


def _frame(processes: Places, threads: Places) -> pl.Expr:
    return _event(
        _text("cat", pl.lit("python_function")),
        _text("name", pl.col("frame")),
        *_host_place(processes, threads),
        *_times(),
        args=_numbers((("Python parent id", "parent"), ("Python id", "frame_id"))),
    )


def _span(processes: Places, threads: Places) -> pl.Expr:
    """On a device's track, on a host thread, or a mark without a length.

    A domain that PyTorch has no category for becomes an argument of a `user_annotation`.
    """
    domain = pl.col("domain")
    on_device = domain.is_in(_ON_DEVICE) | pl.col("device").is_not_null()
    own = domain.is_in([*_ON_DEVICE, *_ON_HOST, "trace", "instant"]) | domain.is_null()
    other = _text("domain", pl.when(~own).then(domain))
    host_category = pl.when(domain.is_in(_ON_HOST)).then(domain).when(domain == "trace").then(pl.lit("Trace"))
    host = _event(
        _text("cat", host_category.when(~own).then(pl.lit("user_annotation"))),
        _text("name", pl.col("span")),
        *_host_place(processes, threads),
        *_times(),
        args=[other, *(_arg(name, _checked(column)) for name, column in _SPAN_JSON)],
    )
    device = _event(
        _text("cat", pl.when(domain.is_in(_ON_DEVICE)).then(domain).otherwise(pl.lit("gpu_user_annotation"))),
        _text("name", pl.col("span")),
        *_device_place(),
        *_times(),
        args=[_device_arg(), *_numbers([("stream", "stream")]), other],
    )
    instant = _event(
        pl.lit(',"s":"t"'),
        _text("name", pl.col("span")),
        *_host_place(processes, threads),
        _piece("ts", _microseconds("start_ns")),
        phase="i",
    )
    marks = (domain == "instant") & (pl.col("dur_ns") == 0)
    return pl.when(on_device).then(device).when(marks).then(instant).otherwise(host)


def _counter(processes: Places, threads: Places) -> pl.Expr:
    """The allocator's total as PyTorch's memory record, anything else as a counter event."""
    device, value = pl.col("device"), pl.col("value")
    number = device.str.extract(_GPU)
    memory = _event(
        pl.lit(',"cat":"cpu_instant_event","s":"t","name":"[memory]"'),
        *_host_place(processes),
        _piece("ts", _microseconds("time_ns")),
        args=[
            _arg("Total Allocated", _float(value)),
            _arg("Device Id", number),
            pl.when(number.is_not_null()).then(pl.lit(',"Device Type":1')).otherwise(pl.lit(',"Device Type":0')),
        ],
        phase="i",
    )
    id_ = pl.concat_str(pl.col("host"), device, separator=" ", ignore_nulls=True)
    counter = _event(
        _text("name", pl.col("metric")),
        _text("id", pl.when(id_ != "").then(id_)),
        *_host_place(processes),
        _piece("ts", _microseconds("time_ns")),
        args=[_arg("value", _float(value))],
        phase="C",
    )
    return pl.when(_IS_MEMORY).then(memory).otherwise(counter)


def _host_event(processes: Places, threads: Places) -> pl.Expr:
    return _event(
        _text("cat", pl.lit("host_event")),
        _text("name", pl.col("kind")),
        *_host_place(processes, threads),
        *_times(),
    )


def _step(processes: Places, threads: Places) -> pl.Expr:
    return _event(
        _text("cat", pl.lit("step")),
        _text("name", pl.concat_str(pl.lit("step "), pl.col("step"))),
        *_host_place(processes),
        *_times(),
        args=[
            _text("phase", pl.col("phase")),
            *_numbers((name, name) for name in _STEP_NUMBERS),
            _text("anchor", pl.col("anchor")),
            _text("source", pl.col("source")),
        ],
    )


_WHOLE = (pl.col("value") == pl.col("value").round()) & (pl.col("value").abs() < _LIMIT)
_IS_MEMORY = (
    (pl.col("metric") == "memory_allocated")
    & (pl.col("unit") == "bytes")
    & (pl.col("device").str.contains(_GPU) | (pl.col("device") == "cpu"))
    & (_WHOLE | pl.col("value").is_null())
).fill_null(value=False)

FORMS = (
    Form("launches", _launch),
    Form("calls", _call),
    Form("ops", _op),
    Form("frames", _frame),
    Form("spans", _span),
    Form("counters", _counter, rows=(pl.col("value").is_finite() & pl.col("value").is_not_null()) | _IS_MEMORY),
    Form("host_events", _host_event),
    Form("steps", _step, rows=pl.col("start_ns").is_not_null() & pl.col("dur_ns").is_not_null()),
)


def _event(*fields: pl.Expr, args: Iterable[pl.Expr] = (), phase: str = "X") -> pl.Expr:
    """One object. Every field and argument begins with a comma; a null one is left out."""
    inner = pl.concat_str(list(args), ignore_nulls=True).str.strip_prefix(",") if args else pl.lit("")
    parts = [pl.lit(f'{{"ph":"{phase}"'), *fields, pl.lit(',"args":{'), inner, pl.lit("}}")]
    return pl.concat_str(parts, ignore_nulls=True)


def _piece(name: str, json: pl.Expr) -> pl.Expr:
    return pl.lit(f',"{name}":') + json


_arg = _piece


def _text(name: str, value: pl.Expr) -> pl.Expr:
    """A text as JSON: Polars escapes it as a field of a struct, whose braces come off again."""
    field = pl.struct(value.alias(name)).struct.json_encode().str.strip_prefix("{").str.strip_suffix("}")
    return pl.when(value.is_not_null()).then(pl.lit(",") + field)


def _numbers(args: Args) -> list[pl.Expr]:
    return [_arg(name, pl.col(column).cast(pl.String)) for name, column in args]


def _triple(column: str) -> pl.Expr:
    x, y, z = (pl.col(column).arr.get(i) for i in range(3))
    return pl.concat_str(pl.lit(f',"{column}":['), x, pl.lit(","), y, pl.lit(","), z, pl.lit("]"))


def _float(value: pl.Expr) -> pl.Expr:
    """A finite number, whole ones without a point: PyTorch's counts are integers."""
    whole = (value == value.round()) & (value.abs() < _LIMIT)
    text = pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
    return pl.when(value.is_finite()).then(text)


def _times() -> tuple[pl.Expr, pl.Expr]:
    return _piece("ts", _microseconds("start_ns")), _piece("dur", _microseconds("dur_ns"))


def _microseconds(column: str) -> pl.Expr:
    ns = pl.col(column)
    sign = pl.when(ns < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return pl.concat_str(sign, ns.abs() // 1000, pl.lit("."), (ns.abs() % 1000).cast(pl.String).str.zfill(3))


def _host_place(processes: Places, threads: Places | None = None) -> list[pl.Expr]:
    """`pid` and `tid`; text ids as the text that they were."""
    pieces = [_piece("pid", _named("process", processes))]
    return pieces if threads is None else [*pieces, _piece("tid", _named("thread", threads))]


def _named(column: str, names: Places) -> pl.Expr:
    number = pl.col(column).cast(pl.String)
    if not names:
        return number
    texts = {str(each): msgspec.json.encode(name).decode() for each, name in names.items()}
    return number.replace(texts)


def _device_place(host: pl.Expr | None = None) -> list[pl.Expr]:
    """The device as the process and the stream as the thread, as PyTorch has it; `host(0)` where a host is named."""
    number, stream = pl.col("device").str.extract(_GPU), pl.col("stream").cast(pl.String)
    pid = number.fill_null(_quoted(pl.col("device").fill_null("unknown device")))
    if host is not None:
        on_host = _quoted(pl.concat_str(host, pl.lit("("), number.fill_null("-1"), pl.lit(")")))
        pid = pl.when(host.is_not_null()).then(on_host).otherwise(pid)
    return [_piece("pid", pid), _piece("tid", stream.fill_null('"no stream"'))]


def _device_arg() -> pl.Expr:
    number = pl.col("device").str.extract(_GPU)
    return _arg("device", number.fill_null(_quoted(pl.col("device").fill_null("unknown"))))


def _quoted(value: pl.Expr) -> pl.Expr:
    field = pl.struct(value.alias("x")).struct.json_encode()
    return field.str.strip_prefix('{"x":').str.strip_suffix("}")


def _checked(column: str) -> pl.Expr:
    """A column of JSON text as it is; a text that is no JSON as a JSON string."""
    return pl.col(column).map_batches(_as_json, return_dtype=pl.String)


def _as_json(texts: pl.Series) -> pl.Series:
    wrong = {text: msgspec.json.encode(text).decode() for text in texts.drop_nulls().unique() if not _is_json(text)}
    return texts.replace(wrong) if wrong else texts


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
