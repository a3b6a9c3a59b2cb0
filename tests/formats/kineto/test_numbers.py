"""Times from text, against Decimal with as many digits as it takes."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.kineto_files import exact_ns

from inferometer.formats.kineto.decimals import OK, OUT_OF_RANGE, UNREADABLE, parse_list
from inferometer.formats.kineto.numbers import parse_ns

DIGITS = st.text("0123456789", min_size=1, max_size=14).map(lambda text: text.lstrip("0") or "0")
PLAIN = st.one_of(DIGITS, st.builds("{}.{}".format, DIGITS, st.text("0123456789", min_size=1, max_size=9)))
SIGNED = st.builds("{}{}".format, st.sampled_from(["", "-"]), PLAIN)
LONG = st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), DIGITS, st.text("0123456789", min_size=1, max_size=60))
SCIENTIFIC = st.builds("{}{}{}".format, SIGNED, st.sampled_from(["e", "E", "e+", "e-"]), st.integers(0, 12))
ANY = st.one_of(PLAIN, SIGNED, LONG, SCIENTIFIC, PLAIN.map('"{}"'.format))


def parse(*texts: str) -> list[int]:
    values, states = parse_ns([text.encode() for text in texts])
    assert states.tolist() == [OK] * len(texts)
    return values.tolist()


@given(st.lists(PLAIN, max_size=20))
def test_plain_decimals_are_what_decimal_makes_of_them(texts: list[str]) -> None:
    assert parse(*texts) == [exact_ns(text) for text in texts]


@given(st.lists(ANY, max_size=20))
@example(["0.0005" + "0" * 30 + "1"])
@example(["123456789012345.0005000000000000000000000001", "7"])
def test_any_mixture_of_numbers_is_what_decimal_makes_of_it(texts: list[str]) -> None:
    want = [exact_ns(text.strip('"')) for text in texts]
    values, states = parse_ns([text.encode() for text in texts])
    in_range = [-(2**62) <= value <= 2**62 for value in want]
    assert states.tolist() == [OK if good else OUT_OF_RANGE for good in in_range]
    assert values.tolist() == [value if good else 0 for value, good in zip(want, in_range, strict=True)]


@given(st.lists(ANY, min_size=1, max_size=20))
@example(["1.5", "2.25", "3"])
@example(["1.500", "2.250"])
@example(["9" * 5_000 + ".000"])
def test_without_numpy_they_are_the_same_or_nothing(texts: list[str]) -> None:
    want = [exact_ns(text.strip('"')) for text in texts]
    in_range = all(-(2**62) <= value <= 2**62 for value in want)
    assert parse_list([text.encode() for text in texts]) == (want if in_range else None)


@pytest.mark.parametrize("text", ["", "null", "true", "1_000.000", "[1]", '"x"'])
def test_without_numpy_what_is_no_number_gives_nothing(text: str) -> None:
    assert parse_list([b"1.500", text.encode()]) is None


def test_a_time_stamp_keeps_every_nanosecond_where_a_float_would_not() -> None:
    assert parse("1752839462723407.123") == [1752839462723407123]
    assert int(float("1752839462723407.123") * 1000) != 1752839462723407123


@pytest.mark.parametrize(
    ("text", "ns"), [("0.0005", 0), ("0.0015", 2), ("0.0025", 2), ("0.00251", 3), ("2.4995", 2500), ("-0.0015", -2)]
)
def test_digits_below_a_nanosecond_are_rounded_half_to_even(text: str, ns: int) -> None:
    assert parse(text) == [ns]
    assert parse(text, "1.5", "3") == [ns, 1500, 3000]  # in bulk as alone


@pytest.mark.parametrize("text", ["1e3", "1E3", "1.0e+3", "10000e-1", '"1000"', '" 1000 "', "1000.", "1000"])
def test_the_same_time_may_be_written_in_many_ways(text: str) -> None:
    assert parse(text) == [1_000_000]


@pytest.mark.parametrize(
    "text", ["", "null", "true", "NaN", "-Infinity", '"12us"', "[1]", "{}", '"é"', "1.2.3", ".", '"1_000"']
)
def test_what_is_no_number_is_unreadable_and_spares_its_neighbours(text: str) -> None:
    values, states = parse_ns([b"1.5", text.encode(), b"2"])
    assert states.tolist() == [OK, UNREADABLE, OK]
    assert values.tolist() == [1500, 0, 2000]


@pytest.mark.parametrize("text", ["1e400", "-1e400", "9" * 30, "9" * 500 + ".5", "4611686018427387.905"])
def test_what_does_not_fit_is_out_of_range(text: str) -> None:
    values, states = parse_ns([text.encode(), b"1"])
    assert states.tolist() == [OUT_OF_RANGE, OK]
    assert values.tolist() == [0, 1000]


@pytest.mark.parametrize("text", ["0e1000", "0", "-0.0", "1e-400", "0.00000000000000000000000001"])
def test_nothing_is_zero_however_it_is_written(text: str) -> None:
    assert parse(text) == [0]


def test_the_largest_time_is_two_to_the_62_ns() -> None:
    most = Decimal(2**62) / 1000
    assert parse(str(most)) == [2**62]


def test_no_numbers_are_no_times() -> None:
    values, states = parse_ns([])
    assert values.tolist() == states.tolist() == []
