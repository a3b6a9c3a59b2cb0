"""Replay scripts: what runs is what was recorded, and nothing of a hostile file gets into the code."""

import ast
import json
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import roofline
from inferometer.errors import InputError
from inferometer.reports.replay.script import replay_script

REAL = Path(__file__).parents[4] / "shared" / "data" / "traces" / "kineto"
_RECORDED = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra torch")


def row_of(op: str, dims: Any, types: Any, strides: Any = None, values: Any = None, kernel: str = "") -> dict[str, Any]:
    """A row as `roofline` has it."""
    texts = {"input_dims": dims, "input_dtypes": types, "input_strides": strides, "scalars": values}
    arguments = {name: None if value is None else json.dumps(value) for name, value in texts.items()}
    return {"op": op, "kernel": kernel, "calls": 2, "launches": 2, "total_ns": 3000, **arguments}


MM = row_of("aten::mm", [[2, 3], [3, 5]], ["float", "float"], [[3, 1], [1, 3]], ["", ""])


def call_of(script: str) -> ast.Call:
    """The node that says what is run."""
    (found,) = (node for node in ast.parse(script).body if isinstance(node, ast.Assign))
    assert isinstance(found.value, ast.Call)
    return found.value


def inputs_of(script: str) -> list[str]:
    inputs = call_of(script).args[1]
    assert isinstance(inputs, ast.Tuple)
    return [ast.unparse(each) for each in inputs.elts]


