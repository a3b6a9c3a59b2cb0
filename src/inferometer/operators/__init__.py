"""Operators of LLM inference that cost time in production: what they mean, what they take, how fast they can be.

One file an operator, named after it, with its published shapes in a JSON file next to it. `operators()` finds them all.

An `OPERATOR` (`operators/operator.py`) is plain functions: `inputs` and `reference` need torch, `cost` and `work`
don't. `cost` counts as the published catalogue does, `work` is the least that any implementation must do; `bounds.py`
makes bounds of it and a device. What was published stands in `NAME.json` (`shapes.py`), with its source. `draws.py`
draws inputs as production has them, `pieces.py` keeps references of large shapes in memory.
`analyses/operators/published.py` reproduces the published figures, `bounds.py` has ours, `catalogue.py` lists both.
`tests/conformance/test_operators.py` holds every operator to its published figures, to a second implementation in
float64, to an eager run's FLOPs and bytes, and its bound to the deployed times.
"""

from functools import cache

from inferometer.errors import UnknownName
from inferometer.operators.operator import Operator
from inferometer.registry import collect


@cache
def operators() -> dict[str, Operator]:
    """All operators by name, the most important one first."""
    found: dict[str, Operator] = collect("inferometer.operators.catalogue", "OPERATOR", group="inferometer.operators")
    return dict(sorted(found.items(), key=lambda item: (-item[1].catalogue().importance, item[0])))


def require_operator(name: str) -> Operator:
    """The operator of this name.

    Raises:
        UnknownName: There is none; the nearest names come first.
    """
    known = operators()
    if name not in known:
        raise UnknownName("operator", name, list(known))
    return known[name]
