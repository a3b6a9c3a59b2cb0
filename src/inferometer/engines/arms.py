"""Which backend runs each operator of a model: a user's choice, and the one place where every operator is called.

`call` asks the backend of the arm in use, and where that refuses a call, plain PyTorch takes it; what really ran is
noted for the call path, with the reason. A backend that raises isn't replaced: a wrong kernel must not look right.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from inferometer.backends import backends
from inferometer.backends.backend import Backend, DecoderKernel, DecoderKernels
from inferometer.engines.paths import scope
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators.decoder.contracts import CONTRACTS

BASE = "torch"
_GROUPS: Mapping[str, tuple[str, ...]] = {"attention": ("attention_prefill", "attention_decode")}


@dataclass(frozen=True)
class Arm:
    """A name, and of each operator the backend that is asked first; others run on `torch`.

    `refused` says, by operator, why a backend that the user named doesn't have it.
    """

    name: str
    backends: Mapping[str, Backend]
    refused: Mapping[str, str] = field(default_factory=dict)

    def backend_of(self, operator: str) -> str:
        """The name of the backend that is asked first."""
        found = self.backends.get(operator)
        return BASE if found is None else found.name


def are_interpreted(arms: Iterable[Arm], device: str) -> bool:
    """Whether kernels of any of them run in Triton's interpreter, so that times say nothing."""
    return device == "cpu" and any(backend.interpreted for arm in arms for backend in arm.backends.values())


def known_backends() -> dict[str, Backend]:
    """Those that have kernels for a decoder, by name."""
    return {name: backend for name, backend in backends().items() if backend.decoder is not None}


def decoder_of(backend: Backend) -> DecoderKernels:
    """What the backend has of a decoder's operators.

    Raises:
        InputError: It has none of them.
    """
    if backend.decoder is None:
        raise InputError(f"{backend.name} has no kernels for a decoder's operators")
    return backend.decoder


def parse_arm(text: str, device: str = "cpu") -> Arm:
    """The arm of `triton`, or of `rms_norm=triton,attention=compile`; its name is the text.

    Raises:
        UnknownName: No such backend or operator.
        InputError: An operator twice, or a named operator that the named backend lacks.
        Unavailable: A backend that can't run on `device`.
    """
    if "=" not in text:
        backend = _backend(text, device)
        lacking = {name: f"{text} has no {name}" for name in CONTRACTS if name not in decoder_of(backend).operators}
        return Arm(text, {name: backend for name in CONTRACTS if name in decoder_of(backend).operators}, lacking)
    chosen: dict[str, Backend] = {}
    for part in text.split(","):
        name, equals, backend_name = (each.strip() for each in part.partition("="))
        if not equals:
            raise InputError(f'"{part.strip()}" in "{text}": expected OPERATOR=BACKEND')
        for operator in _operators(name):
            if operator in chosen:
                raise InputError(f'"{text}": {operator} has two backends')
            backend = _backend(backend_name, device)
            if operator not in (has := decoder_of(backend).operators):
                raise InputError(f"{backend_name} has no {operator}", hint=f"It has: {', '.join(sorted(has))}")
            chosen[operator] = backend
    return Arm(text, chosen)


def _operators(name: str) -> tuple[str, ...]:
    if name in _GROUPS:
        return _GROUPS[name]
    if name not in CONTRACTS:
        raise UnknownName("operator of a model", name, (*CONTRACTS, *_GROUPS))
    return (name,)


def _backend(name: str, device: str) -> Backend:
    known = known_backends()
    if name not in known:
        raise UnknownName("backend", name, known)
    decoder = decoder_of(known[name])
    why = decoder.unavailable(device)
    if why is not None:
        raise Unavailable(f"{name} can't run on {device}: {why}")
    decoder.prepare(device)
    return known[name]


TORCH_ONLY = Arm(BASE, {})
_in_use: ContextVar[Arm] = ContextVar("inferometer_arm", default=TORCH_ONLY)


@contextmanager
def using(arm: Arm) -> Iterator[Arm]:
    """Operators that are called in this context run as `arm` says."""
    token = _in_use.set(arm)
    try:
        yield arm
    finally:
        _in_use.reset(token)


def in_use() -> Arm:
    """The arm of this context."""
    return _in_use.get()


@contextmanager
def checking(check: "Check") -> Iterator[None]:
    """Every operator's call in this context goes to `check`, whose answer is the answer."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


class Check:
    """Sees every call of an operator; the default answer is that of the arm in use."""

    def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
        """The operator's answer, with which the model goes on."""
        return run(_in_use.get(), operator, args, settings)[0]


_check: ContextVar[Check | None] = ContextVar("inferometer_check", default=None)


def call(operator: str, *args: Any, site: str | None = None, **settings: Any) -> Any:
    """An operator's answer by the arm in use, as one call of the path `site` (by default the operator's name)."""
    with scope(site or operator, operator) as here:
        check = _check.get()
        if check is not None:
            return check(operator, args, settings)
        out, here.backend = run(_in_use.get(), operator, args, settings)
        here.answered(operator, args, settings, out)
        return out


def run(arm: Arm, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> tuple[Any, str]:
    """An operator's answer by `arm`, and what ran: `triton`, or `torch (triton: head size 80)`."""
    chosen = arm.backends.get(operator)
    asked = _base(operator) if chosen is None else load(chosen, operator)
    why = asked.refuses(*args, **settings)  # plain PyTorch never does: asking it, too, takes all arms as long
    if chosen is None:
        lacking = arm.refused.get(operator)
        return asked.call(*args, **settings), BASE if lacking is None else f"{BASE} ({lacking})"
    if why is None:
        return asked.call(*args, **settings), chosen.name
    return _base(operator).call(*args, **settings), f"{BASE} ({chosen.name}: {why})"


@cache
def load(backend: Backend, operator: str) -> DecoderKernel:
    """A backend's implementation, loaded once."""
    return decoder_of(backend).load(operator)


@cache
def _base(operator: str) -> DecoderKernel:
    return load(known_backends()[BASE], operator)
