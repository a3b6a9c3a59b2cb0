"""A token's wall time, recomputed from the files: never less than the device works for it, whoever runs ahead."""

import re
from pathlib import Path

import pytest
from tests.kineto_files import exact_ns
from tests.truth.raw import capture, exposed, timed_events

import inferometer
from inferometer.analyses.steps.table import step_table

FILES = ("mi300_vllm_gpt-oss_decode", "mi300_sglang_qwen3-8b_decode")
_MARK = re.compile(r"execute_\d+_context_0\(.*_generation_(\d+)\(.*")  # and how many tokens it makes


@pytest.mark.parametrize("file", FILES)
def test_a_token_takes_as_long_as_its_step_until_its_work_has_ended(file: str, shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / f"{file}.json.gz"
    found = capture(path)
    marks = [(each, match) for each in timed_events(path) if (match := _MARK.fullmatch(each["name"]))]
    (mark, match), *_ = [each for each in marks if each[0]["cat"] == "user_annotation"]
    tokens, start_ns = int(match[1]), exact_ns(mark["ts"])
    wall_ns = exact_ns(mark["dur"])
    busy_ns = exposed([], {"": list(found.launches)})[""]
    ends_ns = max(*(each.end_ns for each in found.launches), start_ns + wall_ns)
    with inferometer.open(path) as trace:
        (row,) = step_table(trace).phases.to_dicts()
    assert (row["tokens"], row["wall_median_ns"], row["gpu_median_ns"]) == (tokens, wall_ns, busy_ns)
    assert busy_ns / tokens <= row["wall_per_token_ns"] <= (ends_ns - start_ns) / tokens + 1
    assert row["wall_per_token_ns"] >= wall_ns / tokens
