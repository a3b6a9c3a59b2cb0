"""Runs of launches in stretches, by loops."""

from collections.abc import Callable

from tests.truth.raw import Launch

from inferometer.names import decode

FUSIBLE = ("elementwise", "norm", "activation", "copy", "reduction", "rope")
Chains = dict[tuple[str, ...], list[list[Launch]]]


def is_fusible(launch: Launch) -> bool:
    known = decode(launch.name)
    return known.family in FUSIBLE and known.library != "inductor" and known.dtype not in ("int32", "int64", "bool")


def fusible_runs(parts: list[list[Launch]]) -> list[list[Launch]]:
    """What could be fused, in a row, and serves no communication."""
    return [run for part in parts for run in runs(part, lambda each: is_fusible(each) and not each.serves)]


def runs(part: list[Launch], wanted: Callable[[Launch], bool]) -> list[list[Launch]]:
    """The longest rows of wanted launches in a stretch."""
    found: list[list[Launch]] = [[]]
    for each in part:
        if wanted(each):
            found[-1].append(each)
        elif found[-1]:
            found.append([])
    return [run for run in found if run]
