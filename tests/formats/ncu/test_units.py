"""Units of Nsight Compute: a literal row for each way in which it prints them."""

from decimal import Decimal

import pytest

from inferometer.formats.ncu.numerals import read_number
from inferometer.formats.ncu.units import half_digit, in_base, read_unit


@pytest.mark.parametrize(
    ("number", "unit", "value", "base"),
    [
        ("41.952000", "us", 41_952.0, "ns"),
        ("41.95", "usecond", 41_950.0, "ns"),
        ("3", "ms", 3e6, "ns"),
        ("2", "second", 2e9, "ns"),
        ("1,056", "", 1_056.0, ""),
        ("134.223872", "Mbyte", 134_223_872.0, "byte"),
        ("2.5", "Kbyte", 2_500.0, "byte"),
        ("7", "byte", 7.0, "byte"),
        ("2.935267", "Tbyte/s", 2.935267e12, "byte/s"),
        ("957.54", "Gbyte/s", 957.54e9, "byte/s"),
        ("1.5", "Kbyte/cycle", 1_500.0, "byte/cycle"),
        ("1.024", "Kbyte/block", 1_024.0, "byte/block"),
        ("1.964415", "Ghz", 1.964415e9, "hz"),
        ("1.4", "GHz", 1.4e9, "hz"),
        ("1.41", "cycle/nsecond", 1.41e9, "hz"),
        ("705.5", "cycle/usecond", 705.5e6, "hz"),
        ("3", "sector/us", 3e6, "sector/s"),
        ("3", "sector/ns", 3e9, "sector/s"),
        ("34.29", "%", 34.29, "%"),
        ("0.077219", "%/Kbyte", 0.000077219, "%/byte"),
        ("3.06", "inst/cycle", 3.06, "inst/cycle"),
        ("-0.000604", "%", -0.000604, "%"),
        ("1.5e+06", "inst", 1.5e6, "inst"),
    ],
)
def test_numbers_are_in_base_units(number: str, unit: str, value: float, base: str) -> None:
    found, parsed = read_unit(unit), read_number(number)
    assert parsed is not None
    assert found.text == base
    assert in_base(parsed, found) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("text", ["", "PolicySpread", "1,05", "1,0567", "12,34,567", "1.2.3", "(256, 1, 1)", "9" * 40])
def test_what_is_no_number(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_what_is_not_finite_has_no_value(text: str) -> None:
    number = read_number(text)
    assert number is not None
    assert in_base(number, read_unit("%")) is None


def test_half_of_the_last_digit() -> None:
    assert half_digit(Decimal("41.95"), read_unit("us")) == 5
    assert half_digit(Decimal("41.952000"), read_unit("us")) == Decimal("0.0005")
    assert half_digit(Decimal(3), read_unit("ns")) == Decimal("0.5")
