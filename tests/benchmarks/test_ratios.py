"""The page of ratios says what the committed runs measured."""

import json

import pytest
from benchmarks.ratios import Beside, bar, find_ratios, last_runs, render
from benchmarks.trace_files import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def test_the_page_is_of_the_last_run_of_each_suite() -> None:
    runs = last_runs(RESULTS)
    assert (RESULTS / "ratios.md").read_text("utf-8") == render(runs), "run python -m benchmarks.ratios"
    dates = [max(path.stem[-10:] for path in RESULTS.glob(f"{name}-2*.json")) for name in ("ingest", "scaling", "nsys")]
    assert [run["date"] for run in runs] == dates


def test_a_ratio_is_the_one_that_the_suite_itself_found() -> None:
    (ingest, scaling, _) = last_runs(RESULTS)
    found = {(each.ours, each.peer): each.ratio for each in find_ratios(ingest, ("kernels", "import"))}
    bars = {each["bar"]: each["value"] for each in ingest["bars"]}
    assert 1 / found["kernels", "HTA, its defaults"] == pytest.approx(bars["`kernels`: time over HTA's"])
    assert 1 / found["import", "HTA, its defaults"] == pytest.approx(bars["`import`: time over HTA's"])
    of_scaling = sorted(each.ratio for each in find_ratios(scaling, ("kernels", "import", "summary")))
    assert of_scaling == pytest.approx(sorted(each["time"] for each in scaling["ratios"]))


def test_only_commands_on_the_peers_own_file_are_set_next_to_it() -> None:
    def case(command: str, median: int, peer: bool = False) -> dict[str, object]:
        return {"command": command, "peer": peer, "wall_ns": {"median": median}}

    run = {
        "cases": [
            case("inferometer kernels a.json --json", 2),
            case("inferometer kernels a.json --by family --json", 3),
            case("inferometer kernels a.json.gz --json", 5),
            case("inferometer kernels b.json --json", 7),
            case("inferometer summary a.json", 11),
            case("a peer: python peers/p.py a.json --fastest", 22, peer=True),
        ]
    }
    assert find_ratios(json.loads(json.dumps(run)), ("kernels",)) == [Beside("a.json", "kernels", "a peer", 11.0)]


def test_bars_are_as_long_as_their_numbers() -> None:
    assert (bar(4, 4), bar(2, 4), bar(0.0001, 4)) == ("█" * 40, "█" * 20, "▏")
    assert [len(bar(ratio, 10)) for ratio in (1, 2.5, 10)] == [4, 10, 40]


def test_the_readme_has_the_times_and_peaks_that_were_measured() -> None:
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    cases = {case["name"]: case for case in last_runs(RESULTS)[0]["cases"]}

    def seconds(name: str) -> float:
        return float(cases[name]["wall_ns"]["median"]) / 1e9

    peaks = [
        f"{cases[name]['peak_bytes']['max'] / 2**20:,.0f}"
        for name in ("kernels", "import", "summary", "report", "hta", "hta-fastest")
    ]
    assert (
        f"`inferometer kernels` {seconds('kernels'):.2f} s, "
        f"`inferometer import` (all tables) {seconds('import'):.1f} s, "
        f"`summary` {seconds('summary'):.1f} s, `report` {seconds('report'):.1f} s, "
        f"their largest processes {peaks[0]}, {peaks[1]}, {peaks[2]} and {peaks[3]} MiB; "
        f"`kernels` from the store {seconds('kernels-store'):.2f} s."
    ) in readme
    assert f"HolisticTraceAnalysis took {seconds('hta'):.1f} s and {peaks[4]} MiB with its defaults" in readme
    assert f"{seconds('hta-fastest'):.1f} s and {peaks[5]} MiB with its fastest settings" in readme
    assert f"`json.load` with a sum {seconds('json-load'):.1f} s" in readme
