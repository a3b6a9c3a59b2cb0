"""Inputs on which wrong kernels fail that get usual ones right: zeros, the ends of a type's range, NaN, nothing at all.

An operator declares its hard cases (`Operator.hard`), each with what its contract wants; `bench` runs them after the
usual cases. They are few and tiny: `few` cuts the arguments down to a handful of tokens, and keeps what a kernel may be
made for (hidden size, heads, experts). What a right kernel may do either way is left out, with the reason next to it.

`change` gets the tensors that `inputs` drew, with their arguments, and gives those that differ, as new tensors.
The functions here make such changes; all of them leave the drawn tensors as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Mapping[str, Tensor]
    Change = Callable[[Tensors, Mapping[str, Any]], Tensors]
    LeftOpen = Callable[[Tensors, Tensors, Tensors, Mapping[str, Any]], Tensors]

KINDS = ("zeros", "large numbers", "tiny numbers", "NaN", "infinity", "no tokens")
"""What every operator of the catalogue has a case of, or says why not. Others: offset, ties, masked, one expert."""

NORM_RANGE = 2.0**50
"""Numbers up to about this may be squared and added up in float32, in rows of any length."""

UNSAID_INFINITY = "whether an infinity stays one or becomes NaN depends on the order of right operations"
NAN_IN_MAXIMUM = "a GPU's maximum passes over NaN, so the scale of its row and what it makes of NaN in fp8 differ"
INTEGERS_ONLY = "integers only"


def _as_they_are(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    return tensors


def _same(args: Mapping[str, Any]) -> Mapping[str, Any]:
    return args


class HardCase(msgspec.Struct, frozen=True):
    """One kind of hard inputs.

    Attributes:
        kind: One of `KINDS`, or another word.
        name: As the failure names it: "rows of zeros".
        wanted: What the contract wants.
        change: Of the drawn tensors, by name: those that differ.
        args: Arguments over those of the shape.
        may_raise: Whether a kernel may refuse it with an exception; what it answers must be right all the same.
        left_open: As `Operator.left_open`, for this case alone.
    """

    kind: str
    name: str
    wanted: str
    change: "Change" = _as_they_are
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)
    may_raise: bool = False
    left_open: "LeftOpen | None" = None


class HardCases(msgspec.Struct, frozen=True):
    """What an operator declares.

    Attributes:
        cases: In the order in which they run.
        few: Makes arguments of a shape those of a few tokens of it.
        left_out: Kinds that no case is of, with the reason.
    """

    cases: tuple[HardCase, ...] = ()
    few: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _same
    left_out: Mapping[str, str] = msgspec.field(default_factory=dict)

    def draw(
        self, case: HardCase, inputs: "Callable[..., dict[str, Tensor]]", args: Mapping[str, Any], **how: Any
    ) -> "tuple[dict[str, Tensor], dict[str, Any]]":
        """The tensors of a case, and the arguments that they are of; `args` are those of the shape, or fewer tokens'.

        `how`: seed and device.
        """
        given = {**args, **case.args}
        drawn = inputs(**given, **how)
        return {**drawn, **case.change(drawn, given)}, given


def at_most(**limits: int) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """`few`: each argument at most so large; of a list, three entries at most that large."""

    def few(args: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**args, **{name: _cut(args[name], limit) for name, limit in limits.items() if name in args}}

    return few


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, int):
        return min(value, limit)
    return value if value is None else [min(each, limit) for each in value[:3]]


def few_rows(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """`few` of an argument `shape`: eight of the first dimension."""
    shape = args["shape"]
    return {**args, "shape": [min(shape[0], 8), *shape[1:]]}


def both(*changes: "Change") -> "Change":
    """One change after the other."""

    def change(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
        found = dict(tensors)
        for each in changes:
            found |= each(found, args)
        return found

    return change


def zeroed(*names: str) -> "Change":
    """The first and every other row (of the first dimension) zero."""
    return _edited(names, _zero_rows)


def _zero_rows(tensor: "Tensor") -> None:
    import torch

    bits = tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
    bits[::2] = 0


def filled(value: float, *names: str) -> "Change":
    """All numbers equal."""
    return _edited(names, lambda tensor: tensor.fill_(value))


def scaled(factor: float, *names: str) -> "Change":
    """Each number times `factor`."""
    return _edited(names, lambda tensor: tensor.mul_(factor))


def enlarged(*names: str, room: float = 1.0, most: float = float("inf")) -> "Change":
    """Times a power of 2 that takes the largest magnitude to less than the dtype's largest number over `room`.

    `most` is where it ends for types of a wider range than float32's squares have.
    """
    import math

    def enlarge(tensor: "Tensor") -> None:
        import torch

        if tensor.numel():
            limit = min(float(torch.finfo(tensor.dtype).max) / room, most)
            largest = float(tensor.abs().nan_to_num(0.0, 0.0, 0.0).max())
            tensor.mul_(2.0 ** math.floor(math.log2(limit / largest)) if largest else 1.0)

    return _edited(names, enlarge)


def shrunk(*names: str, fp16: float = 2.0**-8) -> "Change":
    """Numbers whose squares float32 doesn't have, but well above what GPUs flush; of fp16 times `fp16`."""

    def shrink(tensor: "Tensor") -> None:
        tensor.mul_(fp16 if str(tensor.dtype) == "torch.float16" else 2.0**-90)

    return _edited(names, shrink)


def spoiled(value: float, name: str, at: Sequence[int] | None = None) -> "Change":
    """One number is `value`: in the middle, or at `at`, negative places from the end."""

    def spoil(tensor: "Tensor") -> None:
        import torch

        if not tensor.numel():
            return
        place = tuple(size // 2 for size in tensor.shape) if at is None else tuple(at)
        if tensor.element_size() > 1:
            tensor[place] = value
        else:
            tensor.view(torch.uint8)[place] = torch.tensor(value).to(tensor.dtype).view(torch.uint8)

    return _edited((name,), spoil)


def _edited(names: Sequence[str], edit: "Callable[[Tensor], Any]") -> "Change":
    def change(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
        found = {name: tensors[name].clone() for name in names if name in tensors}
        for tensor in found.values():
            edit(tensor)
        return found

    return change


def nan_may_fill_rows(
    found: "Tensors", wanted: "Tensors", tensors: "Tensors", args: Mapping[str, Any]
) -> "dict[str, Tensor]":
    """`left_open`: where a row (last dimension) has a NaN, the rest of it may be NaN too."""
    del tensors, args
    return {
        name: right.where(~(found[name].isnan() & right.isnan().any(-1, keepdim=True)), found[name])
        if right.dtype.is_floating_point and right.element_size() > 1
        else right
        for name, right in wanted.items()
    }


def no_tokens(*names: str, **args: Any) -> HardCase:
    """A call without tokens, as an idle rank of a data-parallel engine makes it: `args` say so, or `names` lose all."""

    def empty(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
        return {name: tensors[name][:0] for name in names}

    wanted = "outputs without rows; or an exception, since some kernels can't be launched for none"
    return HardCase("no tokens", "no tokens", wanted, empty, args=args, may_raise=True)
