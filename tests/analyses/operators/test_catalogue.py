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


def test_a_shape_that_the_launch_binds_has_no_s() -> None:
    sheet = describe_operator(require_operator("rms_norm"), EVERY, require_device("XPU-A"))
    one = next(each for each in sheet.found.shapes if each.shape.index == 28)
    assert (one.bounds.binding, one.sol_fraction) == ("launch", None)
    assert "launch_bound" in one.flags()
    json_of = one.as_json()
    assert json_of["sol_fractions"]["launch"] == pytest.approx(7440 / 7530)
    assert json_of["published"]["s"] == pytest.approx(7.245283 / 7530, rel=1e-4)


def test_flags_are_explained_and_shapes_complete() -> None:
    found = list_operators(EVERY, require_device("XPU-A")).as_json()
    for operator in found["operators"]:
        for shape in operator["shapes"]:
            assert set(shape["flags"]) <= set(FLAGS)
            assert shape["binding"] in ("launch", "matrix", "vector", "special", "memory", "dependency")
            assert shape["bound_ns"] == max(
                time for name, time in shape["bounds"].items() if time is not None and name != "memory_warm_ns"
            )
    json.dumps(found, allow_nan=False)


def test_published_bounds_are_chosen_by_name() -> None:
    own, published = (
        list_operators(EVERY, require_device("XPU-A"), published=chosen).to_polars() for chosen in (False, True)
    )
    at = own["operator"].to_list().index("rms_norm")
    assert own["sol_fraction"][at] > 0.25
    assert published["sol_fraction"][at] == pytest.approx(0.160, abs=1e-3)


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
