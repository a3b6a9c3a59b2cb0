"""Proton's trees: real ones recounted by recursion, made-up ones with every oddity, and files that are cut."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.base import known_formats
from inferometer.reports.terminal import render_terminal

SAMPLES = Path(__file__).parents[3] / "samples" / "h200"
TREES = [SAMPLES / f"proton_{name}.hatchet" for name in ("tree", "python")]


def node(name: str, *children: object, **metrics: object) -> dict[str, object]:
    named = {"time (ns)" if key == "time" else key: value for key, value in metrics.items()}
    return {"frame": {"name": name, "type": "function"}, "metrics": named, "children": [*children]}


def opened(tmp_path: Path, *document: object) -> Trace:
    path = tmp_path / "app.hatchet"
    path.write_text(json.dumps(document))
    return inferometer.open(path)


def leaves(tree: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], int, int]]:
    """Path, count and time of each kernel, by recursion."""
    here = (*above, tree["frame"]["name"])
    own = (
        [(here, tree["metrics"]["count"], tree["metrics"]["time (ns)"])]
        if above and tree["metrics"].get("count")
        else []
    )
    return own + [leaf for child in tree["children"] for leaf in leaves(child, here)]


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_real_trees_have_the_times_of_a_recount(path: Path) -> None:
    tree, _ = json.loads(path.read_text())
    expected = leaves(tree)
    trace = inferometer.open(path)
    names = {row[0]: row[1:] for row in rows(trace, "call_paths", "path_id", "parent_id", "name", "depth")}

    def above(number: int | None) -> tuple[str, ...]:
        return () if number is None else (*above(names[number][0]), names[number][1])

    found = [(above(at), calls, ns) for at, calls, ns in rows(trace, "path_totals", "path_id", "calls", "self_ns")]
    assert found == expected
    assert all(len(above(at)) == depth + 1 for at, (_, _, depth) in names.items())
    sums: dict[str, list[int]] = {}
    for where, count, ns in expected:
        each = sums.setdefault(where[-1], [0, 0])
        each[0] += count
        each[1] += ns
    totals = rows(trace, "totals", "kernel", "device", "count", "total_ns")
    assert {kernel: [count, ns] for kernel, _, count, ns in totals} == sums
    assert {device for _, device, _, _ in totals} == {"gpu:0"}
    [device] = trace.facts.devices
    assert (device.device, device.multiprocessors, device.compute_capability) == ("gpu:0", 132, "9.0")
    assert counted(trace) == {"unknown_column": 2}  # bytes and flops


def test_the_frames_of_python_are_frames() -> None:
    found = dict(rows(inferometer.open(TREES[1]), "call_paths", "name", "frame"))
    assert found["/home/user/code/proton.py:11@go"] == "/home/user/code/proton.py:11 go"
    assert found["ROOT"] is None


def test_the_summary_has_the_kernels_and_no_made_up_stacks() -> None:
    text = render_terminal(inferometer.summarize(inferometer.open(TREES[0])), is_terminal=False)
    assert "add" in text
    assert "call stack" not in text


def test_one_kernel_of_several_scopes_is_one_sum(tmp_path: Path) -> None:
    leaf = {"time": 5.0, "count": 2, "device_id": "1", "device_type": "HIP"}
    tree = node("ROOT", node("a", node("k", **leaf)), node("b", node("k", **leaf | {"time": 7})), count=0, time=0)
    trace = opened(tmp_path, tree, {"HIP": {"1": {"arch": "gfx942", "num_sms": 304}}})
    assert rows(trace, "totals", "kernel", "device", "count", "total_ns", "mean_ns") == [("k", "gpu:1", 4, 12, 3.0)]
    [device] = trace.facts.devices
    assert (device.multiprocessors, device.compute_capability) == (304, None)


def test_what_is_no_number_is_null_and_counted(tmp_path: Path) -> None:
    tree = node("ROOT", node("k", time="much", count=1), node("l", time=-1), node("m", time=1 << 70, count=True), 3)
    trace = opened(tmp_path, tree, {"CUDA": {"zero": {}, "0": 5}})
    assert rows(trace, "totals", "kernel", "count", "total_ns") == [
        ("k", 1, None),
        ("l", None, None),
        ("m", None, None),
    ]
    assert counted(trace) == {"wrong_type": 8, "without_name": 1}


def test_what_is_below_a_node_without_a_name_is_kept(tmp_path: Path) -> None:
    unnamed = {"metrics": {}, "children": [node("k", time=5, count=1)]}
    trace = opened(tmp_path, node("ROOT", node("step", unnamed)), {})
    assert rows(trace, "call_paths", "name", "parent_id", "depth") == [("ROOT", None, 0), ("step", 0, 1), ("k", 1, 2)]
    assert rows(trace, "totals", "kernel", "total_ns") == [("k", 5)]
    assert counted(trace) == {"without_name": 1}


@pytest.mark.parametrize("document", [[{}], [{"frame": {}, "metrics": {}, "children": []}], ["a"], [], [[1]], {"a": 1}])
def test_what_is_no_tree_is_an_error(tmp_path: Path, document: object) -> None:
    path = tmp_path / "app.hatchet"
    path.write_text(json.dumps(document))
    with pytest.raises(FormatError, match="expected a"):
        inferometer.open(path, format="proton")


def test_a_tree_may_be_deep_but_not_without_end(tmp_path: Path) -> None:
    text = '{"frame":{"name":"a"},"metrics":{},"children":['
    path = tmp_path / "app.hatchet"
    path.write_text(f"[{text * 200}{']}' * 200},{{}}]")
    assert max(rows(inferometer.open(path), "call_paths", "depth")) == 199
    path.write_text(f"[{text * 100_000}{']}' * 100_000},{{}}]")
    with pytest.raises(FormatError, match="no JSON that can be read"):
        inferometer.open(path)


def test_a_file_cut_anywhere_is_an_error(tmp_path: Path) -> None:
    data = json.dumps([node("ROOT", node("k", time=5, count=1)), {}]).encode()
    path = tmp_path / "app.hatchet"
    for size in range(1, len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(FormatError):
            inferometer.open(path, format="proton")


def test_no_other_format_takes_it_nor_it_another() -> None:
    for path in TREES:
        assert [fmt.name for fmt in known_formats().values() if fmt.sniff(path.read_bytes()[: 1 << 16])] == ["proton"]
    trace = (SAMPLES / "proton_trace.chrome_trace").read_bytes()
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(trace)] == ["kineto"]
