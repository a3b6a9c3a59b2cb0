"""What is written comes back as it was: all 30 operators, all their shapes."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.bench.exchange.samples import LACKING, NORM, every_shape, read_lines, result, run_of

from inferometer.bench.exchange import left_out, read_workloads, write_exchange
from inferometer.bench.exchange.axes import bind
from inferometer.errors import InputError
from inferometer.operators import operators


def is_held(name: str, args: dict[str, Any]) -> bool:
    """Whether the format has the dtypes of a call."""
    bound = bind(operators()[name], args)
    return all(tensor.dtype != LACKING for tensor in (*bound.inputs.values(), *bound.outputs.values()))


@pytest.mark.parametrize("name", list(operators()))
def test_every_shape_comes_back_with_its_arguments_and_its_name(name: str, tmp_path: Path) -> None:
    shapes = list(every_shape(operators()[name]))
    run = run_of(*(result(name, args, shape=label) for label, args in shapes))
    held = [(label, args) for label, args in shapes if is_held(name, args)]
    assert len(left_out(run)) == len(shapes) - len(held)
    assert all("a dtype that flashinfer-bench doesn't have" in line for line in left_out(run))
    written = write_exchange(run, tmp_path, force=False)
    assert all(path.is_file() for path in written)
    found: list[tuple[str, Mapping[str, Any]]] = []
    for path in written:
        if path.relative_to(tmp_path).parts[0] == "workloads":
            (asked,) = read_workloads(path)
            assert asked.operator.name == name
            found += asked.shapes
    unique = {repr(sorted(args.items())): (label, args) for label, args in reversed(held)}
    assert sorted(found, key=repr) == sorted(unique.values(), key=repr)


def test_traces_are_read_too_and_a_shape_that_two_candidates_ran_is_one(tmp_path: Path) -> None:
    run = run_of(result(), result(candidate="mine.py"))
    paths = [path for path in write_exchange(run, tmp_path, force=False) if path.parts[-4] == "traces"]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "traces/mine/rmsnorm/rms_norm_H64.jsonl",
        "traces/torch/rmsnorm/rms_norm_H64.jsonl",
    ]
    both = tmp_path / "both.jsonl"
    both.write_bytes(b"".join(path.read_bytes() for path in paths))
    (asked,) = read_workloads(both)
    assert asked.shapes == (("0: a norm", NORM),)


def test_without_our_field_the_definition_and_the_axes_say_it(tmp_path: Path) -> None:
    """As it is where flashinfer-bench has written a trace again."""
    write_exchange(run_of(result(args={**NORM, "eps": 0.1})), tmp_path, force=False)
    path = tmp_path / "workloads/rmsnorm/rms_norm_H64_eps0.1.jsonl"
    path.write_bytes(_without_ours(path))
    (asked,) = read_workloads(path)
    assert asked.shapes[0][1] == {**NORM, "eps": 0.1}
    assert "token_count" not in asked.shapes[0][0]
    assert asked.shapes[0][0].endswith("T=5")


def test_sizes_that_only_values_tell_are_not_asked_of_the_axes(tmp_path: Path) -> None:
    args = {"token_count": 12, "num_experts": 3, "top_k": 3, "block_size": 4}
    write_exchange(run_of(result("moe_align_block_size", args)), tmp_path, force=False)
    (path,) = tmp_path.glob("workloads/*/*")
    path.write_bytes(_without_ours(path))
    (asked,) = read_workloads(path)
    assert asked.shapes[0][1] == args


def test_without_our_field_lists_are_not_guessed(tmp_path: Path) -> None:
    args = {"num_heads": 2, "head_dim": 8, "seq_lens": [3, 4]}
    write_exchange(run_of(result("attention_forward", args)), tmp_path, force=False)
    (path,) = tmp_path.glob("workloads/*/*")
    path.write_bytes(_without_ours(path))
    with pytest.raises(InputError, match="without its arguments, and its axes don't say them all"):
        read_workloads(path)


def test_the_same_shape_has_the_same_uuid_in_every_run(tmp_path: Path) -> None:
    uuids = set()
    for place, args in enumerate([NORM, dict(reversed(NORM.items()))]):
        write_exchange(run_of(result(args=args)), tmp_path / str(place), force=False)
        (line,) = read_lines(tmp_path / str(place) / "workloads/rmsnorm/rms_norm_H64.jsonl")
        uuids.add(line["workload"]["uuid"])
    assert len(uuids) == 1


def test_a_file_that_says_something_else_is_replaced_by_force_only(tmp_path: Path) -> None:
    write_exchange(run_of(result()), tmp_path, force=False)
    write_exchange(run_of(result()), tmp_path, force=False)  # says the same
    other = run_of(result(error=0.5))
    with pytest.raises(InputError, match=r"rms_norm_H64\.jsonl is there already"):
        write_exchange(other, tmp_path, force=False)
    write_exchange(other, tmp_path, force=True)
    (line,) = read_lines(tmp_path / "traces/torch/rmsnorm/rms_norm_H64.jsonl")
    assert line["evaluation"]["correctness"]["extra"]["error_of_allowed"] == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("my own notes\n"),
        lambda path: path.symlink_to("notes"),
        os.mkfifo,
        lambda path: path.mkdir(),
    ],
    ids=["another file", "link", "pipe", "folder"],
)
@pytest.mark.parametrize("name", ["definitions/rmsnorm/rms_norm_H64.json", "traces/torch/rmsnorm/rms_norm_H64.jsonl"])
def test_what_is_no_file_of_a_dataset_is_never_replaced_and_nothing_else_is_written(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    (path.parent / "notes").write_text("my own notes\n")
    make(path)
    before = sorted(str(each) for each in tmp_path.rglob("*"))
    with pytest.raises(InputError, match=r"not replaced|is a folder|there already"):
        write_exchange(run_of(result()), tmp_path, force=True)
    assert sorted(str(each) for each in tmp_path.rglob("*")) == before
    assert (path.parent / "notes").read_text() == "my own notes\n"


def test_what_says_the_same_stays_as_it_is(tmp_path: Path) -> None:
    files = write_exchange(run_of(result()), tmp_path, force=False)
    before = [path.stat().st_ino for path in files]
    assert write_exchange(run_of(result()), tmp_path, force=True) == files
    assert [path.stat().st_ino for path in files] == before


def test_a_run_that_was_not_timed_has_nothing_to_write(tmp_path: Path) -> None:
    run = run_of(result(timings=()))
    with pytest.raises(InputError, match="nothing of this run") as caught:
        write_exchange(run, tmp_path, force=False)
    assert caught.value.hint == "rms_norm, 0: a norm, torch: it is right, but wasn't timed"
    assert not list(tmp_path.iterdir())


def test_operators_and_arguments_that_are_none_are_left_out(tmp_path: Path) -> None:
    run = run_of(result(), result("../../etc"), result(shape="1: broken", args={"token_count": 5}))
    assert left_out(run) == (
        '../../etc, 0: a norm: unknown operator "../../etc"',
        "rms_norm, 1: broken: rms_norm: argument hidden_size is missing",
    )
    assert {path.name for path in write_exchange(run, tmp_path, force=False)} == {
        "rms_norm_H64.json",
        "rms_norm_H64.jsonl",
    }


def test_candidates_whose_names_look_alike_have_folders_of_their_own(tmp_path: Path) -> None:
    names = ["a b.py", "a/b.py", "../A b", "."]
    write_exchange(run_of(*(result(candidate=name) for name in names)), tmp_path, force=False)
    folders = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert len(folders) == len(names)
    assert "a_b" in folders
    assert not list(tmp_path.parent.glob("[Aa]*b*"))


def _without_ours(path: Path) -> bytes:
    (line,) = read_lines(path)
    del line["workload"]["inferometer"]
    return msgspec.json.encode(line)
