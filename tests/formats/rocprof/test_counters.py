"""`inferometer counters` of what rocprofv3 counted: each counter by kernel, as the file's records add up to."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.rocprof_files import write_small

Printed = pytest.CaptureFixture[str]


def _counted(path: Path) -> dict[tuple[str, str], list[float]]:
    """The value of each counter of each dispatch, by kernel and counter, from the records alone."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for process in json.loads(path.read_text())["rocprofiler-sdk-tool"]:
        names = {each["id"]["handle"]: each["name"] for each in process["counters"]}
        kernels = {each["kernel_id"]: each["formatted_kernel_name"] for each in process["kernel_symbols"]}
        for record in process["callback_records"]["counter_collection"]:
            number = record["dispatch_data"]["dispatch_info"]["kernel_id"]
            sums: dict[str, float] = defaultdict(float)
            for each in record["records"]:
                sums[names[each["counter_id"]["handle"]]] += each["value"]
            for name, value in sums.items():
                found[kernels.get(number, f"[kernel {number}]"), name].append(value)
    return found


def test_counters_of_amd_are_shown_by_kernel(tmp_path: Path, capsys: Printed) -> None:
    path = write_small(tmp_path / "run.json")
    code, out, _ = run("counters", path, "--json", capsys=capsys)
    document = json.loads(out)
    shown = {
        (row["kernel"], row["metric"]): (row["launches"], row["total"], row["mean"], row["least"], row["most"])
        for row in document["metrics"]
    }
    assert code == 0
    assert shown == {
        key: (len(each), sum(each), pytest.approx(sum(each) / len(each)), min(each), max(each))
        for key, each in _counted(path).items()
    }
    assert len(shown) > 5


def test_nothing_that_ncu_does_is_said_of_amds_counters(tmp_path: Path, capsys: Printed) -> None:
    path = write_small(tmp_path / "run.json")
    _, out, _ = run("counters", path, capsys=capsys)
    assert "SQ_WAVES" in out
    assert "ncu" not in out
    assert "caches flushed" not in out
    _, out, _ = run("counters", path, "--csv", capsys=capsys)
    assert out.startswith("Counter,Total,Launches")
    code, _, err = run("kernels", path, "--counters", path, capsys=capsys)
    assert code == 3
    assert "inferometer counters FILE shows these" in err


def test_a_file_of_nsight_compute_has_no_such_table(capsys: Printed) -> None:
    path = Path(__file__).parents[3] / "samples" / "h200" / "ncu_raw.csv.gz"
    _, out, _ = run("counters", path, "--json", capsys=capsys)
    assert json.loads(out)["metrics"] == []
