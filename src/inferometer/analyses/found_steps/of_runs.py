"""Found steps as the steps of runs: one device stands for its process, as a recorded step does."""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.found_steps.finding import FoundSteps

_OWNER = ["rank", "process"]


def choose_devices(found: FoundSteps) -> pl.DataFrame:
    """The steps of one device of each process: of several, that with most launches, the first of equal ones."""
    devices = found.devices.filter(pl.col("steps") > 0).sort("launches", descending=True, maintain_order=True)
    chosen = devices.unique(_OWNER, keep="first", maintain_order=True).select(*_OWNER, "device")
    return found.steps.join(chosen, on=[*_OWNER, "device"], how="semi", nulls_equal=True, maintain_order="left")


def about_steps(own: pl.DataFrame) -> Iterator[str]:
    """Which of a run's steps are not as the others, in words."""
    for column, what in (("is_partial", "cut by the recording"), ("is_warm_up", "warm-up")):
        some = own.filter(pl.col(column))["step"].to_list()
        if some:
            yield f"Step{'s' if len(some) > 1 else ''} {_listed(some)} {'are' if len(some) > 1 else 'is'} {what}."


def _listed(numbers: list[int]) -> str:
    *most, last = (f"{number}" for number in numbers)
    return f"{', '.join(most)} and {last}" if most else last
