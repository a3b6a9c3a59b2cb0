"""The catalogue as results: what is listed, what a sheet says, and that nothing is reported that isn't known."""

import json

import pytest

from inferometer.analyses.operators.bounds import FLAGS
from inferometer.analyses.operators.catalogue import describe_operator, list_operators
from inferometer.errors import UnknownName
from inferometer.hardware.known import require_device
from inferometer.operators import operators, require_operator
from inferometer.reports.views.view import sections_of

EVERY = list(operators().values())


def test_shares_of_importance_add_up_and_the_first_is_the_most_important() -> None:
    found = list_operators(EVERY, require_device("XPU-A"))
    shares = [each.normalised for each in found.operators]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert found.operators[0].operator.name == "unified_attention"


def test_a_device_without_deployed_times_gives_no_s() -> None:
    found = list_operators(EVERY, require_device("H100 SXM"))
    assert [each.sol_fraction for each in found.operators] == [None] * len(EVERY)
    assert any("S is not given" in note for note in sections_of(found)[0].notes)


def test_a_shape_whose_bound_is_below_a_launch_has_its_s_and_says_so() -> None:
    """Seven rows of 1,280: in, out and the weight, at 5.3 TB/s."""
    sheet = describe_operator(require_operator("rms_norm"), EVERY, require_device("XPU-A"))
    one = next(each for each in sheet.found.shapes if each.shape.index == 28)
    bound_ns = 1e9 * (2 * 7 * 1280 * 2 + 1280 * 2) / 5.3e12
    assert one.bounds.binding == "memory"
    assert one.bounds.bound_ns == pytest.approx(bound_ns)
    assert one.sol_fraction == pytest.approx(bound_ns / 7530)
    assert "below_launch" in one.flags()
    json_of = one.as_json()
    assert (json_of["launch_ns"], "launch" in json_of["sol_fractions"], "launch_ns" in json_of["bounds"]) == (
        7440,
        False,
        False,
    )
    assert json_of["published"]["s"] == pytest.approx(7.245283 / 7530, rel=1e-4)


def test_every_shape_has_an_s_on_the_timed_device() -> None:
    found = list_operators(EVERY, require_device("XPU-A"))
    assert [shape.sol_fraction is None for each in found.operators for shape in each.shapes] == [False] * 440
    (slow,) = [each for each in found.operators if each.operator.name == "moe_align_block_size"]
    assert max(shape.deployed_ns or 0 for shape in slow.shapes) > 400_000
    assert all(shape.sol_fraction is not None and 0 < shape.sol_fraction < 1 for shape in slow.shapes)


def test_what_a_launch_takes_is_a_line_of_its_own_with_its_source_or_why_there_is_none() -> None:
    known, lacking = (list_operators(EVERY, require_device(name)) for name in ("XPU-A", "H20"))
    assert sections_of(known)[0].notes[-1] == (
        "Launch, a reference and in no bound: 7.440 μs (Atrex-Bench, data page (commit eb8697d): at most, the fastest "
        "of 440 deployed kernels). Below launch: shapes whose bound is below that."
    )
    assert sections_of(lacking)[0].notes[-1].startswith("Launch, a reference and in no bound: not given. No vendor")
    assert [each.below_launch for each in lacking.operators] == [None] * len(EVERY)
    assert known.as_json()["launch"]["value"] == 7440
    assert (lacking.as_json()["launch"], lacking.as_json()["no_launch"][:9]) == (None, "No vendor")


def test_flags_are_explained_and_shapes_complete() -> None:
    found = list_operators(EVERY, require_device("XPU-A")).as_json()
    for operator in found["operators"]:
        for shape in operator["shapes"]:
            assert set(shape["flags"]) <= set(FLAGS)
            assert shape["binding"] in ("matrix", "vector", "special", "memory", "dependency")
            assert shape["bound_ns"] == max(
                time for name, time in shape["bounds"].items() if time is not None and name != "memory_warm_ns"
            )
    json.dumps(found, allow_nan=False)


def test_published_bounds_are_chosen_by_name() -> None:
    own, published = (
        list_operators(EVERY, require_device("XPU-A"), published=chosen).to_polars() for chosen in (False, True)
    )
    at = own["operator"].to_list().index("rms_norm")
    assert published["sol_fraction"][at] == pytest.approx(0.160, abs=1e-3)
    at = own["operator"].to_list().index("paged_attention_decode")  # published with blocks that nothing touches
    assert own["sol_fraction"][at] < published["sol_fraction"][at] / 1.4


def test_what_no_formula_gives_is_marked_as_carried() -> None:
    found = list_operators(EVERY, require_device("XPU-A")).as_json()
    marked = {each["name"]: each["shapes"][0]["published"]["carried"] for each in found["operators"]}
    assert {name: what for name, what in marked.items() if what} == {
        "fused_moe": ["w_flops"],
        "moe_align_block_size": ["q_written_bytes"],
    }
    sheet = describe_operator(require_operator("fused_moe"), EVERY, require_device("XPU-A"), published=True)
    assert any("no formula gives it: W" in note for note in sections_of(sheet)[0].notes)


def test_an_unknown_operator_lists_the_nearest() -> None:
    with pytest.raises(UnknownName, match='unknown operator "rms_nrom"') as raised:
        require_operator("rms_nrom")
    assert raised.value.known[0] == "rms_norm"
