"""What comes once a step is recognised by names, else by regular distances, and by pauses where several would do."""

from typing import Any

import pytest
from tests.analyses.steps.found.made import (
    ADAM,
    ARGMAX,
    DECODE,
    FILL,
    GEMM,
    NORM,
    SAMPLE,
    SOFTMAX,
    TO_DEVICE,
    TO_HOST,
    traced,
)

from inferometer.analyses.steps.found.anchors import Level, find_level
from inferometer.analyses.steps.found.bodies import find_bodies
from inferometer.analyses.steps.found.lanes import DeviceLaunches, read_lanes

LAYER = [GEMM, DECODE, GEMM, NORM]


def lane_of(kernels: list[str], pauses: dict[int, int] | None = None) -> DeviceLaunches:
    """Launches of 900 ns, 100 ns apart, with longer pauses before some."""
    rows: list[dict[str, Any]] = []
    now = 0
    for k, name in enumerate(kernels):
        now += (pauses or {}).get(k, 0)
        rows.append({"kernel": name, "start_ns": now, "dur_ns": 900})
        now += 1_000
    (lane,) = read_lanes(traced(rows))
    return lane


def level_of(lane: DeviceLaunches) -> Level | str:
    return find_level(lane, find_bodies(lane))


def told(lane: DeviceLaunches) -> str:
    level = level_of(lane)
    return level if isinstance(level, str) else level.describe(find_bodies(lane))


@pytest.mark.parametrize(
    ("step", "anchor"),
    [
        ([*LAYER * 3, SAMPLE, TO_HOST], "sampling kernels, every 3 attentions"),
        ([*LAYER * 3, ARGMAX], "sampling kernels, every 3 attentions"),
        ([GEMM, NORM, GEMM, NORM, ADAM, ADAM, ADAM], "optimizer kernels, every 2 matrix products"),
        ([*LAYER * 4, TO_HOST], "copies to the host, every 4 attentions"),
        ([FILL, NORM, TO_HOST, NORM], "copies to the host, every 4 launches"),
    ],
)
def test_the_anchor_comes_once_a_step(step: list[str], anchor: str) -> None:
    assert told(lane_of(step * 6)) == anchor


def test_a_name_that_comes_in_every_layer_is_no_anchor() -> None:
    layer = [GEMM, DECODE, GEMM, SAMPLE]
    assert told(lane_of([*layer * 4, TO_HOST] * 6)) == "copies to the host, every 4 attentions"


def test_copies_alone_make_no_step_of_a_single_layer() -> None:
    told_none = told(lane_of([TO_DEVICE, *LAYER, TO_HOST] * 9))
    assert told_none == "no kernel comes at regular distances that are longer than a layer"
    assert told(lane_of([TO_DEVICE, *LAYER, SAMPLE] * 9)) == "sampling kernels, every 1 attention"


def test_what_comes_in_a_part_of_the_trace_is_no_anchor() -> None:
    lane = lane_of([*([*LAYER * 4, TO_HOST] * 4), *LAYER * 60])
    assert told(lane) == "no kernel comes at regular distances that are longer than a layer"


def test_a_cycle_of_prefills_is_no_step_and_lost_anchors_are_filled_in() -> None:
    decode = [*LAYER * 4, SAMPLE]
    cycle = [SOFTMAX, *decode * 5]
    assert told(lane_of(cycle * 8)) == "sampling kernels, every 4 attentions"
    kernels = decode * 20
    del kernels[16 + 17 * 5]
    level = level_of(lane_of(kernels))
    assert isinstance(level, Level)
    assert level.slots.tolist() == list(range(4, 81, 4))
    assert level.fit == pytest.approx((17 + 0.5) / 18)


def test_without_names_pauses_must_say_which_distance_is_the_step() -> None:
    step = ["s_unit", "t_unit", "t_unit", "x_unit", *["s_unit", "t_unit", "t_unit", "t_unit"] * 3]
    assert told(lane_of(step * 9)).startswith("kernels repeat (`other: s_unit`, every 4 launches), but neither")
    paused = lane_of(step * 9, pauses={16 * k: 50_000 for k in range(1, 9)})
    assert told(paused) == "`other: x_unit`, every 16 launches"
    attended = lane_of([*LAYER * 4, SOFTMAX] * 6, pauses={17 * k: 50_000 for k in range(1, 6)})
    assert told(attended) == "`softmax: softmax forward fp#`, every 4 attentions"
