"""Families of ops: each file of this folder declares one, and `model_of` finds the model of an op by its name."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import msgspec

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.work import Work
from inferometer.registry import collect

Model = Callable[[OpCall], Work]
"""The work of a call; raises `Unmodelled` with the reason where that can't be known."""

_NOT_SO_CALLED: Final = "its recorded arguments are none that it can be called with"
_MOST: Final = 2**62  # FLOPs or bytes of one call: more is damage, and fits no table
_PROFILED = re.compile(r"^sglang_profiler::(.+?)_\d+$")  # SGLang numbers the functions that it wraps


class OpFamily(msgspec.Struct, frozen=True):
    """Ops that are counted alike.

    Attributes:
        name: Of the family, as tables group by it.
        models: By name of the op.
        prefixes: Models of ops whose names go on differently, by what they begin with.
        covering: Ops among them that do all that the ops do which they call: their model stands for launches of such
            that have no model of their own.
        looks_inside: Ops, or what their names begin with, whose model asks for the calls that they make.
        forward_ops: For steps of autograd, by what their names begin with, what the name of the op begins with that
            made them: their model asks for that call, too.
        needs_lengths: Ops, or what their names begin with, whose model asks how long the sequences are that they serve.
        reasons: Why an op can't be modelled, by name: what it does isn't decided by its arguments.
    """

    name: str
    models: Mapping[str, Model]
    prefixes: Mapping[str, Model] | None = None
    covering: frozenset[str] = frozenset()
    looks_inside: frozenset[str] = frozenset()
    forward_ops: Mapping[str, str] = msgspec.field(default_factory=dict)
    needs_lengths: frozenset[str] = frozenset()
    reasons: Mapping[str, str] | None = None


class Found(msgspec.Struct, frozen=True):
    """The model of an op: `model` is None where `reason` says why there can't be one."""

    family: str
    model: Model | None
    reason: str = ""
    covers: bool = False
    looks_inside: bool = False
    forward_op: str | None = None
    needs_lengths: bool = False

    def work(self, call: OpCall) -> Work:
        """What the call must do.

        Raises:
            Unmodelled: That can't be known; arguments that no call of the op can have are a reason, too.
        """
        if self.model is None:
            raise Unmodelled(self.reason)
        try:
            work = self.model(call)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Unmodelled(_NOT_SO_CALLED) from error
        if min(work.matrix_flops, work.vector_flops, work.special_ops, work.read_bytes, work.written_bytes) < 0:
            raise Unmodelled(_NOT_SO_CALLED)
        arithmetic = work.vector_flops + work.special_ops
        if max(work.matrix_flops, arithmetic, work.read_bytes, work.written_bytes) > _MOST:
            raise Unmodelled(_NOT_SO_CALLED)
        return work


@cache
def model_of(op: str) -> Found | None:
    """The model of the op with this name; None where there is none."""
    name = plain_name(op)
    for family in _families().values():
        if name in family.models:
            return Found(
                family.name,
                family.models[name],
                covers=name in family.covering,
                looks_inside=name in family.looks_inside,
                needs_lengths=name in family.needs_lengths,
            )
    for family in _families().values():
        for prefix, model in (family.prefixes or {}).items():
            if name.startswith(prefix):
                return Found(
                    family.name,
                    model,
                    looks_inside=prefix in family.looks_inside,
                    forward_op=family.forward_ops.get(prefix),
                    needs_lengths=prefix in family.needs_lengths,
                )
    for family in _families().values():
        if family.reasons and (reason := _reason(name, family.reasons)):
            return Found(family.name, None, reason)
    return None


def plain_name(op: str) -> str:
    """The op's name without the number that SGLang's profiler gives the functions that it wraps."""
    wrapped: Final = _PROFILED.match(op)
    return f"sglang_profiler::{wrapped[1]}" if wrapped else op


def modelled_ops() -> dict[str, str]:
    """Every op that has a model, with its family."""
    return {op: family.name for family in _families().values() for op in sorted(family.models)}


def _reason(name: str, reasons: Mapping[str, str]) -> str | None:
    """That of the name, or of what it begins with where the key ends in `*`."""
    return next(
        (why for key, why in reasons.items() if key == name or (key[-1] == "*" and name.startswith(key[:-1]))), None
    )


@cache
def _families() -> dict[str, OpFamily]:
    found: dict[str, OpFamily] = collect("inferometer.operators.framework", "FAMILY")
    return found
