"""Series of two runs: the finest granularity that both have, GPUs by their role, clocks in one unit."""

from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import inferometer
from inferometer import Trace
from inferometer.analyses.columns import with_schema
from inferometer.analyses.compare.activity.activity import CYCLES, FUNCTIONS, Activity
from inferometer.analyses.compare.causes.counters import BY_CYCLE, OWN, POOLED, Entity
from inferometer.analyses.compare.causes.granularity import MatchedSeries, match_series, own_gpus
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.reports.views.view import remarks_of, sections_of

UNKNOWN = ((), ())
CLOCK, PCIE = "gpu_frequency", "gpu_pcie_transmit"
FOLDERS = {"pooled": "counters_data.csv", "whole": "."}


def series(metric: str, device: str, value: float = 1400.0, unit: str = "MHz") -> Entity:
    return Entity(metric, device, unit, np.full(8, value))


def keys(found: MatchedSeries) -> list[list[tuple[str, str]]]:
    return [[one.key for one in run] for run in (found.base, found.candidate)]


@pytest.mark.parametrize(
    ("base", "candidate", "own", "device"),
    [
        (["gpu:3", OWN, POOLED], ["gpu:3", OWN, POOLED], UNKNOWN, "gpu:3"),
        (["gpu:3", OWN, POOLED], [OWN, POOLED], (["gpu:3"], []), OWN),
        ([POOLED], ["gpu:3", OWN, POOLED], ([], ["gpu:3"]), POOLED),
        (["gpu:3"], [OWN, POOLED], (["gpu:3"], []), "gpu:3"),
        (["gpu:3"], ["gpu:5"], (["gpu:3"], ["gpu:5"]), "gpu:5"),
    ],
)
def test_a_metric_is_compared_at_the_finest_granularity_of_both(
    base: list[str], candidate: list[str], own: tuple[Sequence[str], Sequence[str]], device: str
) -> None:
    found = match_series([series(CLOCK, name) for name in base], [series(CLOCK, name) for name in candidate], own)
    both = set(keys(found)[0]) & set(keys(found)[1])
    assert both == {(CLOCK, device)}


def test_the_gpus_of_two_ranks_are_matched_in_their_order_whatever_their_numbers() -> None:
    base = [series(CLOCK, f"gpu:{gpu}", 1000 + gpu) for gpu in (0, 1, 2, 3)]
    candidate = [series(CLOCK, f"gpu:{gpu}", 1100 + gpu) for gpu in (0, 1, 2, 3)]
    found = match_series(base, candidate, (["gpu:1", "gpu:0"], ["gpu:2", "gpu:3"]))
    values = [(one.device, one.values[0], two.values[0]) for one, two in zip(found.base, found.candidate, strict=True)]
    assert values == [("gpu:2", 1001, 1102), ("gpu:3", 1000, 1103)]
    assert found.renumbered == (("gpu:1", "gpu:2"), ("gpu:0", "gpu:3"))


def test_gpus_stand_in_the_order_of_ranks() -> None:
    used = ((1, "gpu:2"), (0, "gpu:10"), (None, "host"))
    functions = with_schema(pl.DataFrame([{"rank": rank, "device": device} for rank, device in used]), FUNCTIONS)
    assert own_gpus(Activity(functions, pl.DataFrame(schema=CYCLES))) == ("gpu:10", "gpu:2")


def test_what_is_only_pooled_in_both_is_named_and_not_judged() -> None:
    run = [series(PCIE, POOLED, unit="B/s"), series(CLOCK, OWN), series(CLOCK, POOLED)]
    assert match_series(run, run, UNKNOWN).not_judged() == ["pcie_traffic"]


@pytest.mark.parametrize(("side", "base", "candidate"), [("base", 3.5e6, 3500.0), ("candidate", 3500.0, 9e5)])
def test_a_clock_in_khz_of_one_run_is_divided(side: str, base: float, candidate: float) -> None:
    before, after = ([series("cpu_frequency", "host", value)] for value in (base, candidate))
    found = match_series(before, after, UNKNOWN)
    assert found.rescaled == (("cpu_frequency", side),)
    assert [run[0].values[0] for run in (found.base, found.candidate)] == [3500, 3500 if side == "base" else 900]


def test_a_clock_that_fell_to_a_seventh_and_traffic_a_thousand_times_as_high_stay() -> None:
    for metric, values in (("gpu_frequency", (1410.0, 210.0)), ("net_rx_rate", (1e3, 1e6))):
        before, after = ([series(metric, "host", value)] for value in values)
        found = match_series(before, after, UNKNOWN)
        assert (found.base[0].values[0], found.candidate[0].values[0], found.rescaled) == (*values, ())


def test_a_share_of_the_maximum_is_no_clock_in_khz() -> None:
    """22.5 % of the maximum and 3,500 MHz are 156 times apart, as kHz and MHz are some 1,000 times."""
    before, after = [series("cpu_frequency", "host", 22.5, "% of maximum")], [series("cpu_frequency", "host", 3500.0)]
    for base, candidate in ((before, after), (after, before)):
        found = match_series(base, candidate, UNKNOWN)
        assert (found.base[0].values[0], found.candidate[0].values[0]) == (base[0].values[0], candidate[0].values[0])
        assert found.rescaled == ()


