"""The published form for every operator: a class whose `forward` takes tensors by name and returns a dict.

Its formula is that of our kernels in plain PyTorch, as text: a candidate can't import them.
"""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from inferometer.backends.torch import kernels
from inferometer.bench.candidates import choose_candidates
from inferometer.bench.correct import Plan
from inferometer.bench.results import ShapeResult
from inferometer.bench.run import evaluate
from inferometer.bench.session import ProcessLimits
from inferometer.bench.shapes import choose_shapes
from inferometer.operators import operators, require_operator
from inferometer.operators.operator import Operator

pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("warm")

_SHARED = re.compile(rf"^from {re.escape(kernels.__name__)}\.(\w+) import .*$", re.MULTILINE)
_FORM = """
import torch as _torch

_formula = {name}
del {name}


class Model(_torch.nn.Module):
    def __init__(self{constructor}):
        super().__init__()
        self.settings = dict({settings})

    def forward(self, {tensors}):
        found = _formula({given}, **self.settings)
        found = found if isinstance(found, tuple) else (found,)
        return dict(reversed(list(zip({outputs!r}, found))))
"""


def formula_of(name: str) -> str:
    """The text of a kernel's module, what it shares with another one included."""
    text = Path(kernels.__path__[0], f"{name}.py").read_text()
    return _SHARED.sub(lambda found: formula_of(found[1]), text)


def published_form(operator: Operator) -> str:
    """A module: settings without a default where the reference has none."""
    formula = formula_of(operator.name)
    drawn = [operator.inputs(**args, seed=1) for args in operator.tiny]
    names = max((list(tensors) for tensors in drawn), key=len)
    always = {name for name in names if all(name in tensors for tensors in drawn)}
    found = inspect.signature(operator.reference).parameters
    defaults = [(name, found[name].default) for name in operator.settings]
    constructor = [
        f", {name}" + ("" if value is inspect.Parameter.empty else f"={value!r}") for name, value in defaults
    ]
    return formula + _FORM.format(
        name=operator.name, constructor="".join(constructor), outputs=operator.outputs, given=", ".join(names),
        settings=", ".join(f"{name}={name}" for name in operator.settings),
        tensors=", ".join(name if name in always else f"{name}=None" for name in names),
    )  # fmt: skip


def check(operator: Operator, file: Path, shapes: int) -> tuple[ShapeResult, ...]:
    asked = choose_shapes(operator, "tiny")
    some = replace(asked, shapes=asked.shapes[:shapes])
    return evaluate([some], choose_candidates((), file, "cpu"), Plan(1, "cpu", ProcessLimits(threads=1))).run.results


@pytest.mark.parametrize("name", operators())
def test_it_is_right_on_all_tiny_shapes(name: str, tmp_path: Path) -> None:
    operator, file = require_operator(name), tmp_path / "model.py"
    file.write_text(published_form(operator))
    results = check(operator, file, len(operator.tiny))
    assert len(results) == len(operator.tiny)
    assert {each.shape: each.failure for each in results if not each.is_right} == {}


def test_a_wrong_one_is_wrong(tmp_path: Path) -> None:
    operator = require_operator("moe_topk_gating_softmax")
    file = tmp_path / "model.py"
    swapped = msgspec.structs.replace(operator, outputs=operator.outputs[::-1])
    file.write_text(published_form(swapped))
    (found,) = check(operator, file, 1)
    assert "expected dtype" in (found.failure or "")
