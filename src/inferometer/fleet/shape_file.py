"""Representatives as a file of workloads, as `roofline --to-bench` writes one, each with its weight."""

from collections.abc import Sequence

from inferometer.bench.exchange.traced_shapes import TracedShape, encode_shapes
from inferometer.errors import InputError
from inferometer.fleet.representatives import Represented
from inferometer.units import format_counted, format_duration, format_share


def encode_representatives(found: Sequence[Represented], source: str) -> bytes:
    """A line for each representative, the weightiest operator first.

    Raises:
        InputError: There is none: no op of the fleet is an operator of the catalogue.
    """
    shapes = [
        TracedShape(each.operator, each.args, _label(each.shapes, each.calls, each.total_ns, each.weight), each.weight)
        for operator in found
        for each in operator.representatives
    ]
    if not shapes:
        raise InputError(
            f"{source}: no op is an operator of the catalogue with the same types",
            hint="`inferometer operators` lists them; `inferometer fleet FLEET shapes` has all ops.",
        )
    return encode_shapes(shapes)


def _label(shapes: int, calls: int, total_ns: int, weight: float) -> str:
    stands = f"for {format_counted(shapes, 'shape')}, {format_counted(calls, 'call')}"
    return f"{format_share(weight)} of the fleet, {stands}, {format_duration(total_ns)}"
