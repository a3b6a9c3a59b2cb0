"""Units both ways: exact integers from every spelling, and back within what three decimals can say."""

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.errors import InputError
from inferometer.units import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_ranges,
    format_rows,
    format_share,
    format_signed_duration,
    parse_bytes,
    parse_duration,
    parse_exact_duration,
)

INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("960 ns", 960),
        ("84.724 \u03bcs", 84_724),  # the Greek letter mu
        ("84.724 \u00b5s", 84_724),  # the micro sign
        ("84.724us", 84_724),
        ("12.387 ms", 12_387_000),
        ("1.266 s", 1_266_000_000),
        ("2 min", 120_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("1,266,000,000 ns", 1_266_000_000),
        (" 1,234.5 s ", 1_234_500_000_000),
        ("1.266\u00a0s", 1_266_000_000),  # a no-break space
        ("-3e2 us", -300_000),
        (".5 us", 500),
        ("1. s", 1_000_000_000),
        ("0.5 ns", 0),
        ("1.5 ns", 2),
        ("1700000000.123456789 s", 1_700_000_000_123_456_789),
        ("9223372036854775807 ns", INT64_MAX),
    ],
)
def test_durations_are_read_exactly(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "ns", "step_ns"),
    [
        ("1.266 s", "1266000000", "1e6"),
        ("163.659 ms", "163659000", "1e3"),
        ("84.724 us", "84724", "1"),
        ("960 ns", "960", "1"),
        ("84362.5 ns", "84362.5", "0.1"),
        ("3e2 us", "300000", "1e5"),
        ("1,266 s", "1266e9", "1e9"),
    ],
)
def test_a_printed_duration_tells_how_finely_it_was_printed(text: str, ns: str, step_ns: str) -> None:
    assert parse_exact_duration(text) == (Decimal(ns), Decimal(step_ns))
    assert parse_duration(text) == round(Decimal(ns))


@pytest.mark.parametrize(
    "text",
    [
        *("", "s", ".", "12 parsecs", "1 S", "1 s 2", "nan s", "inf s"),
        *("1..2 s", "1,2 s", "1,0000 s", "1_000 s", "\u0661 s", "1" * 99),
    ],
)
def test_what_is_no_duration_is_refused_with_what_was_wanted_and_found(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_duration(text)
    assert f'expected a duration such as 1.266 s, 84.724 us or 960 ns, found "{text[:80]}"' in str(caught.value)
    assert str(caught.value).splitlines()[1] == "  Units: ns, us, \u03bcs, ms, s, min, h."


@pytest.mark.parametrize("text", ["9223372036854775808 ns", "1e999 h", "-3,000,000 h"])
def test_what_needs_more_than_64_bits_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="beyond 64 bits"):
        parse_duration(text)


def test_a_plain_number_has_the_default_unit_or_is_refused() -> None:
    assert parse_duration("1.5", default_unit="s") == 1_500_000_000
    assert parse_duration("1.5 ms", default_unit="s") == 1_500_000
    with pytest.raises(InputError):
        parse_duration("1.5")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (960, "960 ns"),
        (84_724, "84.724 \u03bcs"),
        (999_999, "999.999 \u03bcs"),
        (6_596_000, "6.596 ms"),
        (999_999_499, "999.999 ms"),
        (999_999_501, "1.000 s"),  # never "1000.000 ms"
        (1_266_000_000, "1.266 s"),
        (4_321_000_000_000, "4,321.000 s"),
        (-84_724, "-84.724 \u03bcs"),
        (960.4, "960 ns"),  # a mean
        (None, "-"),
    ],
)
def test_durations_print_as_nsight_prints_them(ns: float | None, text: str) -> None:
    assert format_duration(ns) == text


@pytest.mark.parametrize(("ns", "text"), [(960, "+960 ns"), (0, "0 ns"), (-84_724, "-84.724 \u03bcs")])
def test_differences_of_times_have_a_sign_in_both_directions(ns: int, text: str) -> None:
    assert format_signed_duration(ns) == text


