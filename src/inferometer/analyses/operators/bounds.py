"""Every published shape of an operator with its bounds on a device: one row per shape, and what is odd about it.

Times of deployed kernels were published for one device only; on another there is nothing to divide a bound by, and S is
null. What a launch takes is no bound: a shape whose bound is below it has its S all the same, and the flag
`below_launch`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.analyses.operators.published import DEPLOYED, published_bound_ns
from inferometer.hardware.device import Device
from inferometer.operators.bounds import BOUNDS, Bound, Bounds, bounds_of
from inferometer.operators.operator import Operator
from inferometer.operators.shapes import Shape
from inferometer.operators.work import Work

FLAGS: Mapping[str, str] = {
    "below_launch": "the bound is below what a launch takes, as far as is known: the time may be mostly the launch",
    "fits_l2": "all that it moves fits into the L2 cache: warm, it may be quicker than from memory",
    "above_deployed": "the bound is above the deployed kernel's time: sizes, peaks or cache state aren't as assumed",
    "above_traced": "the bound is above the mean of the traced calls: another shape ran",
    "single_token": "one token",
    "below_launch_floor": "the published bound is below the fastest deployed time of all, 7.44 μs",
    "trace_mean_below_bound": "the traced calls ran faster than the published bound: another shape ran",
    "t_prod_far_from_trace": "the deployed time and the mean of the traced calls differ by more than 2 times",
    "inferred_in_label": "the publisher inferred the ranks",
    "tokens_guessed_from_grid": "the publisher guessed the tokens from a launch grid",
    "label_disagrees_with_kwargs": "the published label tells another size",
    "dtype_differs_from_operator": "not the operator's dtype",
    "no_call_count": "no traced call is known",
}
"""What is odd about a shape: the first four follow from our bounds, the others were published or follow from that."""


_PUBLISHED_AS = {"flops": "w_flops", "written_bytes": "q_written_bytes"}


@dataclass(frozen=True)
class BoundShape:
    """One shape on one device.

    `deployed_ns`: published time of a deployed kernel on this device, or None. `carried`: published figures that no
    formula gives, see `Operator.carried`.
    """

    shape: Shape
    work: Work
    bounds: Bounds
    published_bound_ns: float | None
    deployed_ns: float | None
    carried: tuple[str, ...] = ()

    @property
    def sol_fraction(self) -> float | None:
        """Bound over deployed time; None where one of them isn't known."""
        bound = self.bounds.bound_ns
        return None if bound is None or not self.deployed_ns else bound / self.deployed_ns

    @property
    def published_fraction(self) -> float | None:
        """Published S."""
        bound = self.published_bound_ns
        return None if bound is None or not self.deployed_ns else bound / self.deployed_ns

    def fractions(self) -> dict[Bound, float | None]:
        """Each bound over the deployed time."""
        times = self.bounds.times_ns
        return {bound: None if (time := times[bound]) is None or not self.deployed_ns else time / self.deployed_ns
                for bound in BOUNDS}  # fmt: skip

    def flags(self) -> tuple[str, ...]:
        """Keys of `FLAGS`, ours first."""
        bound, traced = self.bounds.bound_ns, self.shape.traced.mean_ns
        own = {
            "below_launch": self.bounds.is_below_launch,
            "fits_l2": self.bounds.memory_warm_ns is not None,
            "above_deployed": bound is not None and self.deployed_ns is not None and bound > self.deployed_ns,
            "above_traced": bound is not None
            and traced is not None
            and self.deployed_ns is not None
            and bound > traced,
        }
        return (*(flag for flag, holds in own.items() if holds), *self.shape.flags)

    def as_json(self) -> dict[str, Any]:
        """As `--json` has it; times in ns but for `published`, which keeps the publisher's units."""
        work, found = self.work, self.shape.published
        return {
            "index": self.shape.index,
            "label": self.shape.label,
            "args": self.shape.args,
            "flops": work.matrix_flops + work.vector_flops + work.special_ops,
            "bytes": work.moved_bytes,
            "work": {
                "dtype": work.dtype,
                "matrix_flops": work.matrix_flops,
                "vector_flops": work.vector_flops,
                "special_ops": work.special_ops,
                "read_bytes": work.read_bytes,
                "written_bytes": work.written_bytes,
                "chain": work.chain,
                "assumes": list(work.assumes),
            },
            "bounds": {
                **{f"{bound}_ns": self.bounds.times_ns[bound] for bound in BOUNDS},
                "memory_warm_ns": self.bounds.memory_warm_ns,
            },
            "bound_ns": self.bounds.bound_ns,
            "binding": self.bounds.binding,
            "launch_ns": None if self.bounds.launch is None else self.bounds.launch.value,
            "sources": dict(self.bounds.sources),
            "deployed_ns": self.deployed_ns,
            "sol_fraction": self.sol_fraction,
            "sol_fractions": self.fractions(),
            "published": {
                "w_flops": found.flops,
                "q_bytes": found.read_bytes + found.written_bytes,
                "q_read_bytes": found.read_bytes,
                "q_written_bytes": found.written_bytes,
                "t_sol_us": {name: time / 1000 for name, time in found.t_sol_ns.items()},
                "t_prod_us": found.t_prod_ns[DEPLOYED] / 1000,
                "implementation": found.implementation,
                "s": found.sol_fraction(DEPLOYED),
                "carried": [_PUBLISHED_AS[name] for name in self.carried],
            },
            "traced": {
                "frameworks": list(self.shape.traced.frameworks),
                "tensor_parallel": self.shape.traced.tensor_parallel,
                "calls": self.shape.traced.calls,
                "mean_ns": self.shape.traced.mean_ns,
            },
            "flags": list(self.flags()),
        }


def bound_shapes(operator: Operator, device: Device) -> Sequence[BoundShape]:
    """All published shapes of `operator`, in the order of their index."""
    return [bound_shape(operator, shape, device) for shape in operator.catalogue().shapes]


def bound_shape(operator: Operator, shape: Shape, device: Device) -> BoundShape:
    """One of them."""
    work = operator.work(**shape.args)
    return BoundShape(
        shape,
        work,
        bounds_of(work, device),
        published_bound_ns(operator, shape, device),
        shape.published.t_prod_ns.get(device.name),
        operator.carried(shape.args),
    )
