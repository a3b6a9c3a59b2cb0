"""The check of every operator refuses wrong kernels and accepts right ones: docs/kernel-checks.md shows them."""

import importlib
import re
from typing import TYPE_CHECKING

import pytest

from inferometer.operators import operators

if TYPE_CHECKING:
    from tests.bench.mutants.trials import Result

NAMES = list(operators())
LEAST_WRONG = 8  # of an operator's own
SPOILT = {"zero output", "stale output", "stale input", "no tokens", "contract"}  # of generic faults, for all operators
_FIGURE = re.compile(r"[<>]?(\d+(?:\.\d+)?)×")


def result_of(name: str) -> "Result":
    pytest.importorskip("torch", reason="torch isn't installed")
    from tests.bench.mutants import trials

    return trials.result_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_wrong_kernel_is_refused(name: str) -> None:
    assert result_of(name).survivors == []


@pytest.mark.parametrize("name", NAMES)
def test_every_right_kernel_is_accepted(name: str) -> None:
    result = result_of(name)
    assert result.rejected == []
    assert len(result.right) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_fault_is_tried_or_declared_inapplicable(name: str) -> None:
    result = result_of(name)
    from tests.bench.mutants.shared import KINDS

    tried = {trial.kind for trial in result.own}
    tried |= {trial.kind for trial in result.wrong if trial.kind in SPOILT | {"identity"}}
    assert len(result.own) >= LEAST_WRONG
    assert tried | set(result.inapplicable) == set(KINDS)
    assert tried & set(result.inapplicable) == set()


@pytest.mark.parametrize("name", NAMES)
def test_hard_cases_find_what_usual_inputs_do_not(name: str) -> None:
    result = result_of(name)
    assert result.only_hard
    module = importlib.import_module(f"tests.bench.mutants.{name}")
    tried = {trial.name for trial in result.wrong}
    assert not tried & set(getattr(module, "HARMLESS", {}))
    assert set(getattr(module, "ONLY_IN", {})) <= set(module.RIGHT)


def test_the_page_is_what_is_found() -> None:
    """Words and counts are the same; errors differ a little from CPU to CPU."""
    result_of(NAMES[0])
    from tests.bench.kills import PAGE, render_page

    made, written = render_page(), PAGE.read_text("utf-8")
    assert _FIGURE.sub("×", made) == _FIGURE.sub("×", written), "python -m tests.bench.kills"
    for own, other in zip(_FIGURE.findall(made), _FIGURE.findall(written), strict=True):
        assert 0.5 <= float(own) / float(other) <= 2, "python -m tests.bench.kills"
