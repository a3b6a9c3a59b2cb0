"""Random inputs are valid ones of their kind, files give what they hold, and what can't be had is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.problems.datasets import ALL, DECODE, EMBEDDING, GDN, GEMM, INDEXER, MOE, SAMPLING, WORKLOADS, write

from inferometer.bench.exchange.schema import Definition, Safetensors, Workload
from inferometer.bench.exchange.workloads import decode
from inferometer.bench.problems.drawing import Inputs
from inferometer.errors import FormatError, InputError

torch: Any = pytest.importorskip("torch", reason="torch isn't installed")


def inputs_of(given: dict[str, Any], root: Path, number: int = 0) -> Inputs:
    from tests.bench.problems.datasets import workload

    axes, sources = WORKLOADS[given["name"]][number]
    line = json.dumps(workload(given, axes, sources, "00")["workload"]).encode()
    return Inputs(
        decode("here", json.dumps(given).encode(), Definition), decode("here", line, Workload), root, "here:1"
    )


def given(of: Inputs, name: str, source: Any) -> Inputs:
    workload = Workload(axes=of.workload.axes, inputs={**of.workload.inputs, name: source}, uuid="00")
    return replace(of, workload=workload, _stored={})


@pytest.mark.parametrize("each", ALL, ids=lambda each: each["op_type"])
def test_tensors_are_as_defined_and_follow_from_the_seed(each: dict[str, Any], tmp_path: Path) -> None:
    inputs = inputs_of(each, tmp_path)
    inputs.check()
    found, again, other = inputs.draw(5, "cpu"), inputs.draw(5, "cpu"), inputs.draw(6, "cpu")
    for name, tensor in found.items():
        spec = inputs.definition.inputs[name]
        assert list(tensor.shape) == [inputs.sizes[axis] for axis in spec.shape or ()]
        assert str(tensor.dtype) == f"torch.{spec.dtype}"
        assert torch.equal(tensor.view(torch.uint8), again[name].view(torch.uint8))
    assert any(not torch.equal(found[name].view(torch.uint8), other[name].view(torch.uint8)) for name in found)


def test_an_optional_input_that_a_workload_lacks_is_none(tmp_path: Path) -> None:
    inputs = inputs_of(GDN, tmp_path)
    assert "state" not in inputs.tensor_names
    assert inputs.scalars == {"scale": 0.5}


def test_whole_numbers_mean_what_they_are_called(tmp_path: Path) -> None:
    decode_inputs = inputs_of(DECODE, tmp_path).draw(1, "cpu")
    offsets, pages = decode_inputs["kv_indptr"], decode_inputs["kv_indices"]
    assert (int(offsets[0]), int(offsets[-1])) == (0, 11)
    assert bool((offsets[1:] > offsets[:-1]).all())
    assert len(set(pages.tolist())) == 11
    assert 0 <= int(pages.min()) <= int(pages.max()) < 20
    tokens = inputs_of(EMBEDDING, tmp_path).draw(1, "cpu")["input_ids"]
    assert 0 <= int(tokens.min()) <= int(tokens.max()) < 50
    indexer = inputs_of(INDEXER, tmp_path).draw(1, "cpu")
    assert 1 <= int(indexer["seq_lens"].min()) <= int(indexer["seq_lens"].max()) <= 5 * 4
    assert int(indexer["block_table"].max()) < 17


def test_real_numbers_are_valid_ones(tmp_path: Path) -> None:
    sampling = inputs_of(SAMPLING, tmp_path).draw(1, "cpu")
    assert torch.allclose(sampling["probs"].sum(-1), torch.ones(5))
    assert 1 <= int(sampling["top_k"].min()) <= int(sampling["top_k"].max()) <= 40
    assert bool(((sampling["top_p"] > 0) & (sampling["top_p"] <= 1)).all())
    gated = inputs_of(GDN, tmp_path).draw(1, "cpu")
    assert torch.allclose(gated["k"].float().norm(dim=-1), torch.ones(9, 1), atol=0.01)
    assert bool((inputs_of(MOE, tmp_path).draw(1, "cpu")["hidden_states_scale"] > 0).all())


def test_pages_of_scaled_fp8_hold_keys_and_their_scales(tmp_path: Path) -> None:
    pages = inputs_of(INDEXER, tmp_path).draw(1, "cpu")["k_index_cache_fp8"]
    flat = pages.view(torch.uint8).reshape(17, -1)
    scales = flat[:, 4 * 8 :].contiguous().view(torch.float32)
    values = flat[:, : 4 * 8].contiguous().view(torch.float8_e4m3fn).float().view(17, 4, 8)
    assert float(scales.min()) > 0
    assert float((values * scales[:, :, None]).abs().max()) < 6  # of 544 standard normal numbers
    assert torch.allclose(values.abs().amax(-1), torch.full((17, 4), 448.0))


def stored(root: Path, **tensors: Any) -> Safetensors:
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors isn't installed")
    safetensors.save_file(tensors, str(root / "blob.safetensors"))
    return Safetensors(path="blob.safetensors", tensor_key=next(iter(tensors)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int32", "uint8", "bool"])
def test_a_file_gives_its_values_to_the_bit(dtype: str, tmp_path: Path) -> None:
    tensor = (torch.arange(3 * 40) % 2).reshape(3, 40).to(getattr(torch, dtype))
    spec = {**GEMM, "inputs": {**GEMM["inputs"], "A": {"shape": ["M", "K"], "dtype": dtype}}}
    inputs = given(inputs_of(spec, tmp_path), "A", stored(tmp_path, a=tensor))
    inputs.check()
    found = inputs.draw(1, "cpu")["A"]
    assert found.dtype == tensor.dtype
    assert torch.equal(found.view(torch.uint8), tensor.view(torch.uint8))
    found.view(torch.uint8).fill_(9)
    assert torch.equal(inputs.draw(2, "cpu")["A"].view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize(
    ("path", "key", "words"),
    [
        ("../blob.safetensors", "a", "expected a file in the dataset"),
        ("/etc/passwd", "a", "expected a file in the dataset"),
        ("none.safetensors", "a", "No such file"),
        ("blob.safetensors", "b", 'expected a tensor "b", found a'),
        ("x\0y", "a", "inputs.A.path"),
        ("cut.safetensors", "a", "cut.safetensors"),
    ],
)
def test_a_file_that_cannot_be_had_is_refused(path: str, key: str, words: str, tmp_path: Path) -> None:
    stored(tmp_path, a=torch.zeros(3, 40, dtype=torch.float16))
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "blob.safetensors").read_bytes()[:40])
    inputs = given(inputs_of(GEMM, tmp_path), "A", Safetensors(path=path, tensor_key=key))
    with pytest.raises(InputError) as error:
        inputs.check()
    assert words in str(error.value)


def test_a_file_of_another_shape_or_dtype_is_refused(tmp_path: Path) -> None:
    inputs = inputs_of(GEMM, tmp_path)
    with pytest.raises(FormatError, match=r"expected float16 as A is, found float32"):
        given(inputs, "A", stored(tmp_path, a=torch.zeros(3, 40))).check()
    with pytest.raises(FormatError, match=r"expected \[3, 40\] as A is, found \[4, 40\]"):
        given(inputs, "A", stored(tmp_path, a=torch.zeros(4, 40, dtype=torch.float16))).check()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"shape": ["M"], "dtype": "int32"}, "inputs.A: int32 drawn at random: its range isn't stated"),
        ({"shape": ["M"], "dtype": "float4_e2m1"}, "PyTorch has no tensor with one such value an element"),
        ({"shape": None, "dtype": "float32"}, "inputs.A: a number drawn at random: its range isn't stated"),
    ],
)
def test_what_nobody_can_draw_is_refused_with_a_way_out(spec: dict[str, Any], words: str, tmp_path: Path) -> None:
    inputs = inputs_of({**GEMM, "inputs": {"A": spec, "B": GEMM["inputs"]["B"]}}, tmp_path)
    with pytest.raises(InputError) as error:
        inputs.check()
    assert words in str(error.value)
    assert error.value.hint


def test_an_input_that_the_definition_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"here:1: inputs.Z: gemm_n24_k40 has only A, B"):
        given(inputs_of(GEMM, tmp_path), "Z", Safetensors(path="a", tensor_key="b")).check()


def test_the_shape_of_an_input_with_another_axis_name_is_refused(tmp_path: Path) -> None:
    changed = json.loads(json.dumps(DECODE).replace("num_pages", "page_count"))
    WORKLOADS["renamed"] = [({"batch_size": 3, "page_count": 20, "len_indptr": 4, "num_kv_indices": 11}, {})]
    changed["name"] = "renamed"
    changed["inputs"].pop("sm_scale")
    with pytest.raises(InputError, match="drawn up to num_pages, which isn't an axis here"):
        inputs_of(changed, tmp_path).check()
    write(tmp_path / "unused", "")
