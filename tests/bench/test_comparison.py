"""What counts as a right answer: kind, shape, layout, errors by norm and row, neighbours of fp8 values."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from inferometer.bench.comparison import OutputCheck, compare_outputs, flips_allowed, tolerance_of
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")


def reason(name: str, change: Any, place: int = -1) -> str | None:
    """Why the changed answer of an operator is wrong."""
    operator = operators()[name]
    args = operator.tiny[place]
    wanted = operator.answer(operator.inputs(**args, seed=3), args)
    outputs = tuple(tensor.clone() for tensor in wanted.values())
    found = change(*outputs)
    return next((check.reason for check in compare_outputs(operator, found, wanted) if not check.is_right), None)


@pytest.mark.parametrize("name", list(operators()))
def test_the_answer_itself_is_right_and_zeros_are_not(name: str) -> None:
    assert reason(name, lambda *outputs: outputs if len(outputs) > 1 else outputs[0]) is None
    zeros = reason(name, lambda *outputs: tuple(torch.zeros_like(each) for each in outputs))
    assert zeros is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: out.float(), "expected dtype bfloat16, found float32"),
        (lambda out: out[:-1], r"expected shape \(5, 1029\), found \(4, 1029\)"),
        (lambda out: out.T.contiguous().T, "expected a dense tensor, found strides"),
        (lambda out: (out, out), r"expected 1 outputs \(out\), found 2"),
        (torch.nn.Parameter, "expected a plain torch.Tensor, found Parameter"),
        (lambda out: None, "expected a plain torch.Tensor, found NoneType"),
        (lambda out: out.index_fill(0, torch.tensor([2]), float("nan")), "NaN in row 2, the reference has"),
        (lambda out: out.index_fill(0, torch.tensor([2]), 0.0), "error is"),
        (lambda out: out * 1.02, "the error is 0.02"),
    ],
)
def test_what_is_wrong_is_said(change: Any, words: str) -> None:
    found = reason("rms_norm", change)
    assert found is not None
    assert re.search(words, found), found


def test_one_wrong_row_among_thousands_is_seen() -> None:
    operator = operators()["rms_norm"]
    wanted = {"out": torch.randn(20_000, 64).to(torch.bfloat16)}
    found = wanted["out"].clone()
    found[777] = 0
    (check,) = compare_outputs(operator, found, wanted)
    assert check.error is not None
    assert check.error < 1e-2
    assert check.reason == "row 777 is 1 off, expected at most 0.08"


def test_one_wrong_number_in_a_long_row_is_seen() -> None:
    operator = operators()["rms_norm"]
    wanted = {"out": torch.randn(50, 4096).to(torch.bfloat16)}
    found = wanted["out"].clone()
    wanted["out"][3, 77] = found[3, 77] = 1.5
    found[3, 77] = 0
    (check,) = compare_outputs(operator, found, wanted)
    assert check.reason == "number 77 of row 3 is 1 off, expected at most 0.16"


def test_a_row_of_nearly_nothing_is_held_to_the_usual_row() -> None:
    operator = operators()["rms_norm"]
    wanted = torch.randn(50, 64)
    wanted[7] *= 1e-6
    found = wanted.clone()
    found[7] += 1e-6
    (check,) = compare_outputs(operator, found.to(torch.bfloat16), {"out": wanted.to(torch.bfloat16)})
    assert check.is_right


def checked(name: str, found: Any, wanted: Any, args: Any = None) -> OutputCheck:
    """The check of the first output, of which this is wanted."""
    return compare_outputs(operators()[name], found, wanted, args)[0]


def of_rms_norm(found: list, wanted: list, dtype: Any = torch.bfloat16) -> OutputCheck:
    return checked("rms_norm", torch.tensor(found, dtype=dtype), {"out": torch.tensor(wanted, dtype=dtype)})


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_outputs_is_wrong(count: int) -> None:
    wanted = {"q": torch.ones(2), "scale": torch.ones(2)}
    found = compare_outputs(operators()["fp8_dynamic_per_token_quant"], [torch.ones(2)] * count, wanted)
    assert found == [OutputCheck("q", f"expected 2 outputs (q, scale), found {count}")]


def test_every_output_is_checked_under_its_own_name() -> None:
    wanted = {"out": torch.ones(2, 4).bfloat16(), "residual": torch.ones(2, 4).bfloat16()}
    found = compare_outputs(operators()["fused_add_rms_norm"], (wanted["out"], wanted["residual"] * 2), wanted)
    assert [(check.output, check.is_right) for check in found] == [("out", True), ("residual", False)]
    assert found[0] == OutputCheck("out", None, 0.0, 0.0, 0.01)
    assert found[1] == OutputCheck("residual", "the error is 1 of the answer, expected at most 0.01", 1.0, 1.0, 0.01)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        (torch.float64, 1e-5), (torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1e-2),
        (torch.float8_e4m3fn, 6e-2), (torch.float8_e5m2, 6e-2), (torch.int32, 0.0), (torch.bool, 0.0),
    ],
)  # fmt: skip
def test_the_usual_tolerance_is_that_of_the_dtype(dtype: Any, tolerance: float) -> None:
    assert tolerance_of(operators()["rms_norm"], "out", torch.zeros(1, dtype=dtype)) == tolerance


def test_an_operator_s_own_tolerance_and_exactness_go_first() -> None:
    operator = replace(operators()["rms_norm"], tolerance={"out": 0.5}, exact=frozenset({"other"}))
    wanted = torch.zeros(1)
    assert (tolerance_of(operator, "out", wanted), tolerance_of(operator, "other", wanted)) == (0.5, 0.0)


def test_a_shape_that_was_calibrated_has_three_times_its_error_where_that_is_more() -> None:
    """`calibration.json`: plain PyTorch is 0.003622 off on the first tiny shape of `causal_conv1d`, 0.002893 on the
    second."""
    wanted = {"out": torch.ones(4, 4).bfloat16()}
    first, second = operators()["causal_conv1d"].tiny[:2]
    found = [checked("causal_conv1d", wanted["out"], wanted, args).tolerance for args in (first, second, None)]
    assert found == [pytest.approx(0.010866), 0.01, 0.01]


@pytest.mark.parametrize(("off", "is_right"), [(0.0099, True), (0.0101, False)])
def test_the_whole_may_be_off_by_the_tolerance(off: float, is_right: bool) -> None:
    wanted = torch.ones(20, 4)
    operator = replace(operators()["rms_norm"], tolerance={"out": 0.01})
    (check,) = compare_outputs(operator, wanted + off, {"out": wanted})
    assert check.is_right is is_right


@pytest.mark.parametrize(("off", "is_right"), [(0.079, True), (0.081, False)])
def test_a_row_may_be_off_by_eight_times_the_tolerance(off: float, is_right: bool) -> None:
    wanted = torch.ones(1000, 4)
    found = wanted.clone()
    found[500] += off
    operator = replace(operators()["rms_norm"], tolerance={"out": 0.01})
    (check,) = compare_outputs(operator, found, {"out": wanted})
    assert check.reason == (None if is_right else "row 500 is 0.081 off, expected at most 0.08")


@pytest.mark.parametrize(("off", "is_right"), [(0.159, True), (0.161, False)])
def test_a_number_may_be_off_by_sixteen_times_the_tolerance(off: float, is_right: bool) -> None:
    wanted = torch.ones(10, 1000)
    found = wanted.clone()
    found[5, 17] += off
    operator = replace(operators()["rms_norm"], tolerance={"out": 0.01})
    (check,) = compare_outputs(operator, found, {"out": wanted})
    assert check.reason == (None if is_right else "number 17 of row 5 is 0.161 off, expected at most 0.16")


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("found", "wanted", "reason"),
    [
        ([INF, 1.0], [INF, 1.0], None),
        ([-INF, 1.0], [-INF, 1.0], None),
        ([NAN, 1.0], [NAN, 1.0], None),
        ([INF, 1.0], [-INF, 1.0], "infinity in row 0, the reference has -infinity"),
        ([1.0, -INF], [1.0, INF], "-infinity in row 0, the reference has infinity"),
        ([INF, NAN], [NAN, NAN], "infinity in row 0, the reference has NaN"),
        ([NAN, 1.0], [INF, 1.0], "NaN in row 0, the reference has infinity"),
        ([1.0, NAN], [1.0, 1.0], "NaN in row 0, the reference has 1"),
        ([1.0, 2.0], [INF, NAN], "1 in row 0, the reference has infinity (2 such numbers at least)"),
    ],
)
def test_infinities_and_nan_stand_where_they_are_wanted(
    found: list[float], wanted: list[float], reason: str | None
) -> None:
    check = of_rms_norm([found], [wanted])
    assert (check.reason, check.tolerance) == (reason, 0.01)


def test_infinities_are_looked_for_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.bench.comparison._PIECE", 3)
    assert of_rms_norm([[1.0] * 8], [[*[1.0] * 7, INF]]).reason == "1 in row 0, the reference has infinity"
    assert of_rms_norm([[INF, *[1.0] * 7]], [[1.0] * 8]).reason == "infinity in row 0, the reference has 1"
    second = of_rms_norm([[1.0] * 4, [1.0] * 4], [[1.0] * 4, [1.0, INF, INF, 1.0]]).reason
    assert second == "1 in row 1, the reference has infinity"  # the other one is in the next piece


def test_a_strided_answer_may_be_answered_as_it_is_wanted() -> None:
    wanted = {"out": torch.ones(4, 2).bfloat16().T}
    assert checked("rms_norm", wanted["out"], wanted).is_right
    assert checked("rms_norm", wanted["out"].contiguous(), wanted).is_right


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 4], [1, 2, 3], "1 of 3 values differ, and must be exact"),
        ([0] * 2000, [1] * 2000, "2,000 of 2,000 values differ, and must be exact"),
    ],
)
def test_integers_that_differ_are_counted(found: list[int], wanted: list[int], words: str | None) -> None:
    off = float(words is not None)
    assert of_rms_norm(found, wanted, torch.int32) == OutputCheck("out", words, off, off, 0.0)


def test_exact_floats_may_be_nan_where_that_is_wanted() -> None:
    operator = replace(operators()["rms_norm"], exact=frozenset({"out"}))
    wanted = torch.tensor([1.0, NAN, 2.0])
    assert compare_outputs(operator, wanted.clone(), {"out": wanted})[0].is_right
    (check,) = compare_outputs(operator, torch.tensor([1.5, NAN, 2.0]), {"out": wanted})
    assert check.reason == "1 of 3 values differ, and must be exact"


def of_fp8(found: Any, wanted: Any) -> OutputCheck:
    """A check of e4m3 values, both given as their bits."""
    values = {"q": wanted.view(torch.float8_e4m3fn), "scale": torch.ones(1)}
    answer = (found.view(torch.float8_e4m3fn), torch.ones(1))
    return compare_outputs(operators()["fp8_dynamic_per_token_quant"], answer, values)[0]


@pytest.mark.parametrize(("flips", "is_right"), [(112, True), (113, False)])
def test_one_fp8_value_in_a_hundred_and_the_ties_of_two_rows_may_be_neighbours(flips: int, is_right: bool) -> None:
    """Of 100 rows of 100: 100 values, and a 16th of two rows, 12.5."""
    wanted = torch.full((100, 100), 0x38, dtype=torch.uint8)  # 1.0
    found = wanted.clone()
    found.view(-1)[:flips] += 1
    check = of_fp8(found, wanted)
    assert check.reason == (
        None if is_right else "1.13% of the values are rounded the other way, expected at most 1.12%"
    )
    assert check.error == pytest.approx((flips / 10_000) ** 0.5 * 0.125)
    assert check.tolerance == 0.06


@pytest.mark.parametrize(
    ("shape", "flips"),
    [
        *[((100, 100), 112.5), ((1, 64), 4.64), ((2, 64), 9.28), ((3, 2, 64), 11.84), ((), 0.0725)],
        *[((0, 4), 0.0), ((4, 0), 0.0)],
    ],
)
def test_flips_grow_with_the_values_and_with_the_width_of_two_rows(shape: tuple[int, ...], flips: float) -> None:
    assert flips_allowed(torch.zeros(shape)) == pytest.approx(flips)


@pytest.mark.parametrize(
    ("found", "wanted", "apart"),
    [
        (0x39, 0x38, 1),  # 1.125 and 1
        (0x3A, 0x38, 2),
        (0xB9, 0xB8, 1),  # -1.125 and -1
        (0xBA, 0xB8, 2),
        (0x01, 0x00, 1),  # the least number and 0
        (0x81, 0x00, 1),
        (0x81, 0x80, 1),
        (0x80, 0x00, 0),  # both zeros
        (0x81, 0x01, 2),
        (0xB8, 0x38, 112),  # -1 and 1
    ],
)
def test_fp8_values_are_apart_by_the_numbers_between_them(found: int, wanted: int, apart: int) -> None:
    row = torch.full((100, 100), 0x38, dtype=torch.uint8)
    other = row.clone()
    row[3, 5], other[3, 5] = wanted, found
    words = f"a value is {apart} units of the last place off, expected at most 1" if apart > 1 else None
    assert of_fp8(other, row).reason == words


def test_no_fp8_values_are_right() -> None:
    empty = torch.zeros((0, 4), dtype=torch.uint8)
    assert of_fp8(empty, empty) == OutputCheck("q", None, 0.0, 0.0, 0.06)


def test_integers_are_exact() -> None:
    found = reason("moe_count_and_sort", lambda ids, counts, sums: (ids, counts, sums + 1))
    assert found is not None
    assert found.endswith("values differ, and must be exact")
