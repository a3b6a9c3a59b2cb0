"""Who takes part, and what is reported of those who can't."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inferometer.bench.candidate_files import files_of
from inferometer.bench.candidates import choose_candidates
from inferometer.bench.correct import Plan
from inferometer.bench.race import Pace
from inferometer.bench.results import ShapeResult
from inferometer.bench.run import evaluate
from inferometer.bench.session import ProcessLimits
from inferometer.bench.shapes import choose_shapes, fit_device
from inferometer.bench.timer_choice import choose_timer
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators import require_operator

pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("warm")


def test_backends_come_in_their_order_and_the_candidate_last(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1")
    found = choose_candidates(("reference", "torch", "reference"), file, "cpu")
    assert [each.name for each in found.chosen] == ["reference", "torch", "mine.py"]
    candidate = found.chosen[-1].as_record()
    assert (candidate.kind, candidate.sha256) == ("file", hashlib.sha256(b"x = 1").hexdigest())


def test_all_are_those_that_can_run_here_and_the_others_say_why() -> None:
    found = choose_candidates(("all",), None, "cpu")
    assert found.chosen[0].name == "torch"
    assert "reference" not in {each.name for each in found.chosen}
    assert found.refused["aiter"].startswith("aiter")
    assert not set(found.refused) & {each.name for each in found.chosen}


def test_one_that_was_named_and_can_t_run_is_refused() -> None:
    with pytest.raises(Unavailable, match="aiter can't run on cpu"):
        choose_candidates(("torch", "aiter"), None, "cpu")
    with pytest.raises(UnknownName, match='unknown backend "torhc"'):
        choose_candidates(("torhc",), None, "cpu")


def test_a_backend_is_asked_only_for_what_it_has() -> None:
    (torch,) = choose_candidates(("torch",), None, "cpu").chosen
    assert torch.serves("rms_norm")
    assert not torch.serves("no_such_operator")


@pytest.mark.parametrize(
    ("hip", "device", "given"), [(None, "cuda:0", True), (None, "cpu", False), ("6.4", "cuda:0", False)]
)
def test_gpus_of_nvidia_get_the_fp8_that_they_have(
    hip: str | None, device: str, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.version.hip", hip)
    quantise = choose_shapes(require_operator("fp8_dynamic_per_token_quant"), "0,1")
    assert all(("fp8_dtype" in args) == given for _, args in fit_device(quantise, device).shapes)
    norm = choose_shapes(require_operator("rms_norm"), "0")
    assert fit_device(norm, device) == norm


def test_a_cpu_has_the_host_s_clock_alone() -> None:
    assert choose_timer(None, "cpu", lambda path: [], ProcessLimits()).timer == "host"
    with pytest.raises(InputError, match="--timer graph is for GPUs"):
        choose_timer("graph", "cpu", lambda path: [], ProcessLimits())
    with pytest.raises(InputError, match="--timer host is for CPUs"):
        choose_timer("host", "cuda:0", lambda path: [], ProcessLimits())


def test_the_best_timer_that_works_is_taken_and_the_others_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = {"cupti": "the profiler lost 3 launches", "graph": None, "events": None}
    monkeypatch.setattr("inferometer.bench.timer_choice._try", lambda timer, *_: why[timer])
    found = choose_timer(None, "cuda:0", lambda path: [], ProcessLimits())
    assert (found.timer, found.refused) == ("graph", {"cupti": "the profiler lost 3 launches"})
    with pytest.raises(Unavailable, match="no timer works on cuda:0: cupti: the profiler lost 3 launches"):
        choose_timer("cupti", "cuda:0", lambda path: [], ProcessLimits())


RIGHT = "import torch\ndef normed(x, weight, eps):\n    return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"


def check(file: Path, operator: str = "rms_norm", shape: int = 0, *, timed: bool = False) -> ShapeResult:
    """What comes of a candidate on one tiny shape."""
    asked = choose_shapes(require_operator(operator), "tiny")
    one = replace(asked, shapes=asked.shapes[shape : shape + 1])
    plan = Plan(1, "cpu", ProcessLimits(threads=1))
    pace = Pace("host", 0.05, ("warm",)) if timed else None
    return evaluate([one], choose_candidates((), file, "cpu"), plan, pace=pace).run.results[0]


def write(folder: Path, **files: str) -> Path:
    """Files by their names without `.py`; the first is the candidate's."""
    paths = [folder / f"{name}.py" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths[0]


FORMS = {
    "a dict": ("fused_add_rms_norm", """
import torch
class Model:
    def __init__(self, eps=1e-6):
        self.eps = eps
    def forward(self, x, residual, weight):
        summed = x.float() + residual.float()
        normed = torch.rms_norm(summed, x.shape[-1:], weight.float(), self.eps)
        return {"residual": summed.to(x.dtype), "out": normed.to(x.dtype)}
"""),
    "in place, and nothing": ("fused_add_rms_norm", """
import torch
def fused_add_rms_norm(x, residual, weight, *, eps):
    summed = x.float() + residual.float()
    residual.copy_(summed)
    x.copy_(torch.rms_norm(summed, x.shape[-1:], weight.float(), eps))
"""),
    "memory of outputs": ("rms_norm", """
import torch
def rms_norm(x, weight, out, eps):
    out.copy_(torch.rms_norm(x.float(), x.shape[-1:], weight.float(), eps))
"""),
    "ModelNew": ("rms_norm", """
import torch
class Model(torch.nn.Module):
    pass
class ModelNew(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
    def forward(self, a, b):
        return torch.rms_norm(a.float(), a.shape[-1:], b.float(), self.eps).to(a.dtype)
"""),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_honest_kernels_are_right(form: str, tmp_path: Path) -> None:
    operator, text = FORMS[form]
    found = check(write(tmp_path, mine=text), operator)
    assert (found.failure, found.concerns) == (None, ())


def test_in_place_kernels_are_timed_and_right_where_rows_lie_apart(tmp_path: Path) -> None:
    operator, text = FORMS["in place, and nothing"]
    found = check(write(tmp_path, mine=text), operator, 1, timed=True)
    assert (found.failure, found.strided) == (None, "right")
    assert found.timing("warm") is not None


def test_what_isn_t_the_contract_s_is_still_refused(tmp_path: Path) -> None:
    view = "class Model:\n    def forward(self, x, weight):\n        return {'out': x[:]}\n"
    words = "output 0 lies in the memory of the input x: expected a tensor of its own"
    assert check(write(tmp_path, mine=view)).failure == words
    other = view.replace("'out'", "'output'").replace("x[:]", "x * 1")
    assert check(write(tmp_path, mine=other)).failure == "expected outputs called out, found output"
    nothing = "def rms_norm(x, weight, *, eps):\n    x.mul_(2)\n"
    assert "this operator updates no input in place" in (check(write(tmp_path, mine=nothing)).failure or "")


def test_files_next_to_it_may_be_imported(tmp_path: Path) -> None:
    mine = write(
        tmp_path,
        mine="from helper import normed\ndef rms_norm(x, weight, *, eps):\n    return normed(x, weight, eps)\n",
        helper=RIGHT,
        unused="",
    )
    assert check(mine).failure is None
    assert [path.name for path in files_of(mine)] == ["mine.py", "helper.py"]
    (before,) = choose_candidates((), mine, "cpu").chosen
    digest = before.as_record().sha256
    (tmp_path / "helper.py").write_text(RIGHT + "# other\n")
    (after,) = choose_candidates((), mine, "cpu").chosen
    assert after.as_record().sha256 != digest


def test_packages_are_candidates(tmp_path: Path) -> None:
    package = tmp_path / "kernels"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "normed.py").write_text(RIGHT)
    call = "def rms_norm(x, weight, *, eps):\n    return normed(x, weight, eps)\n"
    init = package / "__init__.py"
    init.write_text(f"from .inner.normed import normed\n{call}")
    (package / "mine.py").write_text(f"from .inner.normed import normed\nfrom kernels import rms_norm as other\n{call}")
    for file in (init, package / "mine.py"):
        assert check(file).failure is None
        assert package / "inner" / "normed.py" in files_of(file)
    assert choose_candidates((), init, "cpu").chosen[0].name == "kernels"


DOT = Path(__file__).parent / "candidates" / "triton_linear_sigmoid_mul.py"


def test_products_of_bf16_are_right_without_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    assert check(DOT, "linear_sigmoid_mul").interpreted == ("bf16 dot",)
    configs = "[triton.Config({**TILES}), triton.Config({**TILES, 'TILE_T': 16})]"
    tiles = "TILES = {'TILE_T': 32, 'TILE_F': 32, 'TILE_H': 32}\n"
    text = DOT.read_text().replace(
        "@triton.jit", f"{tiles}@triton.autotune(configs={configs}, key=['H', 'F'])\n@triton.jit"
    )
    text = text.replace("T, H, F, **TILES)", "T, H, F)").replace('TILES = {"TILE_T": 64', 'UNUSED = {"TILE_T": 64')
    text = text.replace("tl.sigmoid(rounded) * factor", "tl.sigmoid(rounded).to(tl.bfloat16) * factor.to(tl.bfloat16)")
    found = check(write(tmp_path, mine=text), "linear_sigmoid_mul", 1)
    assert (found.failure, found.interpreted) == (None, ("bf16 dot", "bf16 math", "first configuration"))


def test_wrong_products_of_bf16_are_wrong_without_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    text = DOT.read_text().replace("gate = tl.dot(x_tile, weight_tile, gate)", "gate = tl.dot(x_tile, weight_tile)")
    found = check(write(tmp_path, mine=text), "linear_sigmoid_mul")
    assert (found.failure or "").startswith("out: ")


@pytest.mark.skipif(not all(map(shutil.which, ("c++", "ninja"))), reason="there is no C++ compiler, or no ninja")
def test_sources_in_cpp_are_compiled(tmp_path: Path) -> None:
    source = """
#include <torch/csrc/utils/pybind.h>
at::Tensor twice(const at::Tensor& x) { return x.to(at::kFloat); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("twice", &twice); }
"""  # with the headers that load_inline puts in by itself it takes four times as long
    text = f"""
import torch
from torch.utils.cpp_extension import load_inline
wide = load_inline("inferometer_test_wide", cpp_sources={source!r}, no_implicit_headers=True)
def rms_norm(x, weight, *, eps):
    return torch.rms_norm(wide.twice(x), x.shape[-1:], weight.float(), eps).to(x.dtype)
"""
    found = check(write(tmp_path, mine=text))
    assert (found.failure, found.concerns) == (None, ())
