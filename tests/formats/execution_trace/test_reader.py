"""Execution traces: a recorded one, field by field; older layouts; damage."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.traces import counted, rows

import inferometer
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

ET = Path(__file__).parents[3] / "samples" / "cpu" / "et.json.gz"
NONE: dict[str, list[Any]] = {"values": [], "shapes": [], "types": [], "strides": []}


def nodes_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(path.read_bytes()))["nodes"]


def told(node: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["value"] for each in node["attrs"]}


def node(number: int, name: str, parent: int = 2, inputs: Any = NONE, outputs: Any = NONE, **attrs: Any) -> Any:
    listed = [{"name": key, "type": "", "value": value} for key, value in {"rf_id": number, "tid": 1, **attrs}.items()]
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": inputs, "outputs": outputs, "attrs": listed}


def write(path: Path, nodes: list[Any], **fields: Any) -> Path:
    path.write_text(json.dumps({"schema": "1.1.1", "pid": 5, "start_ts": 1, "nodes": nodes, **fields}))
    return path


def test_every_node_is_a_row_with_its_own_fields() -> None:
    trace = inferometer.open(ET)
    written = [each for each in nodes_of(ET) if not each["name"].startswith("[pytorch|")]
    columns = ("op", "node", "parent", "record_function_id", "thread", "schema")
    assert rows(trace, "op_nodes", *columns) == [
        (
            each["name"],
            each["id"],
            each["ctrl_deps"],
            told(each)["rf_id"],
            told(each)["tid"],
            told(each)["op_schema"] or None,
        )
        for each in written
    ]
    assert counted(trace) == {"metadata_event": len(nodes_of(ET)) - len(written)}
    assert trace.losses.seen == {"nodes": len(nodes_of(ET))}
    assert trace.window() is None


def test_arguments_are_those_that_the_profile_of_the_run_has() -> None:
    """The profiler writes them by code of its own. Of a double, the trace has six decimals."""
    profile = inferometer.open(ET.with_name("profile.json.gz")).ops.collect()
    both = profile.join(inferometer.open(ET).op_nodes.collect(), on="record_function_id", suffix="_of_node")
    assert both.height == profile.height > 1_000
    assert both["op"].equals(both["op_of_node"].rename("op"))
    compared = 0
    for name in ("input_dims", "input_dtypes", "input_strides", "scalars"):
        for own, of_node in both.select(name, f"{name}_of_node").rows():
            if own is None:
                assert of_node == "[]"
            elif name != "scalars":
                assert own == of_node
            else:
                texts = zip(json.loads(own), json.loads(of_node), strict=True)
                assert all(a == b or float(a) == pytest.approx(float(b), abs=5e-7) for a, b in texts)
            compared += own is not None
    assert compared > 4_000


@pytest.mark.parametrize(
    ("kind", "value", "shape", "dtype", "dims", "scalar"),
    [
        ("Tensor(c10::Half)", [1, 2, 0, 6, 2, "cuda:0"], [2, 3], "c10::Half", [2, 3], ""),
        ("Tensor(nullptr (uninitialized))", [0, 0, 0, 0, 0, ""], [], "", [], ""),
        ("Int", 7, [], "Scalar", [], "7"),
        ("Double", 1, [], "Scalar", [], "1."),
        ("Double", 0.25, [], "Scalar", [], "0.25"),
        ("Bool", True, [], "Scalar", [], "True"),
        ("None", "<None>", [], "", [], ""),
        ("String", "mean", [], "", [], ""),
        ("GenericList[Int,Int]", [4, 8], [[], []], "ScalarList", [], "[4, 8]"),
        ("GenericList[Double,Int]", [2, 8], [[], []], "ScalarList", [], "[2., 8]"),
        ("GenericList[]", [], [], "ScalarList", [], "[]"),
        ("GenericList[Tensor(float),Tensor(float)]", [[1], [2]], [[4], [5, 6]], "TensorList", [[4], [5, 6]], ""),
        ("GenericList[Tensor(float),None]", [[1], "<None>"], [[4], []], "", [], ""),
        ("GenericList[Int,Int]", "cut", [[], []], "ScalarList", [], ""),
    ],
)
def test_a_type_and_its_value_are_what_a_profile_calls_them(
    tmp_path: Path, kind: str, value: Any, shape: Any, dtype: str, dims: Any, scalar: str
) -> None:
    given = {"values": [value], "shapes": [shape], "types": [kind], "strides": [shape]}
    trace = inferometer.open(write(tmp_path / "et.json", [node(3, "aten::x", inputs=given, outputs=given)]))
    [row] = trace.op_nodes.collect().to_dicts()
    found = {name: json.loads(row[name]) for name in ("input_dims", "input_dtypes", "input_strides", "scalars")}
    assert found == {"input_dims": [dims], "input_dtypes": [dtype], "input_strides": [dims], "scalars": [scalar]}
    assert (json.loads(row["output_dims"]), json.loads(row["output_dtypes"])) == ([dims], [dtype])


def test_fields_of_earlier_schemas_stand_on_the_node(tmp_path: Path) -> None:
    old = {
        "name": "aten::mm",
        "id": 4,
        "rf_id": 9,
        "parent": 2,
        "fw_parent": 0,
        "seq_id": -1,
        "scope": 0,
        "tid": 1,
        "inputs": [[1, 2, 0, 6, 4, "cpu"], 3],
        "input_shapes": [[2, 3], []],
        "input_types": ["Tensor(float)", "Int"],
        "outputs": [],
        "output_shapes": [],
        "output_types": [],
        "op_schema": "",
    }
    trace = inferometer.open(write(tmp_path / "et.json", [old, {**old, "id": 5}]))
    columns = ("op", "node", "parent", "record_function_id", "input_dims", "input_dtypes", "input_strides", "scalars")
    expected = ("aten::mm", 2, 9, "[[2, 3], []]", '["float", "Scalar"]', None, '["", "3"]')
    assert [(op, *rest) for op, _, *rest in rows(trace, "op_nodes", *columns)] == [expected] * 2


def test_ids_of_no_observer_and_lists_of_other_lengths_are_null(tmp_path: Path) -> None:
    odd = {"values": [1], "shapes": [[1], [2]], "types": ["Int"], "strides": []}
    trace = inferometer.open(write(tmp_path / "et.json", [node(3, "aten::x", inputs=odd, rf_id=0, seq_id=-1)]))
    names = ("record_function_id", "sequence_number", "input_dims", "input_strides", "scalars")
    assert rows(trace, "op_nodes", *names) == [(None, None, None, None, '["1"]')]


def test_a_node_that_is_broken_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    nodes = [node(3, "aten::a"), {"id": 4, "inputs": 7}, node(5, "aten::b"), 6, node(7, "aten::c", rf_id="x")]
    trace = inferometer.open(write(tmp_path / "et.json", nodes))
    assert rows(trace, "op_nodes", "op", "record_function_id") == [("aten::a", 3), ("aten::b", 5), ("aten::c", None)]
    assert counted(trace) == {"wrong_type": 1, "without_name": 1, "not_an_object": 1}


def test_names_and_numbers_of_any_kind(tmp_path: Path) -> None:
    given = {"values": [10**30, "é"], "shapes": [[10**30], []], "types": ["Int", "Tensor(é)"], "strides": [[], []]}
    nodes = [node(3, "aten::é\u2028", inputs=given, seq_id=2**64), node(10**30, "aten::b")]
    trace = inferometer.open(write(tmp_path / "et.json", nodes, pid="x"))
    assert rows(trace, "op_nodes", "op") == ["aten::é\u2028", "aten::b"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "1", "rf_id": 1}', '{"schema": "1", "nodes": 3}', '{"nodes": {}}'],
)
def test_a_file_without_nodes_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "et.json"
    path.write_text(text)
    with pytest.raises(InputError):
        inferometer.open(path, format="execution-trace")


def test_a_file_cut_at_any_byte_is_a_trace_with_losses_or_refused(tmp_path: Path) -> None:
    inputs = {"values": [[1, 2, 0, 6, 4, "cpu"]], "shapes": [[2, 3]], "types": ["Tensor(float)"], "strides": [[3, 1]]}
    path = write(tmp_path / "et.json", [node(3, "aten::a", inputs=inputs), node(4, "aten::b")], finish_ts=3)
    whole = path.read_bytes()
    most = 0
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        try:
            trace = inferometer.open(path, format="execution-trace")
        except FormatError:
            assert size <= whole.index(b"[")
            continue
        assert "truncated" in counted(trace)
        n = trace.op_nodes.collect().height
        assert n >= most
        most = n
    assert most == 2


@pytest.mark.parametrize("seed", range(30))
def test_any_byte_may_be_any_other(tmp_path: Path, seed: int) -> None:
    data = bytearray(write(tmp_path / "et.json", [node(n, f"aten::{n}") for n in range(3, 9)]).read_bytes())
    for at in range(3):
        data[(seed * 977 + at * 131) % len(data)] = (seed * 31 + at * 7) % 256
    (tmp_path / "et.json").write_bytes(data)
    try:
        trace = inferometer.open(tmp_path / "et.json", format="execution-trace")
    except FormatError:
        return
    dropped = sum(loss.count for loss in trace.losses if loss.dropped and loss.category == "nodes")
    assert trace.losses.seen.total() == trace.op_nodes.collect().height + dropped


def test_no_other_format_takes_it_for_its_own() -> None:
    head = gzip.decompress(ET.read_bytes())[: 1 << 16]
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(head)] == ["execution-trace"]
