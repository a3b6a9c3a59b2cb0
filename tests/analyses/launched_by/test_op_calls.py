"""Calls of ops, each with the one around it: by columns where all nest, as by a sweep."""

from pathlib import Path

import pytest

import inferometer
from inferometer.analyses.launched_by import op_calls
from inferometer.analyses.launched_by.op_calls import NONE, OpCalls

SAMPLES = Path(__file__).parents[3] / "samples"


def test_the_call_around_each_is_what_a_sweep_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    with inferometer.open(SAMPLES / "decode.json.gz") as trace:
        calls, swept = OpCalls(trace), OpCalls(trace)
        around = [calls.around(call) for call in range(len(calls))]
        monkeypatch.setattr(op_calls, "find_nested", lambda *_: None)

        assert around == [swept.around(call) for call in range(len(swept))]
    assert 0 < around.count(NONE) < len(around)


def test_calls_of_one_op_have_the_place_of_its_name() -> None:
    with inferometer.open(SAMPLES / "decode.json.gz") as trace:
        calls = OpCalls(trace)
        places, names = calls.ops
        assert [names[place] for place in places.tolist()] == trace.ops.collect()["op"].to_list()
        assert len(set(names)) == len(names)
