"""Files of rocprofv3 that are synthetic, and what a reader that shares nothing with ours says of any."""

import gzip
import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tools.rocprof_maker.json_file import write_json
from tools.rocprof_maker.program import Options, Run, run_program

REAL = Path(__file__).parents[2] / "shared" / "data" / "traces" / "rocprof" / "mi350_600_dispatches.json.gz"
needs_real = pytest.mark.skipif(not REAL.exists(), reason="the real files of rocprofv3 are not next to the checkout")
SMALL = Options(dispatches=13)
Times = dict[str, tuple[int, int]]


@cache
def small_runs() -> list[Run]:
    """A small program of two processes."""
    return run_program(SMALL)


def write_small(path: Path, release: str = "7.0") -> Path:
    """Its JSON."""
    write_json(small_runs(), SMALL, path, release=release)
    return path


def by_force(path: Path) -> Times:
    """Launches and summed ns by kernel: with `json.load`, and loops."""
    document: Any = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    found: defaultdict[str, list[int]] = defaultdict(list)
    for process in document["rocprofiler-sdk-tool"]:
        names = {each["kernel_id"]: each["formatted_kernel_name"] for each in process["kernel_symbols"]}
        for record in process["buffer_records"]["kernel_dispatch"]:
            number = record["dispatch_info"]["kernel_id"]
            name = names.get(number, f"[kernel {number}]")
            found[name].append(record["end_timestamp"] - record["start_timestamp"])
    return {name: (len(times), sum(times)) for name, times in found.items()}


def counted_by_force(path: Path) -> Counter[tuple[str, str]]:
    """The sum of each counter by kernel, of a file with whole counts."""
    found: Counter[tuple[str, str]] = Counter()
    for process in json.loads(path.read_bytes())["rocprofiler-sdk-tool"]:
        names = {each["kernel_id"]: each["formatted_kernel_name"] for each in process["kernel_symbols"]}
        metrics = {each["id"]["handle"]: each["name"] for each in process["counters"]}
        for record in process["callback_records"]["counter_collection"]:
            number = record["dispatch_data"]["dispatch_info"]["kernel_id"]
            for count in record["records"]:
                name = names.get(number, f"[kernel {number}]")
                found[name, metrics[count["counter_id"]["handle"]]] += int(count["value"])
    return found
