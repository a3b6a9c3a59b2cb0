import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.fleet.digests import fleet_of, op

from inferometer.bench.exchange import read_workloads
from inferometer.errors import InputError
from inferometer.fleet.opening import Fleet
from inferometer.fleet.questions.bootstrap import clusters_of, share_intervals
from inferometer.fleet.questions.importance import fleet_importance, op_parts, weighed
from inferometer.fleet.representatives import choose_representatives
from inferometer.fleet.shape_file import encode_representatives

HOUR = 3_600_000_000_000


@pytest.fixture
def two(tmp_path: Path) -> Fleet:
    """A trace whose GPU is busy, and one whose GPU is held as long and mostly waits."""
    busy = {
        "about": {"held_ns": HOUR, "model": "x"},
        "ops": [op("mm", 60, "[[8,8]]"), op("norm", 20), op(None, 20, kernel="k")],
    }
    waits = {"about": {"held_ns": HOUR, "model": "y"}, "ops": [op("norm", 10)]}
    cpu = {"about": {"gpus": 0, "model": "y"}, "ops": [op("mm", 90, "[[8,8]]")]}
    return fleet_of(tmp_path / "f.ifm", {"busy": busy, "waits": waits, "cpu": cpu})


def test_weights_by_time_and_by_held_gpu_hours(two: Fleet) -> None:
    found = fleet_importance(two)
    rows = {row["op"] or row["kernel"]: row for row in found.frame.to_dicts()}
    assert {name: row["time_weight"] for name, row in rows.items()} == {
        "mm": 150 / 200,
        "norm": 30 / 200,
        "k": 20 / 200,
    }
    assert {name: row["gpu_hours"] for name, row in rows.items()} == {
        "mm": pytest.approx(0.6), "norm": pytest.approx(1.2), "k": pytest.approx(0.2),
    }  # fmt: skip
    assert found.held_gpu_hours == pytest.approx(2.0)
    assert found.frame["gpu_hours_weight"].sum() == pytest.approx(1)
    by_hours = fleet_importance(two, weighing="gpu-hours", top=1)
    assert (by_hours.frame["op"].item(), by_hours.rows) == ("norm", 3)


def test_intervals_are_those_of_drawn_clusters(two: Fleet) -> None:
    row = fleet_importance(two, cluster="model").frame.filter(pl.col("op") == "mm").row(0, named=True)
    # clusters x: 60 of 100, y: 90 of 100; draws have one twice, or both
    assert (row["time_low"], row["time_high"]) == (pytest.approx(0.6), pytest.approx(0.9))
    alone = fleet_importance(two, cluster="format").frame
    assert alone["time_low"].null_count() == alone.height


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draw = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        whole = draw.uniform(50, 150, 60)
        part = whole * draw.beta(4, 12, 60)  # a quarter on the mean
        low, high = share_intervals(part[:, None], whole)
        covered += bool(low[0] <= 0.25 <= high[0])
    assert 180 <= covered <= 199  # 190 at 95 %; 178 would be four deviations below


def test_like_shapes_stand_for_each_other(tmp_path: Path) -> None:
    def norm(tokens: int, ns: int, calls: int, dim: int = 4096) -> dict[str, object]:
        args = json.dumps({"tokens": tokens, "hidden": dim})
        return op("norm", ns, f"[[{tokens},{dim}]]", calls=calls, operator="rms_norm", operator_args=args)

    rows = [norm(1, 1000, 100), norm(2, 220, 20), norm(4096, 5000, 10), norm(4000, 980, 2), op("mm", 2800)]
    fleet = fleet_of(tmp_path / "f.ifm", {"t": {"ops": rows}})
    weights = weighed(op_parts(fleet, clusters_of(fleet, None)), "time")
    (found,) = choose_representatives(weights, most=2, weight="time_weight")
    assert found.shapes == 4
    assert found.weight == pytest.approx(0.72)
    assert [(each.args["tokens"], each.shapes, each.calls, each.total_ns) for each in found.representatives] == [
        (4096, 2, 12, 5980), (1, 2, 120, 1220),
    ]  # fmt: skip
    # a call of 2 tokens takes 11 in place of 10, one of 4000 takes 490 in place of 500
    assert found.error == pytest.approx((20 * 1 + 2 * 10) / 7200)
    (alone,) = choose_representatives(weights, most=4, weight="time_weight")
    assert (len(alone.representatives), alone.error) == (4, 0.0)


def test_shapes_of_another_type_never_stand_for_each_other() -> None:
    frame = pl.DataFrame(
        {
            "operator": ["rms_norm"] * 3,
            "operator_args": ['{"n":8,"dtype":"a"}', '{"n":8,"dtype":"b"}', '{"n":8,"dtype":"b","k":null}'],
            "calls": [1, 1, 1],
            "total_ns": [5, 5, 5],
            "time_weight": [0.5, 0.3, 0.2],
        }
    )
    (found,) = choose_representatives(frame, most=1, weight="time_weight")
    assert (len(found.representatives), found.error) == (3, 0.0)


def test_representatives_are_shapes_for_bench(tmp_path: Path) -> None:
    from inferometer.operators import require_operator

    shapes = require_operator("rms_norm").catalogue().shapes[:6]
    ops = [
        op("norm", 100 * (i + 1), f"[[{i}]]", calls=1, operator="rms_norm", operator_args=json.dumps(shape.args))
        for i, shape in enumerate(shapes)
    ]
    fleet = fleet_of(tmp_path / "f.ifm", {"t": {"ops": ops}})
    found = choose_representatives(
        weighed(op_parts(fleet, clusters_of(fleet, None)), "time"), most=2, weight="time_weight"
    )
    (file := tmp_path / "shapes.jsonl").write_bytes(encode_representatives(found, "f.ifm"))
    (read,) = read_workloads(file)
    assert read.operator.name == "rms_norm"
    assert [dict(args) for _, args in read.shapes] == [each.args for each in found[0].representatives]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(line["workload"]["inferometer"]["weight"] for line in lines) == pytest.approx(1)
    assert "of the fleet, for" in read.shapes[0][0]


def test_without_an_operator_of_the_catalogue_there_is_no_file() -> None:
    with pytest.raises(InputError, match="no op is an operator of the catalogue"):
        encode_representatives([], "f.ifm")


def test_intervals_of_many_clusters_are_what_those_of_draws_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    parts = draw.gamma(2.0, size=(3_000, 3)) * [1.0, 5.0, 0.01]
    wholes = parts.sum(axis=1)
    drawn = share_intervals(parts, wholes)
    monkeypatch.setattr("inferometer.fleet.questions.bootstrap._MOST_DRAWN", 3_000)
    near = share_intervals(parts, wholes)
    width = drawn[1] - drawn[0]
    assert np.all(np.abs(np.array(drawn) - np.array(near)) < 0.1 * width)
    assert np.isnan(share_intervals(parts, np.zeros(3_000))).all()


def test_intervals_of_many_clusters_stay_within_the_shares_that_clusters_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.fleet.questions.bootstrap._MOST_DRAWN", 4)
    wholes = np.array([1e6, 1.0, 1.0, 1.0])
    parts = np.column_stack([[1e6, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    low, high = share_intervals(parts, wholes)
    assert high[0] == 1.0
    assert low[1] == 0.0
    assert low[0] < parts[:, 0].sum() / wholes.sum() < 1.0
