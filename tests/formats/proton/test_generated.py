"""Trees of Proton that are known exactly, against what is read of them."""

import json
from pathlib import Path

import pytest
from tests.traces import counted, rows
from tools.make_proton import make_proton

import inferometer


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_is_read_as_it_was_made(seed: int, tmp_path: Path) -> None:
    document, truth = make_proton(seed)
    path = tmp_path / "app.hatchet"
    path.write_text(json.dumps(document))
    trace = inferometer.open(path)
    nodes = {at: (parent, name) for at, parent, name in rows(trace, "call_paths", "path_id", "parent_id", "name")}

    def above(at: int | None) -> tuple[str, ...]:
        return () if at is None else (*above(nodes[at][0]), nodes[at][1])

    found = [(above(at), ns, calls) for at, ns, calls in rows(trace, "path_totals", "path_id", "self_ns", "calls")]
    assert found == truth.times
    totals = rows(trace, "totals", "kernel", "device", "total_ns", "count")
    assert {(kernel, device): ns for kernel, device, ns, _ in totals} == dict(truth.sums)
    assert {(kernel, device): count for kernel, device, _, count in totals} == dict(truth.calls)
    assert len(nodes) == truth.names
    assert counted(trace).get("without_name", 0) == truth.unnamed
    assert [each.device for each in trace.facts.devices] == ["gpu:0", "gpu:1"]
