"""The catalogue on several devices: published rows stay as published, and what a device lacks is null."""

import json

import pytest

from inferometer.analyses.operators.catalogue import list_operators
from inferometer.analyses.operators.leaderboard import Leaderboard, make_leaderboard
from inferometer.hardware.device import Device
from inferometer.hardware.known import require_device
from inferometer.operators import operators, require_operator
from inferometer.reports.views.leaderboard import catalogue
from inferometer.reports.views.view import sections_of

CHOSEN = [require_operator(name) for name in ("unified_attention", "topk_filter", "rms_norm")]


@pytest.fixture(scope="module")
def board() -> Leaderboard:
    return make_leaderboard(CHOSEN, [require_device("H100 SXM"), require_device("H20")], require_device)


def test_the_timed_platform_comes_first_and_each_device_once(board: Leaderboard) -> None:
    assert [platform.device.name for platform in board.platforms] == ["XPU-A", "H20", "H100 SXM"]
    assert [platform.is_timed for platform in board.platforms] == [True, False, False]
    assert board.shapes == 25 + 8 + 56


def test_a_headline_row_is_of_the_middle_shape_and_beside_it_are_medians(board: Leaderboard) -> None:
    section = sections_of(board)[1]
    attention, _, norm = section.frame.iter_rows(named=True)
    titles = [field.title for field in section.fields]
    assert titles[3:7] == ["FLOP/B", "T_SOL (H20)", "T_SOL (XPU-A)", "T_Prod"]
    assert (attention["regime"], round(attention["arithmetic_intensity"], 1)) == ("C", 102.8)  # as the page prints it
    assert [round(attention[key] / 1e6, 2) for key in ("t_sol H20", "t_sol XPU-A", "t_prod")] == [3.43, 2.18, 29.36]
    assert norm["index"] == 28  # seven tokens: its bound is nothing, its time a launch
    assert [round(norm[key]) for key in ("t_sol H20", "t_sol XPU-A", "bound")] == [10, 7, 7]
    assert norm["median_t_sol XPU-A"] > 100 * norm["t_sol XPU-A"]
    shapes = require_operator("rms_norm").catalogue().shapes
    deployed = sorted(shape.published.t_prod_ns["XPU-A"] for shape in shapes)
    assert norm["median_t_prod"] == deployed[len(deployed) // 2]


def test_another_device_has_its_own_published_bound_and_no_deployed_time(board: Leaderboard) -> None:
    section = sections_of(board)[3]
    assert section.frame["t_prod"].null_count() == section.frame.height
    own, published = section.frame["t_sol H100 SXM"], section.frame["t_sol H20"]
    assert (own != published).all()
    assert "T_Prod isn't given: deployed kernels were timed on XPU-A only." in section.notes


def test_what_a_device_lacks_is_null(board: Leaderboard) -> None:
    bare = make_leaderboard(CHOSEN, [Device(name="Bare")], require_device)
    frame = sections_of(bare)[-1].frame
    columns = ("t_sol Bare", "bound", "median_t_sol Bare", "median_bound")
    assert [frame[column].null_count() for column in columns] == [3, 3, 3, 3]
    assert frame["binding"].to_list() == ["unknown"] * 3


def test_importance_is_normalised_and_what_was_published_stands_beside_it() -> None:
    every = list(operators().values())
    whole = make_leaderboard(every, [], require_device)
    rows = whole.to_polars()
    assert rows["importance"].sum() == pytest.approx(1)
    assert rows["importance_published"].sum() == pytest.approx(whole.published_total)
    assert rows["operator"].to_list() == [operator.name for operator in every]
    assert round(whole.published_total, 3) == 1.095
    assert "up to 109.5 %" in catalogue(whole).notes[0]


def test_json_has_every_operator_of_every_device(board: Leaderboard) -> None:
    data = json.loads(json.dumps(board.as_json()))
    assert (data["operators"], data["shapes"], data["profiles"]) == (3, 89, 1303)
    for found, platform in zip(data["devices"], board.platforms, strict=True):
        alone = list_operators(CHOSEN, platform.device).as_json()
        assert {key: found[key] for key in alone} == json.loads(json.dumps(alone))
        assert found["values"]["name"] == found["device"] == platform.device.name
        assert [row["operator"] for row in found["headlines"]] == [operator.name for operator in CHOSEN]
    assert data["devices"][0]["headlines"][2]["middle"]["index"] == 28


def test_an_empty_catalogue_is_no_error() -> None:
    nothing = make_leaderboard([], [], require_device)
    assert [section.frame.height for section in sections_of(nothing)] == [0, 0, 0]
    assert nothing.as_json()["shapes"] == 0
