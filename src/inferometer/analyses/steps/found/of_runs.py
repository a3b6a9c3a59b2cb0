"""Found steps as the steps of runs: one device stands for its process, as a recorded step does."""

import polars as pl

from inferometer.analyses.steps.found.finding import FoundSteps

_OWNER = ["rank", "process"]


def choose_devices(found: FoundSteps) -> pl.DataFrame:
    """The steps of one device of each process: of several, that with most launches, the first of equal ones."""
    devices = found.devices.filter(pl.col("steps") > 0).sort("launches", descending=True, maintain_order=True)
    chosen = devices.unique(_OWNER, keep="first", maintain_order=True).select(*_OWNER, "device")
    return found.steps.join(chosen, on=[*_OWNER, "device"], how="semi", nulls_equal=True, maintain_order="left")
