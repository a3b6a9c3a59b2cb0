"""The weights of a transformers model, taken out of its modules one by one: projections and norms, ready to be called.

Source: the modules of transformers 4.51 to 5.23; attributes, not code. A weight that nobody took is an error: a family
that we don't know can't pass for one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inferometer.engines import arms
from inferometer.engines.paths import scope
from inferometer.errors import InputError

_ACTIVATIONS = {"silu": "silu_mul", "swish": "silu_mul", "gelu_pytorch_tanh": "gelu_mul"}


class Reader:
    """Takes the weights out of modules, and knows which were taken."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self._taken: set[int] = set()

    def take(self, weight: Any) -> Any:
        """The same weight; None stays None."""
        self._taken.add(id(weight))
        return weight

    def linear(self, module: Any, name: str) -> "Linear":
        """The module's projection of this name, which is a path."""
        found = getattr(module, name)
        return Linear(name, self.take(found.weight), self.take(getattr(found, "bias", None)))

    def norm(self, module: Any, name: str) -> "Norm":
        """The module's norm of this name. Gemma's scale by 1 + weight, and round last."""
        found = getattr(module, name)
        kind = type(found).__name__
        eps = getattr(found, "variance_epsilon", getattr(found, "eps", None))
        if not kind.endswith("RMSNorm") or eps is None:
            raise InputError(f"{name}: expected a root mean square norm, found {kind}")
        is_gemma = kind.startswith("Gemma")
        return Norm(name, self.take(found.weight), float(eps), 1.0 if is_gemma else 0.0, is_gemma)

    def optional_norm(self, module: Any, name: str) -> "Norm | None":
        """As `norm`; None where there is none."""
        return self.norm(module, name) if getattr(module, name, None) is not None else None

    def activation(self) -> str:
        """The operator between two projections."""
        config = self.config
        name = getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", None)
        if name not in _ACTIVATIONS:
            raise InputError(f"{config.model_type}: expected an activation of {', '.join(_ACTIVATIONS)}, found {name}")
        return _ACTIVATIONS[name]

    def require_all(self, model: Any, parts: Iterable[Any]) -> None:
        """Raise InputError where a weight of one of these modules wasn't taken."""
        left = [name for part in parts for name, weight in part.named_parameters() if id(weight) not in self._taken]
        if left:
            raise InputError(
                f"{type(model).__name__} has weights that this engine can't place: {', '.join(left[:4])}",
                hint="Its modules aren't in the form of the families that the engine knows.",
            )


@dataclass(frozen=True)
class Linear:
    """A projection."""

    name: str
    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        """[..., N] of x [..., K]."""
        return arms.call("linear", x, self.weight, self.bias, site=self.name)


@dataclass(frozen=True)
class Norm:
    """A root mean square norm."""

    name: str
    weight: Any
    eps: float
    offset: float
    late_cast: bool

    def __call__(self, x: Any) -> Any:
        """Like `x`, over its last dimension."""
        return arms.call("rms_norm", x, self.weight, site=self.name, **self._settings)

    def after_add(self, x: Any, residual: Any, addition: str) -> tuple[Any, Any]:
        """The norm of the sum, and the sum: one call where the arm has another backend than the base for both.

        Otherwise the sum is a path of its own, named `addition`.
        """
        if arms.in_use().backend_of("add_rms_norm") != arms.BASE:
            normed, total = arms.call("add_rms_norm", x, residual, self.weight, site=self.name, **self._settings)
            return normed, total
        with scope(addition):
            total = residual + x
        return self(total), total

    @property
    def _settings(self) -> dict[str, Any]:
        return {"eps": self.eps, "offset": self.offset, "late_cast": self.late_cast}
