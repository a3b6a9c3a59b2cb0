"""trtexec's files: layers, queries and tactics, numbers of six digits, names that aren't escaped, and damage."""

import json
import statistics
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.samples import tensorrt
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.compare.tests import compare_tests
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats
from inferometer.reports.views.view import remarks_of

PROFILE = """\
[
  { "count" : 100 }
, { "name" : "embed", "timeMs" : 4.96347, "averageMs" : 0.0496347, "medianMs" : 0.0491384, "percentage" : 12.4728 }
, { "name" : "{ForeignNode["/layers.0\\norm"]}", "timeMs" : 34.8285, "averageMs" : 0.348285, "percentage" : 87.5216 }
, { "name" : "copy", "timeMs" : 0.00214000, "averageMs" : 2.14e-05, "percentage" : 0.00537758 }
]
"""


def query(compute: float, **more: object) -> dict[str, Any]:
    return {"startEnqMs": 0.1, "startH2dMs": 0.2, "h2dMs": 0, "computeMs": compute, "latencyMs": compute + 0.5} | more


def opened(tmp_path: Path, text: str, name: str = "p.json") -> Trace:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return inferometer.open(path)


def test_layers_have_their_sums_to_the_digits_that_are_printed(tmp_path: Path) -> None:
    trace = opened(tmp_path, PROFILE)
    columns = ("kernel", "count", "total_ns", "mean_ns", "median_ns", "resolution_ns")
    assert rows(trace, "totals", *columns) == [
        ("embed", 100, 4_963_470, 49_634.7, 49_138.4, 5.0),
        ('{ForeignNode["/layers.0\\norm"]}', 100, 34_828_500, 348_285.0, None, 50.0),
        ("copy", 100, 2_140, 21.4, None, 0.005),
    ]
    total = sum((49_634.7, 348_285.0, 21.4))
    assert f"All layers of an iteration take {total / 1000:.3f} μs, the mean of 100." in trace.facts.notes
    assert counted(trace) == {"bad_escape": 1}


def test_an_excerpt_of_layers_is_told(tmp_path: Path) -> None:
    text = "".join(line for line in PROFILE.splitlines(keepends=True) if "embed" not in line)
    assert counted(opened(tmp_path, text))["share_disagrees"] == 1


def test_queries_are_steps_and_the_parts_of_their_latency_are_tests(tmp_path: Path) -> None:
    each = [0.9, 1.1, 1.0, 0.95]
    trace = opened(tmp_path, json.dumps([query(ms) for ms in each]))
    assert rows(trace, "steps", "step", "start_ns", "dur_ns") == [
        (i, 200_000, round((ms + 0.5) * 1e6)) for i, ms in enumerate(each)
    ]
    found = rows(trace, "tests", "test", "repetitions", "mean_ns", "stddev_ns")
    compute = [ms * 1e6 for ms in each]
    assert [row[:2] for row in found] == [("latency", 4), ("GPU compute", 4)]  # nothing was copied
    assert found[1][2:] == pytest.approx((statistics.mean(compute), statistics.stdev(compute)))


def test_older_releases_name_copies_otherwise(tmp_path: Path) -> None:
    old = [{"startInMs": 1, "inMs": 0.5, "computeMs": 1, "outMs": 0.25, "latencyMs": 1.75, "endToEndMs": 2}] * 2
    trace = opened(tmp_path, json.dumps(old))
    assert dict(rows(trace, "tests", "test", "mean_ns")) == {
        "latency": 1.75e6,
        "copies to the device": 5e5,
        "GPU compute": 1e6,
        "copies to the host": 2.5e5,
        "end to end": 2e6,
    }
    assert rows(trace, "steps", "start_ns") == [1_000_000, 1_000_000]


def test_two_runs_are_compared_part_by_part(tmp_path: Path) -> None:
    base = opened(tmp_path, json.dumps([query(1 + i / 100) for i in range(20)]), "a.json")
    candidate = opened(tmp_path, json.dumps([query(1.2 + i / 100, h2dMs=0.1) for i in range(20)]), "b.json")
    found = compare_tests(base, candidate)
    kinds = {"latency": "slower", "GPU compute": "slower", "copies to the device": "new"}
    assert {row.name: row.kind for row in found.rows} == kinds
    assert "Only the candidate has copies to the device." in [*remarks_of(found)]


def test_two_profiles_of_layers_are_told_to_compare_times_of_queries(tmp_path: Path) -> None:
    """A profile has one sum of each layer: no number of steps more would give it a spread."""
    slower = PROFILE.replace("34.8285", "44.8285").replace("0.348285", "0.448285")
    assert slower != PROFILE
    for other in (PROFILE, slower):
        found = compare(opened(tmp_path, PROFILE, "a.json"), opened(tmp_path, other, "b.json"))
        assert found.verdict == "too few samples"
        assert "trtexec: --exportTimes" in found.judged.why
        assert "record more than" not in found.judged.why


def test_tactics_are_selections_and_give_layers_their_types(tmp_path: Path) -> None:
    info = {"Layers": [{"Name": "embed", "LayerType": "Gather", "TacticName": "k1", "StreamId": 3}, {"Name": "copy"}]}
    trace = opened(tmp_path, PROFILE + json.dumps(info | {"Bindings": []}))
    assert rows(trace, "selections", "op", "variant", "reason") == [("embed", "k1", "LayerType Gather, StreamId 3")]
    assert rows(trace, "totals", "role") == ["Gather", None, None]


def test_layers_that_are_names_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="found names alone\n  Build the engine with --profilingVerbosity=detailed"):
        opened(tmp_path, json.dumps({"Layers": ["a", "b"], "Bindings": []}))


@pytest.mark.parametrize("value", ['"much"', "-1", "1e300", "[]", "true", "9" * 40])
def test_a_time_that_is_none_is_null_and_counted(value: str, tmp_path: Path) -> None:
    trace = opened(tmp_path, PROFILE.replace("4.96347", value))
    assert rows(trace, "totals", "total_ns")[0] is None
    assert counted(trace)["wrong_type"] == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "[{}]", "{}", '{"Layers": []}', '{"Layers": 5}', "[" * 9999, "null", "\x00"]
)
def test_what_has_neither_layers_nor_queries_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="expected layers or queries of trtexec, found none"):
        inferometer.open(path, format="tensorrt")


def test_a_file_that_ends_at_any_byte_has_what_came_before(tmp_path: Path) -> None:
    data, path = tensorrt(), tmp_path / "p.json"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with suppress(InputError):
            inferometer.open(path, {"totals"}, format="tensorrt")
    path.write_text(PROFILE[: PROFILE.rindex(",")])
    assert counted(inferometer.open(path))["truncated"] == 1


def test_other_lists_are_not_taken_for_it() -> None:
    sniff = known_formats()["tensorrt"].sniff
    assert sniff(PROFILE.encode())
    assert sniff(b'\xef\xbb\xbf{"Layers": ["a"]')
    assert not sniff(b'[{"count": "3"}]')
    assert not sniff(b'[{"name": "a", "timeMs": 1}]')
