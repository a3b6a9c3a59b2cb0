"""A profile with the arguments of an execution trace of its run: a recorded pair, whose profile has them itself."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.formats.execution_trace.test_reader import ET, node, write
from tests.kineto_files import event, write_file

import inferometer
from inferometer import Trace
from inferometer.errors import InputError
from inferometer.formats.execution_trace.join import ARGUMENTS, join_arguments

PROFILE = ET.with_name("profile.json.gz")
SHAPES = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
Change = Callable[[dict[str, Any]], None]


def without_shapes(folder: Path, change: Change = lambda args: None) -> Trace:
    """The recorded profile as it is with record_shapes=False; `change` is done to the arguments of each event."""
    document = json.loads(gzip.decompress(PROFILE.read_bytes()))
    for each in document["traceEvents"]:
        if args := each.get("args"):
            for name in SHAPES:
                args.pop(name, None)
            change(args)
    path = folder / "bare.json"
    path.write_text(json.dumps(document))
    return inferometer.open(path)


def zero(args: dict[str, Any]) -> None:
    """As PyTorch writes ids that nobody asked for."""
    if "Record function id" in args:
        args["Record function id"] = 0


def expect_the_recorded_ones(found: Trace, *, of_all: bool) -> None:
    """Its arguments are what the profile recorded itself; a null only where not `of_all` have any."""
    recorded, own = inferometer.open(PROFILE).ops.collect(), found.ops.collect()
    rest = [name for name in own.columns if name not in (*ARGUMENTS, "record_function_id")]
    assert own.select(rest).equals(recorded.select(rest))
    for name in ("input_dims", "input_dtypes", "input_strides"):
        same = own[name].eq_missing(recorded[name]) | (recorded[name].is_null() & (own[name] == "[]"))
        assert same.all() if of_all else (same | own[name].is_null()).all()


def test_each_op_has_the_arguments_that_its_profile_could_have_recorded(tmp_path: Path) -> None:
    bare = without_shapes(tmp_path)
    assert bare.ops.select("input_dims").collect().null_count().item() == bare.count_rows()["ops"]
    found = join_arguments(bare, inferometer.open(ET))
    expect_the_recorded_ones(found, of_all=True)
    n = bare.count_rows()["ops"]
    assert found.facts.notes[-1] == (
        f"{n:,} of {n:,} ops are tied to nodes of {ET} by the ids of their record functions; {n:,} of them have their "
        "shapes from there."
    )
    assert found.count_rows() == bare.count_rows()
    assert found.facts.recorded["shapes"]


def test_without_ids_ops_are_tied_in_their_order_which_is_said(tmp_path: Path) -> None:
    found = join_arguments(without_shapes(tmp_path, zero), inferometer.open(ET))
    expect_the_recorded_ones(found, of_all=False)
    named = inferometer.open(PROFILE).ops.filter(pl.col("op").str.contains("::", literal=True)).collect().height
    assert f"{named:,} of" in found.facts.notes[-1]
    assert "by their order, since ids of record functions weren't recorded in both" in found.facts.notes[-1]


def test_what_the_profile_has_itself_stays(tmp_path: Path) -> None:
    profile = tmp_path / "p.json"
    own = event("cpu_op", "aten::a", "1", "1", Record_function_id=3, Input_Dims=[[9]], Input_type=["float"])
    profile.write_bytes(write_file([own, event("cpu_op", "aten::b", "3", "1", Record_function_id=4)]))
    given = {"values": [1], "shapes": [[2]], "types": ["Tensor(double)"], "strides": [[1]]}
    nodes = [node(3, "aten::a", inputs=given), node(4, "aten::b", inputs=given)]
    found = join_arguments(inferometer.open(profile), inferometer.open(write(tmp_path / "et.json", nodes)))
    assert found.ops.select("input_dims", "input_strides").collect().rows() == [("[[9]]", "[[1]]"), ("[[2]]", "[[1]]")]


def ops_and_nodes(folder: Path, ops: list[tuple[str, int]], nodes: list[tuple[str, int]]) -> tuple[Trace, Trace]:
    profile = folder / "p.json"
    profile.write_bytes(
        write_file([event("cpu_op", op, str(n), "1", Record_function_id=number) for n, (op, number) in enumerate(ops)])
    )
    made = [node(3 + n, op, rf_id=number) for n, (op, number) in enumerate(nodes)]
    return inferometer.open(profile), inferometer.open(write(folder / "et.json", made))


def test_ids_that_name_other_ops_are_of_another_run(tmp_path: Path) -> None:
    pair = ops_and_nodes(tmp_path, [("aten::a", 1), ("aten::b", 2)], [("aten::b", 1), ("aten::a", 2)])
    with pytest.raises(InputError, match="of 2 ids that both have, 2 name different ops"):
        join_arguments(*pair)


def test_an_id_that_two_ops_have_ties_neither(tmp_path: Path) -> None:
    pair = ops_and_nodes(tmp_path, [("aten::a", 1), ("aten::a", 1), ("aten::b", 2)], [("aten::a", 1), ("aten::b", 2)])
    found = join_arguments(*pair).ops.select("op", "input_dims").collect()
    assert found.rows() == [("aten::a", None), ("aten::a", None), ("aten::b", "[]")]


def test_other_ops_in_another_order_are_refused(tmp_path: Path) -> None:
    pair = ops_and_nodes(tmp_path, [("aten::a", 0), ("aten::b", 0)], [("aten::b", 0), ("aten::a", 0)])
    with pytest.raises(InputError, match="they share no ids, and no thread has the same ops in the same order"):
        join_arguments(*pair)


def test_two_threads_with_the_same_ops_are_not_told_apart(tmp_path: Path) -> None:
    profile = tmp_path / "p.json"
    profile.write_bytes(write_file([event("cpu_op", "aten::a", "1", "1", tid=tid) for tid in (1, 2)]))
    et = write(tmp_path / "et.json", [node(3, "aten::a", rf_id=0), node(4, "aten::a", rf_id=0, tid=2)])
    with pytest.raises(InputError, match="they share no ids"):
        join_arguments(inferometer.open(profile), inferometer.open(et))


def test_a_profile_without_ops_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(write_file([event("user_annotation", "x", "1", "1")]))
    with pytest.raises(InputError, match="expected ops to give arguments to, found none"):
        join_arguments(inferometer.open(tmp_path / "p.json"), inferometer.open(ET))


def test_an_execution_trace_without_ops_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected ops of an execution trace, found none"):
        join_arguments(*ops_and_nodes(tmp_path, [("aten::a", 1)], []))