def run(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """As a program would run it, in this process."""
    path = folder / "replay.py"
    path.write_text(script, "utf-8")
    monkeypatch.setattr(sys, "argv", [str(path), "--device", "cpu", "--calls", "3", "--warmup", "1", *options])
    runpy.run_path(str(path), run_name="__main__")


def profiled(work: Any, folder: Path) -> list[dict[str, Any]]:
    """Events of ops, as PyTorch's profiler writes them."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        work()
    profile.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text("utf-8"))["traceEvents"]
    return [event for event in events if "Input Dims" in event.get("args", {})]


def originals() -> dict[str, Any]:
    """Calls of a dozen ops, of each kind of argument, by the op that is replayed."""
    import torch
    from torch.nn import functional

    x, wide = torch.randn(4, 6), torch.randn(8, 12)[:, ::2]
    rows = torch.randint(0, 9, (3, 5))
    return {
        "aten::mm": lambda: torch.mm(x, wide.t()),
        "aten::addmm": lambda: torch.addmm(torch.randn(8), x, wide.t(), beta=0.5),
        "aten::bmm": lambda: torch.bmm(torch.randn(1, 2, 6).expand(3, 2, 6), torch.randn(3, 6, 2)),
        "aten::add": lambda: torch.add(x, torch.randn(1, 6), alpha=2),
        "aten::mul": lambda: x * 0.5,
        "aten::native_layer_norm": lambda: functional.layer_norm(x, (6,), torch.ones(6), torch.zeros(6)),
        "aten::_softmax": lambda: torch.softmax(x.bfloat16(), -1),
        "aten::gelu": lambda: functional.gelu(x),
        "aten::sum": lambda: x.sum((0, 1), keepdim=True),
        "aten::cat": lambda: torch.cat([x, x[:2]], 0),
        "aten::index_select": lambda: functional.embedding(rows, torch.randn(9, 4)),
        "aten::gather": lambda: torch.gather(x, 1, torch.zeros(4, 2, dtype=torch.long)),
        "aten::topk": lambda: torch.topk(x, 3),
        "aten::where": lambda: torch.where(x > 0, x, torch.tensor(0.0)),
        "aten::to": lambda: x.to(torch.float16),
        "aten::arange": lambda: torch.arange(3, 9),
        "aten::convolution": lambda: functional.conv2d(torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3), padding=1),
        "aten::_scaled_dot_product_flash_attention_for_cpu": lambda: functional.scaled_dot_product_attention(
            *(torch.randn(1, 2, 8, 4) for _ in range(3)), is_causal=True
        ),
    }


@needs_torch
@pytest.mark.parametrize("op", [
    "aten::mm", "aten::addmm", "aten::bmm", "aten::add", "aten::mul", "aten::native_layer_norm", "aten::_softmax",
    "aten::gelu", "aten::sum", "aten::cat", "aten::index_select", "aten::gather", "aten::topk", "aten::where",
    "aten::to", "aten::arange", "aten::convolution", "aten::_scaled_dot_product_flash_attention_for_cpu",
])  # fmt: skip
def test_a_replay_is_profiled_as_its_original_was(
    op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = next(event["args"] for event in profiled(originals()[op], tmp_path) if event["name"] == op)
    script = replay_script(row_of(op, *(before[name] for name in _RECORDED)))
    again = profiled(lambda: run(script, tmp_path, monkeypatch), tmp_path)
    replays = [event["args"] for event in again if event["name"] == op and _alike(event["args"], before)]
    assert len(replays) >= 4  # one to warm up, three to time
    assert "median" in capsys.readouterr().out


def _alike(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Types of tensors in lists and texts aren't recorded, so all that is compared is what can be the same."""
    return all(found[name] == wanted[name] for name in _RECORDED)


def test_tensors_have_the_recorded_sizes_strides_and_types() -> None:
    assert inputs_of(replay_script(MM)) == ["Strided((2, 3), (3, 1), 'float32')", "Strided((3, 5), (1, 3), 'float32')"]


def test_without_recorded_strides_a_tensor_is_contiguous_and_a_remark_says_so() -> None:
    script = replay_script(row_of("aten::tanh", [[2, 3, 4]], ["c10::Half"]))
    assert inputs_of(script) == ["Strided((2, 3, 4), (12, 4, 1), 'float16')"]
    assert '(12, 4, 1), "float16"),  # strides filled in' in script


@pytest.mark.parametrize(
    ("row", "at", "fill"),
    [
        (row_of("aten::embedding", [[7, 4], [3]], ["float", "long int"], None, ["", ""]), 1, "Integers(0, 7)"),
        (
            row_of("aten::gather", [[7, 4], [], [7, 2], []], ["float", "Scalar", "long int", "Scalar"], None,
                   ["", "1", "", "False"]),
            2,
            "Integers(0, 4)",
        ),
        (
            row_of("aten::_flash_attention_forward", [[32, 2, 8]] * 3 + [[5], [5]],
                   ["c10::Half"] * 3 + ["int", "int"], None, [""] * 5),
            3,
            "Ends(32)",
        ),
        (
            row_of("_C_cache_ops::reshape_and_cache_flash", [[3, 2, 8], [3, 2, 8], [6, 16, 2, 8], [6, 16, 2, 8], [3]],
                   ["c10::BFloat16"] * 4 + ["long int"], None, [""] * 5),
            4,
            "Distinct(96)",
        ),
        (row_of("aten::mul", [[2], [2]], ["int", "int"], None, ["", ""]), 1, "Integers(1, 100)"),
        (row_of("_C::unknown", [[2]], ["int"], None, [""]), 0, "Integers(0, 1)"),
        (row_of("aten::bitwise_not", [[2]], ["bool"], None, [""]), 0, "Integers(0, 2)"),
    ],
)  # fmt: skip
def test_whole_numbers_are_in_range(row: dict[str, Any], at: int, fill: str) -> None:
    script = replay_script(row)
    assert inputs_of(script)[at].endswith(f", {fill})")
    assert "# strides filled in, values filled in" in script


def test_the_type_of_listed_tensors_is_that_of_the_kernel() -> None:
    kernel = "void at::native::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3, 64, 64>(...)"
    row = row_of(
        "aten::cat", [[[2, 3], [4, 3]], []], ["TensorList", "Scalar"], [[[3, 1], [3, 1]], []], ["", "0"], kernel
    )
    script = replay_script(row)
    assert inputs_of(script)[0].count("'bfloat16'") == 2
    assert "# type filled in" in script


def test_a_text_that_the_op_needs_is_filled_in() -> None:
    row = row_of("_C_cache_ops::reshape_and_cache_flash",
                 [[3, 2, 8], [3, 2, 8], [6, 16, 2, 8], [6, 16, 2, 8], [3], []],
                 ["c10::BFloat16"] * 4 + ["long int", ""], None, [""] * 6)  # fmt: skip
    script = replay_script(row)
    assert inputs_of(script)[5] == "'auto'"
    assert '"auto",  # a text, filled in' in script
    assert "'vllm._C'" in ast.unparse(call_of(script))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (row_of("aten::index", [[3, 4], []], ["float", ""]), "index tensors"),
        (row_of("aten::_foreach_add_", [[], []], ["TensorList", "Scalar"], None, ["", "1"]), "list of tensors"),
        (row_of("aten::add", [[3], [3], []], ["float", "float", "Scalar"]), "aren't in the file"),
        (row_of("vllm::unified_attention_with_output", [[3, 4, 8]], ["c10::Half"]), "keeps for a layer"),
        (row_of("sglang_profiler::norm_12", [[3]], ["float"]), "a function in Python"),
        (row_of("c10d::allreduce_", [[]], ["TensorList"]), "group of processes"),
        (row_of("triton_poi_fused_0", [[3]], ["float"]), "compiled code"),
        (row_of("TopK", [[3, 4]], ["float"]), "isn't the name of a registered op"),
        ({**row_of("aten::mm", None, None)}, "shapes weren't recorded"),
    ],
)
def test_what_cannot_be_replayed_says_why(row: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        replay_script(row)


HOSTILE = (
    'aten::mm"""\nimport os\n"""',
    "aten::mm'); import os; ('",
    "aten::mm\nimport os",
    "aten::\uff4d\uff4d",
    "aten::mm\u2028import os",
    "aten::mm ",
    "aten::",
    "::mm",
    "aten::mm::mm",
    "a" * 5000 + "::mm",
    "aten::\x00mm",
    "aten::mm\\",
    "aten::mm{1+1}",
)


@pytest.mark.parametrize("op", HOSTILE)
def test_no_name_of_a_file_is_code(op: str) -> None:
    with pytest.raises(InputError, match=r"can't be replayed"):
        replay_script({**MM, "op": op})


@pytest.mark.parametrize("text", ["__import__('os')", '"""', "1; import os", "cuda:0", "[1, 'x']", '["x"]', "{}", "\n"])
def test_no_value_of_a_file_is_code(text: str) -> None:
    with pytest.raises(InputError, match="neither a number"):
        replay_script(row_of("aten::sum", [[2], []], ["float", "Scalar"], [[1], []], ["", text]))


def test_no_type_of_a_file_is_code() -> None:
    with pytest.raises(InputError, match="PyTorch has no type"):
        replay_script(row_of("aten::tanh", [[2]], ['float"); import os; ("'], [[1]], [""]))


def test_a_kernel_of_a_file_is_no_part_of_the_script() -> None:
    row = row_of("aten::tanh", [[2]], ["float"], [[1]], [""], kernel='"""\nimport os # void f<float>(')
    assert replay_script(row) == replay_script({**row, "kernel": ""})


def test_values_are_written_as_they_were() -> None:
    values = ["", "[1, -2]", "True", "1e-05", "inf", "nan", "[]", "9223372036854775807", ""]
    kinds = ["float", "ScalarList", "Scalar", "Scalar", "Scalar", "Scalar", "ScalarList", "Scalar", ""]
    dims: list[list[int]] = [[2], *([[]] * 8)]
    found = inputs_of(replay_script(row_of("aten::f", dims, kinds, [[1], *([[]] * 8)], values)))
    assert found[1:] == [
        "[1, -2]",
        "True",
        "1e-05",
        "float('inf')",
        "float('nan')",
        "[]",
        "9223372036854775807",
        "None",
    ]


@needs_torch
@pytest.mark.parametrize(
    ("row", "why"),
    [
        (row_of("aten::no_such_op", [[2]], ["float"]), "isn't registered here; import the library"),
        (row_of("no_such_library::f", [[2]], ["float"]), "isn't registered here"),
        (row_of("aten::__class__", [[2]], ["float"]), "isn't registered here"),
        (row_of("_rocm_C::f", [[2]], ["float"]), "isn't registered here; `import vllm._rocm_C` fails"),
        (row_of("aten::mm", [[2, 3]], ["float"]), "no overload of aten::mm here takes the recorded arguments"),
        (row_of("aten::mm", [[2, 3], [2, 3]], ["float"] * 2), "can't run on cpu: mat1 and mat2 shapes"),
        (row_of("aten::tanh", [[10**9, 10**9]], ["float"]), "can't run on cpu"),
    ],
)
def test_a_script_that_cannot_run_says_why(
    row: dict[str, Any], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as left:
        run(replay_script(row), tmp_path, monkeypatch)
    assert why in str(left.value)


def rows_of(name: str) -> list[dict[str, Any]]:
    """Rows of a real trace whose op is known."""
    if not REAL.is_dir():
        pytest.skip("needs the real captures")
    trace = inferometer.open(REAL / f"{name}.json.gz")
    rows = roofline(attribute(trace, with_op_calls=True), trace).frame
    return rows.filter(rows["op"].is_not_null()).to_dicts()


@pytest.mark.parametrize("name", ["h100_vit", "mi300_qwen1.5-0.5b", "mi250_minitoy"])
def test_every_op_of_a_real_trace_has_a_script_or_a_reason(name: str) -> None:
    rows, refused = rows_of(name), set()
    for row in rows:
        try:
            assert call_of(replay_script(row)).args
        except InputError as error:
            refused.add(error.message)
    assert all("can't be replayed: " in reason for reason in refused)
    assert len(refused) < len(rows) / 4


@needs_torch
def test_small_ops_of_a_real_trace_run_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [row for row in rows_of("h100_qwen1.5-0.5b") if row["write_bytes"] and row["write_bytes"] < 100_000]
    for row in small:
        run(replay_script(row), tmp_path, monkeypatch)
    assert len(small) > 5
    assert capsys.readouterr().out.count("median") == len(small)
