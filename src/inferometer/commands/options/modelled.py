"""The options that name a model and what it ran on: for bounds on the kernels of an engine's log."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from inferometer.commands.base import TraceArgument
from inferometer.commands.options.selection import Number, renamed_option
from inferometer.commands.settings import is_setting
from inferometer.errors import InputError

if TYPE_CHECKING:
    from inferometer.analyses.model.bounds import ModelBounds
    from inferometer.architectures import Model
    from inferometer.hardware.device import Device
    from inferometer.trace.trace import Trace

_GIGA = 10**9
_USUAL_BITS = 16.0


class Modelled(msgspec.Struct, frozen=True):
    """What was asked for: a model, and what to bound its kernels by."""

    config: str | None
    bandwidths_gb_per_s: tuple[float, ...] = ()
    weight_bits: float = _USUAL_BITS
    kv_bits: float = _USUAL_BITS
    hardware: str | None = None

    def model(self) -> "Model | None":
        """The model that `--model-config` names; None where that isn't given.

        Raises:
            InputError: There is no such file or model, or the file is no configuration.
        """
        from inferometer.architectures import require_model

        return None if self.config is None else require_model(self.config)

    def ran_on(self) -> "Device | None":
        """The device that `--hardware` names; None where that isn't given.

        Raises:
            InputError: None of ours, or several may be meant.
        """
        from inferometer.hardware.known import require_device

        return None if self.hardware is None else require_device(self.hardware)

    def bandwidths(self) -> tuple[float, ...]:
        """Bytes per second."""
        return tuple(each * _GIGA for each in self.bandwidths_gb_per_s)

    def bounds(
        self,
        source: TraceArgument,
        config: str,
        *,
        rank: int | None,
        run: int | None,
        by_layer: bool,
        top: int | None,
    ) -> "ModelBounds":
        """The kernels of `source` next to the work of the model that `config` names.

        Raises:
            InputError: The file, the model or the device isn't there, or they don't go together.
        """
        from inferometer.analyses.model.bounds import NEEDED, model_bounds
        from inferometer.analyses.model.pass_work import Sizes
        from inferometer.architectures import require_model

        model, ran_on = require_model(config), self.ran_on()
        return model_bounds(
            source.open(NEEDED, rank=rank),
            model,
            device=ran_on,
            bandwidths=self.bandwidths(),
            sizes=Sizes(weight=self.weight_bits / 8, kv=self.kv_bits / 8),
            run=run,
            by_layer=by_layer,
            top=top,
        )

    def refuse_alone(self) -> None:
        """Refuse options that say something of a model, without one.

        Raises:
            click.UsageError: There are some.
        """
        if self.config is None and (self.bandwidths_gb_per_s or {self.weight_bits, self.kv_bits} != {_USUAL_BITS}):
            raise click.UsageError("--bandwidth, --weight-bits and --kv-bits need --model-config.")

    def refuse_unused(self, *traces: "Trace") -> None:
        """Refuse a model or a bandwidth for traces none of which they say something about; a setting may stand by.

        Raises:
            InputError: No trace has sums by kernel and step.
        """
        given = {"model_config": self.config is not None, "bandwidth": bool(self.bandwidths_gb_per_s)}
        asked = [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given and not is_setting(name)]
        if asked and not any(_has_printed_sums(trace) for trace in traces):
            raise InputError(
                f"{traces[0].facts.source}: expected sums by kernel and step, as a WebGPU engine's log has them, "
                "found none",
                hint=f"Leave {' and '.join(asked)} out.",
            )


def _has_printed_sums(trace: "Trace") -> bool:
    import polars as pl

    return trace.totals.filter(pl.col("step").is_not_null()).head(1).collect().height > 0


def model_options(*, sizes: bool, renamed: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--model-config, --hardware and --bandwidth, with `sizes` also --weight-bits and --kv-bits, as `modelled`.

    `renamed`: --device is refused with a hint; not where the command has a --device of its own.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(
            *args: Any,
            model_config: str | None,
            bandwidth: Iterable[float],
            weight_bits: float = _USUAL_BITS,
            kv_bits: float = _USUAL_BITS,
            hardware: str | None,
            **kwargs: Any,
        ) -> Any:
            asked = Modelled(model_config, tuple(bandwidth), weight_bits, kv_bits, hardware)
            return function(*args, modelled=asked, **kwargs)

        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        decorated: Callable[..., Any] = run
        for option in reversed(_MODEL + ((_RENAMED,) if renamed else ()) + (_SIZES if sizes else ())):
            decorated = option(decorated)
        return decorated

    return declare


_RENAMED = renamed_option("--device", "--hardware", "it names a device of our data, see `inferometer hardware`")
_BITS = Number(min=1, max=64)
_MODEL = (
    click.option("--model-config", metavar="FILE|NAME", help=(
        "Of an engine's log: bytes, FLOPs, bounds and S of each kernel, for this config.json or model name.")),
    click.option("--hardware", metavar="NAME", help="What it ran on, for bounds: 'Apple M3'."),
    click.option("--bandwidth", type=Number(min=0.001, max=1e6), multiple=True, metavar="GB/S",
                 help="Bound by this memory bandwidth, or several. Default: the device's, else 100, 200, 400."),
)  # fmt: skip
_SIZES = (
    click.option("--weight-bits", type=_BITS, default=_USUAL_BITS, show_default=True, metavar="N",
                 help="Bits of a weight."),
    click.option("--kv-bits", type=_BITS, default=_USUAL_BITS, show_default=True, metavar="N",
                 help="Bits of a number in the KV cache."),
)  # fmt: skip