@given(st.integers(-INT64_MAX, INT64_MAX))
def test_plain_nanoseconds_survive_the_round_trip(ns: int) -> None:
    assert parse_duration(f"{ns} ns") == parse_duration(f"{ns:,}ns") == parse_duration(str(ns), default_unit="ns") == ns


@given(
    st.integers(-INT64_MAX, INT64_MAX),
    st.sampled_from([("us", 3), ("\u03bcs", 3), ("\u00b5s", 3), ("ms", 6), ("s", 9)]),
)
def test_every_decimal_unit_is_exact_to_the_nanosecond(ns: int, unit: tuple[str, int]) -> None:
    name, digits = unit
    assert parse_duration(f"{Decimal(ns).scaleb(-digits):f} {name}") == ns


@given(st.integers(-(10**17), 10**17))
def test_a_printed_duration_reads_back_within_half_of_its_last_digit(ns: int) -> None:
    resolution_ns = 1 if abs(ns) < 10**6 else 10**3 if abs(ns) < 999_999_500 else 10**6
    assert abs(parse_duration(format_duration(ns)) - ns) * 2 <= (resolution_ns if resolution_ns > 1 else 0)


@given(st.text(max_size=20), st.sampled_from([None, "s", "GB"]))
def test_any_text_is_a_number_or_an_input_error(text: str, default_unit: str | None) -> None:
    for parse in (parse_duration, parse_bytes):
        with contextlib.suppress(InputError):
            assert isinstance(parse(text, default_unit=default_unit), int)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("512", 512),
        ("512 B", 512),
        ("1.5 GB", 1_500_000_000),
        ("1.5GiB", 1_610_612_736),
        ("12,288 B", 12_288),
        ("2 kB", 2_000),
    ],
)
def test_sizes_are_read_exactly(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


def test_what_is_no_size_is_refused() -> None:
    with pytest.raises(InputError, match=r'expected a size such as 1\.5 GB, 4 KiB or 512 B, found "3 Gb"'):
        parse_bytes("3 Gb")  # bits?
    with pytest.raises(InputError):
        parse_bytes("512", default_unit=None)


@pytest.mark.parametrize(
    ("size_bytes", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (1_000, "1.000 kB", "1000 B"),
        (4_096, "4.096 kB", "4.000 KiB"),
        (1_048_575, "1.049 MB", "1,023.999 KiB"),
        (1_500_000_000, "1.500 GB", "1.397 GiB"),
        (INT64_MAX, "9,223.372 PB", "8,192.000 PiB"),
        (None, "-", "-"),
    ],
)
def test_sizes_print_in_powers_of_1000_or_of_1024(size_bytes: int | None, decimal: str, binary: str) -> None:
    assert format_bytes(size_bytes) == decimal
    assert format_bytes(size_bytes, binary=True) == binary


@given(st.integers(0, 2**60), st.booleans())
def test_a_printed_size_reads_back_within_a_thousandth(size_bytes: int, binary: bool) -> None:
    assert abs(parse_bytes(format_bytes(size_bytes, binary=binary)) - size_bytes) <= size_bytes / 1000


def test_counts_and_shares() -> None:
    assert format_count(12_345) == "12,345"
    assert [format_rows(1, table) for table in ("launches", "calls", "memory_events", "log")] == [
        *("1 launch", "1 call", "1 memory_event", "1 log"),
    ]
    assert format_rows(12_345, "launches") == "12,345 launches"
    assert [format_counted(count, "call") for count in (0, 1, 12_345)] == ["0 calls", "1 call", "12,345 calls"]
    assert format_share(0.57) == "57.0 %"
    assert format_share(1.25) == "125.0 %"
    assert format_count(None) == format_share(None) == "-"


def test_numbers_that_follow_each_other_are_joined() -> None:
    assert format_ranges([27, 28, 29, 39]) == "27-29, 39"
    assert format_ranges([0]) == "0"
    assert format_ranges([]) == ""
