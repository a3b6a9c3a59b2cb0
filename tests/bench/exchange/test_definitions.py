"""Definitions run where inferometer is installed, and solutions call a candidate as inferometer does."""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.bench.exchange.samples import LACKING

from inferometer.bench.exchange.axes import bind
from inferometer.bench.exchange.definitions import DTYPES, define, solve
from inferometer.bench.exchange.schema import Const, Solution, Var
from inferometer.errors import InputError
from inferometer.operators import operators

torch = pytest.importorskip("torch", reason="torch isn't installed")

NORM = operators()["rms_norm"]
FUNCTION = "def rms_norm(x, weight, *, eps):\n    return x * eps\n"
MODEL = (
    "class Model:\n    def __init__(self, hidden_size, eps=0):\n        self.eps = eps\n"
    "    def forward(self, x, weight):\n        return x * self.eps\n"
)


def held(name: str) -> list[Mapping[str, Any]]:
    """Tiny shapes that the format has the dtypes of."""
    found = []
    for args in operators()[name].tiny:
        bound = bind(operators()[name], args)
        if all(each.dtype != LACKING for each in (*bound.inputs.values(), *bound.outputs.values())):
            found.append(args)
    return found


@pytest.mark.parametrize("name", list(operators()))
def test_the_reference_of_a_definition_is_the_operators(name: str) -> None:
    operator = operators()[name]
    assert held(name) or name == "fp8_blockscale_fused_moe"
    for args in held(name):
        definition, tensors = define(operator, args), operator.inputs(**args, seed=2)
        assert list(definition.inputs) == list(tensors)
        assert not set(definition.inputs) & set(definition.outputs)
        names: dict[str, Any] = {}
        exec(definition.reference, names)  # as flashinfer-bench does
        found = names["run"](**tensors)
        wanted = operator.answer(tensors, args)
        for own, other in zip(found if isinstance(found, tuple) else (found,), wanted.values(), strict=True):
            assert torch.equal(own.float().nan_to_num(), other.float().nan_to_num())


def test_sizes_of_a_model_are_constant_and_those_of_a_batch_are_not() -> None:
    definition = define(NORM, {"token_count": 5, "hidden_size": 64})
    assert definition.axes == {"T": Var(description="tokens"), "H": Const(value=64, description="hidden size")}
    assert [(name, spec.shape, spec.dtype) for name, spec in definition.inputs.items()] == [
        ("x", ("T", "H"), "bfloat16"),
        ("weight", ("H",), "bfloat16"),
    ]
    assert (definition.name, definition.op_type) == ("rms_norm_H64", "rmsnorm")


def test_settings_that_differ_make_another_definition() -> None:
    names = [define(NORM, {"token_count": 5, "hidden_size": 64, "eps": eps}).name for eps in (1e-6, 0.1)]
    assert names == ["rms_norm_H64", "rms_norm_H64_eps0.1"]
    rank = define(operators()["layer_norm"], {"shape": [2, 3, 8]})
    assert rank.name == "layer_norm_H8_rank3"
    assert rank.inputs["x"].shape == ("T0", "T1", "H")
    gated = dict(operators()["gated_rms_norm"].tiny[0])
    odd = [
        define(operators()["gated_rms_norm"], {**gated, "activation": word}).name for word in ("a/b", "a b", "x" * 200)
    ]
    assert len(set(odd)) == 3
    assert all(len(name) <= 100 and "/" not in name and " " not in name for name in odd)


def test_outputs_that_are_updated_inputs_have_names_of_their_own() -> None:
    definition = define(operators()["fused_add_rms_norm"], {"token_count": 5, "hidden_size": 64})
    assert list(definition.outputs) == ["out", "residual_out"]


def test_a_dtype_that_the_format_lacks_is_refused() -> None:
    assert LACKING not in DTYPES
    with pytest.raises(InputError, match=f"q is {LACKING}, a dtype that flashinfer-bench doesn't have"):
        define(operators()["fp8_dynamic_per_token_quant"], {"token_count": 1, "hidden_size": 8})


def called(solution: Solution, folder: Path) -> Any:
    """The entry point, loaded as a package, as flashinfer-bench does."""
    package = f"exchange_{solution.name.replace('.', '_')}"
    (folder / package).mkdir()
    for source in solution.sources:
        (folder / package / source.path).write_text(source.content)
    sys.path.insert(0, str(folder))
    try:
        return import_module(f"{package}.main").run
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("text", [FUNCTION, MODEL])
def test_a_solution_gives_the_candidate_its_settings(text: str, tmp_path: Path) -> None:
    definition = define(NORM, {"token_count": 5, "hidden_size": 64, "eps": 0.5})
    author = "function" if text == FUNCTION else "model"
    solution = solve(definition, NORM, "mine.py", author, text)
    assert (solution.spec.language, solution.definition) == ("python", "rms_norm_H64_eps0.5")
    found = called(solution, tmp_path)(torch.ones(5, 64), torch.ones(64))
    assert found.eq(0.5).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def other(x):\n    return x\n", "no function rms_norm and no class Model stands in it"),
        ("def rms_norm(", "its text is no Python"),
        ("class Model:\n    def __init__(self, token_count):\n        pass\n", "wants token_count, which differs"),
    ],
)
def test_what_is_no_solution_is_told(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        solve(define(NORM, {"token_count": 5, "hidden_size": 64}), NORM, "mine.py", "mine", text)


def test_functions_by_assignment_and_import_count_and_triton_is_seen() -> None:
    definition = define(NORM, {"token_count": 5, "hidden_size": 64})
    for text in (
        "rms_norm = print\n",
        "from a import b as rms_norm\n",
        "try:\n    rms_norm = 1\nexcept E:\n    pass\n",
    ):
        assert "candidate.rms_norm" in solve(definition, NORM, "mine.py", "mine", text).sources[0].content
    assert solve(definition, NORM, "mine.py", "mine", "import triton\n" + FUNCTION).spec.language == "triton"