def test_a_metric_of_the_host_is_compared_in_a_unit_that_both_runs_have() -> None:
    by_cycle = series("cpu_frequency", BY_CYCLE, 87.5, "% of maximum")
    both, alone = [series("cpu_frequency", "host", 3500.0), by_cycle], [replace(by_cycle, device="host")]
    for base, candidate in ((both, alone), (alone, both)):
        found = match_series(base, candidate, UNKNOWN)
        assert [(run[0].device, run[0].unit) for run in (found.base, found.candidate)] == [("host", "% of maximum")] * 2
    found = match_series(both, both, UNKNOWN)
    assert [len(run) for run in (found.base, found.candidate)] == [1, 1]
    assert found.base[0].unit == "MHz"


@pytest.mark.parametrize(("files", "is_known"), [(("perf", "whole"), True), (("whole", "perf"), True),
                                                 (("perf", "pooled"), False), (("pooled", "perf"), False)])  # fmt: skip
def test_a_run_without_samples_is_compared_with_one_that_has_them(
    shared_data: Path, tmp_path: Path, files: tuple[str, str], *, is_known: bool
) -> None:
    """Functions tell the CPU's clock in percent, samples in MHz."""
    folder = shared_data / "latencyprism" / "SGLang/cpu_frequency_reduction"
    paths = []
    for side, name in zip(("normal", "abnormal"), files, strict=True):
        paths.append(folder / side / FOLDERS.get(name, "."))
        if name == "perf":
            paths[-1] = tmp_path / side
            paths[-1].mkdir()
            copyfile(folder / side / "perf_data.csv", paths[-1] / "perf_data.csv")
    found, swapped = opened(*paths), opened(*reversed(paths))
    assert swapped.judged.claimed is None
    assert found.verdict == ("cause named" if is_known else "cause not measured")
    assert ("cpu_clock" in found.not_measured) != is_known
    if is_known:
        assert (found.causes[0].metric, found.causes[0].unit) == ("cpu_frequency", "% of maximum")


@pytest.mark.parametrize("files", [("pooled", "pooled"), ("pooled", "whole"), ("whole", "pooled")])
@pytest.mark.parametrize(
    ("name", "metric", "cause"),
    [("SGLang/cpu_frequency_reduction", "cpu_frequency", "cpu_clock"), ("vLLM/gpu_instability", CLOCK, "gpu_clock")],
)
def test_published_faults_are_found_in_counters_alone_and_not_in_the_pair_the_other_way_round(
    shared_data: Path, name: str, metric: str, cause: str, files: tuple[str, str]
) -> None:
    folder = shared_data / "latencyprism" / name
    found = opened(folder / "normal" / FOLDERS[files[0]], folder / "abnormal" / FOLDERS[files[1]])
    assert found.verdict == "cause named"
    assert (found.causes[0].metric, found.causes[0].cause_class) == (metric, cause)
    assert [section.title for section in sections_of(found)] == ["Cause"]
    assert found.as_json()["contributions"] == []
    swapped = opened(folder / "abnormal" / FOLDERS[files[0]], folder / "normal" / FOLDERS[files[1]])
    assert swapped.verdict == "cause not measured"
    assert swapped.judged.claimed is None


def test_a_fault_is_found_though_the_program_runs_on_another_gpu_now(shared_data: Path) -> None:
    folder = shared_data / "latencyprism" / "vLLM/gpu_instability"
    with inferometer.open(folder / "normal") as base, inferometer.open(folder / "abnormal") as trace:
        moved = {name: trace.tables[name] for name in trace.tables}
        for name in ("function_times", "function_metrics"):
            moved[name] = moved[name].with_columns(pl.col("device").cast(pl.String).replace("gpu:3", "gpu:5"))
        found = compare(base, Trace(trace.facts, moved, trace.losses))
    assert found.verdict == "cause named"
    assert (found.causes[0].device, found.causes[0].cause_class) == ("gpu:5", "gpu_clock")
    assert "The program used gpu:5 in place of gpu:3: their counters are compared with each other." in remarks_of(found)


def test_what_cannot_be_told_apart_is_reported(shared_data: Path) -> None:
    folder = shared_data / "latencyprism" / "vLLM/gpu_instability"
    remarks = remarks_of(opened(folder / "normal", folder / "abnormal" / "counters_data.csv"))
    assert "Only the base has times of functions: no function can be compared." in remarks
    (pooled,) = (text for text in remarks if text.startswith("Sampled of all GPUs without saying of which"))
    assert pooled.endswith("so not judged: nvlink_traffic, pcie_traffic.")


def opened(base: Path, candidate: Path) -> Comparison:
    with inferometer.open(base) as one, inferometer.open(candidate) as two:
        return compare(one, two)
