"""A ranking as `leaderboard --json` has it: every result, with what it comes to. Stable; times in ns."""

from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.bench.ranking.shape_figures import sol_fraction, why_no_fraction
from inferometer.bench.results import Run, ShapeResult

if TYPE_CHECKING:
    from inferometer.bench.ranking.ranking import DeviceRanking, Ranked, Ranking


def ranking_json(ranking: "Ranking") -> dict[str, Any]:
    """Runs without their results, which stand at their contenders."""
    return {
        "runs": [_of_run(name, run) for name, run in ranking.runs],
        "devices": [_of_device(each) for each in ranking.devices],
        "differences": None if ranking.differences is None else ranking.differences.as_json(),
    }


def _of_run(name: str, run: Run) -> dict[str, Any]:
    return {"name": name, **{key: value for key, value in msgspec.to_builtins(run).items() if key != "results"}}


def _of_device(found: "DeviceRanking") -> dict[str, Any]:
    return {
        "device": found.device,
        "functional_only": found.functional_only,
        "by": found.by,
        "base": found.base,
        "shapes": found.shapes,
        "shapes_left_out": found.left_out,
        "superseded": msgspec.to_builtins(found.superseded),
        "contenders": [_of_contender(each, found) for each in found.contenders],
    }


def _of_contender(each: "Ranked", found: "DeviceRanking") -> dict[str, Any]:
    return {
        "rank": each.rank,
        "tied": each.is_tied,
        "contender": each.name,
        "about": msgspec.to_builtins(each.standing.about),
        "right": each.score.is_right,
        "own_share": each.own,
        "library": each.is_library,
        "runs": [name for name, _ in each.standing.runs],
        "score": msgspec.to_builtins(each.score),
        "shapes": [_of_shape(result, functional_only=found.functional_only) for result in each.standing.results],
    }


def _of_shape(result: ShapeResult, *, functional_only: bool) -> dict[str, Any]:
    fraction = None if functional_only else sol_fraction(result)
    return {
        **msgspec.to_builtins(result),
        "right": result.is_right,
        "sol_fraction": None if fraction is None else fraction.value,
        "no_sol_fraction": why_no_fraction(result, functional_only=functional_only),
    }
