"""What every format promises, asked of every registered one with a small sample of its own."""

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from tests.conformance.samples import BESIDE, NAMES, SAMPLES
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError, UnknownName
from inferometer.formats.base import Format, find_format, known_formats
from inferometer.formats.source import Source
from inferometer.trace.losses import KINDS
from inferometer.trace.tables import ALL_TABLES, TABLES

FORMATS = known_formats()
UNRECORDABLE = {"latencyprism", "path-table", "webgpu-log"}  # what their own programs print or publish, by no option
UNSTABLE = {"launches": ["process"]}  # null unless the calls are read too, as its declaration says

every_format = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)


@pytest.fixture
def sample(fmt: Format, tmp_path: Path) -> Path:
    path = tmp_path / NAMES.get(fmt.name, f"sample{fmt.suffixes[0]}")
    path.write_bytes(SAMPLES[fmt.name]())
    for name, content in BESIDE.get(fmt.name, {}).items():
        (tmp_path / name).write_bytes(content())
    return path


def sorted_rows(frame: pl.LazyFrame) -> pl.DataFrame:
    rows = frame.collect()
    return rows.select(pl.exclude(pl.Array(pl.Int64, 3))).sort(pl.all()) if rows.height else rows


def events_with_a_row(trace: Trace) -> int:
    """Rows, for a sample in which no event has several but a launch that communicates and an allocator's record."""
    own = {name: frame for name, frame in trace.tables.items() if name != "collectives"}
    if "memory_events" in own and "counters" in own and own["memory_events"].collect().height:
        own["counters"] = own["counters"].filter(pl.col("metric") != "memory_allocated")
    return sum(frame.select(pl.len()).collect().item() for frame in own.values())


def test_every_format_has_a_sample() -> None:
    assert set(FORMATS) == set(SAMPLES)


@every_format
def test_a_format_is_declared_in_full(fmt: Format) -> None:
    assert FORMATS[fmt.name] is fmt
    assert fmt.name == fmt.name.lower()
    assert fmt.title
    assert all(suffix.startswith(".") for suffix in fmt.suffixes)
    assert fmt.tables <= ALL_TABLES
    assert not set(fmt.aliases) & set(FORMATS)


@every_format
def test_a_format_says_how_it_is_recorded(fmt: Format) -> None:
    assert bool(fmt.recorded_by) != (fmt.name in UNRECORDABLE)


@every_format
def test_its_content_and_its_names_find_it(fmt: Format, sample: Path) -> None:
    assert [each.name for each in FORMATS.values() if each.sniff(Source(sample).head)] == [fmt.name]
    assert find_format(Source(sample)) is fmt
    for name in (fmt.name, *fmt.aliases):
        assert find_format(Source(sample), name) is fmt


@every_format
def test_the_tables_are_exactly_as_declared(fmt: Format, sample: Path) -> None:
    trace = inferometer.open(sample)
    assert set(trace.tables) == ALL_TABLES
    for name, frame in trace.tables.items():
        table = TABLES[name]
        assert frame.collect_schema() == frame.collect().schema == table.schema
        for column in table.columns:
            if not column.null:
                assert frame.select(pl.col(column.name).null_count()).collect().item() == 0, column
    filled = {name for name, frame in trace.tables.items() if frame.collect().height}
    assert filled == fmt.tables
    assert trace.facts.format == fmt.name
    assert trace.facts.source == str(sample)


@every_format
def test_every_event_is_a_row_or_a_loss_of_its_category(fmt: Format, sample: Path) -> None:
    trace = inferometer.open(sample)
    losses = trace.losses
    assert losses.seen.total() == events_with_a_row(trace) + losses.dropped()
    assert all(losses.dropped(category) <= n for category, n in losses.seen.items())
    assert {loss.category for loss in losses if loss.dropped} <= set(losses.seen)
    assert all(loss.name in KINDS for loss in losses)
    assert losses.scope == trace.scope == ALL_TABLES


@every_format
def test_reading_twice_gives_identical_tables(fmt: Format, sample: Path) -> None:
    first, second = inferometer.open(sample), inferometer.open(sample)
    assert (first.facts, first.losses) == (second.facts, second.losses)
    for name, frame in first.tables.items():
        assert frame.collect().equals(second.tables[name].collect())


@every_format
def test_a_table_is_the_same_whoever_else_is_asked_for(fmt: Format, sample: Path) -> None:
    full = inferometer.open(sample)
    for name in sorted(fmt.tables):
        for asked in ({name}, {name, "log"}, fmt.tables):
            some, unstable = inferometer.open(sample, asked), UNSTABLE.get(name, [])
            assert sorted_rows(some.tables[name].drop(unstable)).equals(sorted_rows(full.tables[name].drop(unstable)))
            assert some.scope == some.losses.scope == frozenset(asked)
            assert some.losses.seen <= full.losses.seen
            assert some.facts == full.facts


@every_format
def test_a_table_that_was_not_asked_for_is_refused(fmt: Format, sample: Path) -> None:
    for name in sorted(fmt.tables):
        trace = inferometer.open(sample, {name})
        for other in ALL_TABLES - {name}:
            with pytest.raises(InputError, match=f"the table '{other}' was not read"):
                _ = trace.tables[other]


@every_format
def test_events_of_a_part_are_rows_or_losses_too(fmt: Format, sample: Path) -> None:
    for name in sorted(fmt.tables - {"collectives"}):  # whose events are those of launches
        trace = inferometer.open(sample, {name})
        assert trace.losses.seen.total() == events_with_a_row(trace) + trace.losses.dropped()


@every_format
def test_a_store_holds_the_same_trace(fmt: Format, sample: Path, tmp_path: Path) -> None:
    trace = inferometer.open(sample)
    stores = (trace.save(tmp_path / "saved.ifm"), tmp_path / "imported.ifm")
    inferometer.import_trace(sample, stores[1])
    for store in stores:
        again = inferometer.open(store)
        assert (again.facts, again.losses, again.scope) == (stored_facts(trace), trace.losses, trace.scope)
        for name, frame in trace.tables.items():
            assert again.tables[name].collect().equals(frame.collect())


@every_format
def test_a_file_that_ends_early_is_a_trace_with_losses_or_an_input_error(fmt: Format, sample: Path) -> None:
    data = sample.read_bytes()
    for size in range(0, len(data.rstrip()), max(1, len(data) // 40)):
        sample.write_bytes(data[:size])
        with suppress(InputError):
            assert inferometer.open(sample, format=fmt.name).losses.total() > 0


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "any").write_text("{}")
    with pytest.raises(UnknownName, match='unknown format "nonsense"\n  Known') as caught:
        inferometer.open(tmp_path / "any", format="nonsense")
    assert set(caught.value.known) == set(FORMATS)


def test_content_of_no_format_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "any").write_text("hello")
    with pytest.raises(FormatError, match=r"expected one of the known formats \(.*kineto.*\), found .* b'hello'"):
        inferometer.open(tmp_path / "any")
