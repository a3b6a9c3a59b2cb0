"""The tutorial's sentences are true of the samples that it looks at."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import inferometer

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/guide/tutorial.md").read_text("utf-8").split())


@cache
def compared(base: str, candidate: str) -> dict[str, Any]:
    with inferometer.open(ROOT / "samples" / base) as first, inferometer.open(ROOT / "samples" / candidate) as second:
        return inferometer.compare(first, second).as_json()


@pytest.mark.parametrize(
    "sentence",
    [
        "`rescore` calls `rescore_request` calls `count_ngrams`",
        "*Called after* is nearly all of the gap",
        "the step takes less than a fifth of what it took",
        "of *What changed* nearly all is `idle`",
        "the step takes nearly three times as long",
        "For more than half of the time",
    ],
)
def test_the_page_says_what_the_tests_below_check(sentence: str) -> None:
    assert sentence in PAGE


def test_most_of_the_device_s_time_is_idle_and_the_finding_names_the_three_functions() -> None:
    with inferometer.open(ROOT / "samples/decode.json.gz") as trace:
        (finding,) = inferometer.find_findings(trace).findings
    assert (finding.rule, finding.share is not None and finding.share > 0.5) == ("idle_device", True)
    text = " ".join(finding.evidence)
    assert text.index("rescore >") < text.index("rescore_request >") < text.index("count_ngrams.")


def test_the_longest_gaps_end_with_sampling_called_after_nearly_all_of_them() -> None:
    with inferometer.open(ROOT / "samples/decode.json.gz") as trace:
        gaps = inferometer.find_timeline(trace, top=3).gaps
    assert gaps["kernel"].str.contains("Sampling").all()
    assert (gaps["called_after_ns"] > 0.99 * gaps["gap_ns"]).all()


def test_the_fixed_run_takes_less_than_a_fifth_and_what_went_is_idle_time_and_one_kernel() -> None:
    found = compared("decode.json.gz", "decode_fixed.json.gz")
    assert (found["verdict"], found["candidate_step_ns"] < found["base_step_ns"] / 5) == ("improvement", True)
    shares = {line["name"]: line["share"] for line in found["contributions"]}
    assert shares["idle"] > 0.99
    assert [line["class"] for line in found["contributions"] if line["kind"] == "gone"] == ["compute"]
    assert not [line for line in found["contributions"] if line["kind"] in ("new", "slower")]


def test_launching_comes_first_in_the_fixed_run() -> None:
    with inferometer.open(ROOT / "samples/decode_fixed.json.gz") as trace:
        assert inferometer.find_findings(trace).findings[0].rule == "launch_bound"


def test_the_measured_pair_is_slower_in_all_kinds_of_calls_because_of_a_quota() -> None:
    found = compared("recorded/cpu_quota/normal.ifm", "recorded/cpu_quota/fault.ifm")
    assert 2.75 < found["candidate_step_ns"] / found["base_step_ns"] < 3
    kernels = [line for line in found["contributions"] if line["class"] == "compute"]
    assert {line["kind"] for line in kernels} == {"slower"}
    (first, *_) = found["causes"]
    assert (found["verdict"], first["class"], first["metric"]) == ("cause named", "cpu_quota", "cpu_limited_share")
    assert first["base"] == 0
    assert first["candidate"] > 0.5
