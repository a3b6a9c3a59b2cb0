"""Workloads of flashinfer-trace: what is taken, and what is refused and why. Lines are as that dataset has them."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from inferometer.bench.exchange import read_workloads
from inferometer.bench.exchange.axes import bind
from inferometer.bench.exchange.blobs import encode_blob
from inferometer.errors import FormatError, InputError

RANDOM = {"type": "random"}
SCALE = {"type": "scalar", "value": 0.0883883461356163}  # one over the root of 128, rounded as the dataset has it


def line(name: str, axes: dict[str, int], **inputs: Any) -> dict[str, Any]:
    """A line of `workloads/`."""
    workload = {"uuid": "4b7f0d02-8404-4eb4-be5c-64b0fd639684", "axes": axes, "inputs": inputs}
    return {"definition": name, "solution": None, "workload": workload, "evaluation": None}


def write(folder: Path, *lines: Any, name: str = "some.jsonl") -> Path:
    """A file of workloads in a dataset."""
    path = folder / "workloads" / "some" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in lines) + b"\n")
    return path


def blob(folder: Path, **numbers: list[int]) -> dict[str, Any]:
    """Index inputs in a file of the dataset."""
    path = "./blob/workloads/one.safetensors"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(encode_blob({name: np.array(each, np.int32) for name, each in numbers.items()}))
    return {name: {"type": "safetensors", "path": path, "tensor_key": name} for name in numbers}


def define(folder: Path, name: str, **changed: Any) -> None:
    """The definition of an RMS norm."""
    path = folder / "definitions" / "rmsnorm" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    usual: dict[str, Any] = {
        "name": name,
        "op_type": "rmsnorm",
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 128}},
        "inputs": {"hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
        "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
        "constraints": [],
        "reference": "def run(hidden_states):\n    EPS = 1e-5\n    return hidden_states\n",
    }
    path.write_bytes(msgspec.json.encode({**usual, **changed}))


def paged(folder: Path, pages: list[int], last: list[int], size: int) -> dict[str, Any]:
    """A decode step of sequences with so many pages."""
    inputs = blob(folder, kv_indptr=[0, *np.cumsum(pages).tolist()], kv_last_page_len=last)
    axes = {"batch_size": len(pages), "len_indptr": len(pages) + 1, "num_kv_indices": sum(pages), "num_pages": 99}
    return line(f"gqa_paged_decode_h32_kv4_d128_ps{size}", axes, q=RANDOM, sm_scale=SCALE, **inputs)


def test_norms_have_their_size_in_the_name(tmp_path: Path) -> None:
    lines = [line("rmsnorm_h128", {"batch_size": size}, hidden_states=RANDOM, weight=RANDOM) for size in (192, 24)]
    other = line("fused_add_rmsnorm_h7168", {"batch_size": 14})
    norm, fused = read_workloads(write(tmp_path, *lines, other))
    assert norm.operator.name == "rms_norm"
    assert [args for _, args in norm.shapes] == [{"token_count": size, "hidden_size": 128} for size in (192, 24)]
    assert norm.shapes[0][0] == "rmsnorm_h128 4b7f0d02: batch_size=192"
    assert fused.operator.name == "fused_add_rms_norm"
    assert fused.shapes[0][1] == {"token_count": 14, "hidden_size": 7168}


def test_eps_comes_from_the_definition(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    define(dataset, "rmsnorm_h128")
    path = write(dataset, line("rmsnorm_h128", {"batch_size": 3}))
    (asked,) = read_workloads(path)
    assert asked.shapes[0][1] == {"token_count": 3, "hidden_size": 128, "eps": 1e-5}
    elsewhere = write(tmp_path / "elsewhere", line("rmsnorm_h128", {"batch_size": 3}))
    assert read_workloads(elsewhere)[0].shapes[0][1] == {"token_count": 3, "hidden_size": 128}
    assert read_workloads(elsewhere, dataset / "definitions")[0].shapes == asked.shapes
    assert read_workloads(elsewhere, dataset / "definitions/rmsnorm/rmsnorm_h128.json")[0].shapes == asked.shapes


def test_a_workload_by_itself_is_of_the_definition_that_its_file_is_named_after(tmp_path: Path) -> None:
    bare = line("", {"batch_size": 7})["workload"]
    for path in (
        write(tmp_path, bare, name="rmsnorm_h64.jsonl"),
        write(tmp_path, [bare, bare], name="rmsnorm_h64.json"),
    ):
        (asked,) = read_workloads(path)
        assert [args for _, args in asked.shapes] == [{"token_count": 7, "hidden_size": 64}]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}}},
            "expected 128 as its name",
        ),
        ({"inputs": {"weight": {"shape": ["hidden_size"], "dtype": "float32"}}}, "weight is float32: ours is bfloat16"),
    ],
)
def test_a_definition_that_is_not_what_its_name_says_is_refused(
    changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    define(tmp_path, "rmsnorm_h128", **changed)
    with pytest.raises(InputError, match=reason):
        read_workloads(write(tmp_path, line("rmsnorm_h128", {"batch_size": 3})))


def test_lengths_of_paged_decode_come_from_the_file_of_offsets(tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    path = write(tmp_path, paged(tmp_path, [2, 1, 3], [5, 16, 1], 16))
    (asked,) = read_workloads(path)
    assert asked.operator.name == "unified_attention"
    args = asked.shapes[0][1]
    heads = {"num_query_heads": 32, "num_kv_heads": 4, "head_size": 128, "block_size": 16}
    assert args == {**heads, "seq_lens": [21, 16, 33], "query_lens": [1, 1, 1]}
    assert bind(asked.operator, args).sizes["T"] == 3


def test_one_sequence_alone_needs_no_file(tmp_path: Path) -> None:
    missing = {"type": "safetensors", "path": "./blob/none.safetensors", "tensor_key": "kv_indptr"}
    axes = {"len_indptr": 2, "total_q": 9, "num_kv_indices": 33, "num_pages": 50}
    one = line("gqa_paged_prefill_causal_h32_kv4_d128_ps1", axes, qo_indptr=missing, kv_indptr=missing, sm_scale=SCALE)
    (asked,) = read_workloads(write(tmp_path, one))
    assert asked.shapes[0][1]["seq_lens"] == [33]
    assert asked.shapes[0][1]["query_lens"] == [9]


def changed(workload: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A line with other inputs."""
    inputs = {**workload["workload"]["inputs"], **fields}
    return {**workload, "workload": {**workload["workload"], "inputs": inputs}}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"sm_scale": {"type": "scalar", "value": 1.0}},
            "inputs.sm_scale: expected 0.0883883, .*, found 1: not our contract",
        ),
        ({"sm_scale": RANDOM}, "inputs.sm_scale: expected a number"),
        ({"kv_indptr": RANDOM}, "inputs.kv_indptr: lengths aren't known from axes: expected a file, found other data"),
        (
            {"kv_indptr": {"type": "safetensors", "path": "../../x.safetensors", "tensor_key": "kv_indptr"}},
            "inputs.kv_indptr.path: expected a file in the dataset",
        ),
        (
            {"kv_indptr": {"type": "safetensors", "path": "/etc/passwd", "tensor_key": "kv_indptr"}},
            "inputs.kv_indptr.path: expected a file in the dataset",
        ),
        (
            {"kv_indptr": {"type": "safetensors", "path": "blob/\x00", "tensor_key": "kv_indptr"}},
            "inputs.kv_indptr.path",
        ),
        (
            {"kv_indptr": {"type": "safetensors", "path": "./blob/workloads/one.safetensors", "tensor_key": "none"}},
            'expected a tensor "none", found kv_indptr, kv_last_page_len',
        ),
        (
            {"kv_indptr": {"type": "safetensors", "path": "./blob/workloads/two.safetensors", "tensor_key": "none"}},
            "two.safetensors: No such file",
        ),
    ],
)
def test_what_says_no_lengths_is_refused(fields: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    with pytest.raises(InputError, match=reason):
        read_workloads(write(tmp_path, changed(paged(tmp_path, [2, 1], [5, 16], 16), **fields)))


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        ([2, -1], "expected offsets that begin with 0 and don't fall"),
        ([0, 2], "has 1 queries and 0 keys: ours has no such"),
    ],
)
def test_offsets_that_are_none_are_refused(pages: list[int], reason: str, tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    with pytest.raises(InputError, match=reason):
        read_workloads(write(tmp_path, paged(tmp_path, pages, [1, 1], 1)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 8,
        b"\xff" * 64,
        encode_blob({"kv_indptr": np.zeros(3, np.int32)})[:-4],
        b"\x09" + b"\0" * 7 + b"{" * 9,
    ],
    ids=["empty", "no header", "a long header", "cut", "no JSON"],
)
def test_a_blob_that_is_no_safetensors_file_is_told(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    path = write(tmp_path, paged(tmp_path, [2, 1], [5, 16], 16))
    (tmp_path / "blob/workloads/one.safetensors").write_bytes(data)
    with pytest.raises(FormatError, match=r"one\.safetensors"):
        read_workloads(path)


def test_a_blob_of_other_numbers_is_no_row_of_offsets(tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    path = write(tmp_path, paged(tmp_path, [2, 1], [5, 16], 16))
    (tmp_path / "blob/workloads/one.safetensors").write_bytes(encode_blob({"kv_indptr": np.zeros((3, 1), np.int64)}))
    with pytest.raises(FormatError, match=r"kv_indptr: expected a row of integers, found I64 \[3, 1\]"):
        read_workloads(path)
    (tmp_path / "blob/workloads/one.safetensors").write_bytes(encode_blob({"kv_indptr": np.zeros(9, np.int64)}))
    with pytest.raises(FormatError, match="kv_indptr: expected 3 numbers, found 9"):
        read_workloads(path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gqa_ragged_prefill_causal_h32_kv8_d128", "attention_forward has no mask"),
        ("mla_paged_decode_h16_ckv512_kpe64_ps1", "that of mla_decode_attention is packed and one"),
        ("moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048", "it routes and gives bf16"),
        ("gdn_decode_qk16_v32_d128_k_last", "its states lie in no pool"),
        ("gemm_n128_k2048", "no plain matrix product"),
        ("gemma_rmsnorm_h2048", "isn't as in rms_norm"),
        ("rmsnorm_h4096_fp8e4m3", "isn't as in rms_norm"),
        ("top_p_sampling_from_probs_v151936", "no operator of ours is known"),
    ],
)
def test_others_are_refused_by_name_with_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    path = write(tmp_path, line(name, {"batch_size": 3}))
    with pytest.raises(InputError, match=rf"some\.jsonl:1: .*{reason}"):
        read_workloads(path)


def test_those_that_are_no_shapes_of_ours_are_told_and_the_others_taken(tmp_path: Path) -> None:
    told: list[str] = []
    lines = [line("rmsnorm_h128", {"batch_size": 3}), line("gemm_n128_k2048", {"M": 3})]
    (asked,) = read_workloads(write(tmp_path, *lines), on_left_out=told.append)
    assert asked.shapes[0][1]["token_count"] == 3
    (reason,) = told
    assert "some.jsonl:2: gemm_n128_k2048 isn't an operator of ours" in reason
    with pytest.raises(InputError, match="gemm_n128_k2048"):
        read_workloads(write(tmp_path, lines[1]), on_left_out=told.append)
