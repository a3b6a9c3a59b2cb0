"""Builds the Triton kernels of a candidate or a backend for GPU architectures, without a GPU.

The candidate's function is called on CPU tensors that the operator draws; launches are compiled with the types and
values of the real arguments, and not run, so its answer is not looked at and kernels whose arguments depend on
another kernel's output may be missed. A candidate with a list `BUILDS` has those kernels compiled instead.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inferometer.backends import backends, require_backend
from inferometer.bench.builds.gate import check_builds
from inferometer.bench.builds.limits import ARCHITECTURES
from inferometer.bench.builds.processes import build_on
from inferometer.bench.builds.result import Builds
from inferometer.bench.candidates import Candidate
from inferometer.errors import InputError, Unavailable, UnknownName
from inferometer.operators import require_operator
from inferometer.operators.operator import Operator
from inferometer.operators.work import Work
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

TIME_LIMIT_S = 300.0
"""For all kernels of one architecture: one takes 0.1 to 0.5 s, a large one that spills 3 s, so about a hundred
configurations of an autotuner."""


def build_candidate(
    path: str | Path,
    operator: Operator,
    args_list: Sequence[Mapping[str, Any]],
    architectures: Sequence[str],
    *,
    time_limit_s: float = TIME_LIMIT_S,
) -> Builds:
    """Compiles what a candidate launches, and says what the gate finds.

    What is wrong with the candidate (a syntax error, no such function, a kernel that doesn't compile, no end) is part
    of the result.

    Args:
        path: A Python file with a function named as the operator, called as the operator's reference is.
        operator: One of the catalogue, or of a plugin.
        args_list: Arguments of the operator's `inputs`, one mapping a call; their tensors must fit into memory.
        architectures: Of `ARCHITECTURES`, each built once.
        time_limit_s: For each architecture.

    Raises:
        InputError: There is no such file, nothing to build, or arguments that the operator doesn't have.
        UnknownName: No such architecture, or an operator that isn't registered.
        Unavailable: Triton, PyTorch or a tool of theirs isn't here.
    """
    file = Path(path).resolve()
    _check_input(operator, args_list, architectures)
    if not file.is_file():
        raise InputError(f"{file}: expected a Python file, found {'a folder' if file.is_dir() else 'nothing'}")
    return _build(Candidate(str(path), file), operator, args_list, architectures, time_limit_s)


def build_backend(
    name: str,
    operator: Operator,
    args_list: Sequence[Mapping[str, Any]],
    architectures: Sequence[str],
) -> Builds:
    """The same for the kernels of a backend that can be compiled here.

    Raises:
        InputError: The backend has no kernel of the operator, or none that is compiled here; or as `build_candidate`.
        UnknownName: No such backend, or as `build_candidate`.
        Unavailable: As `build_candidate`.
    """
    backend = require_backend(name)
    _check_input(operator, args_list, architectures)
    if backend.build is None:
        able = ", ".join(each.name for each in backends().values() if each.build is not None)
        raise InputError(f"{name}: its kernels aren't Triton's, or come compiled", hint=f"To build are: {able}.")
    if operator.name not in backend.operators:
        has = ", ".join(sorted(backend.operators))
        raise InputError(f"{name} has no kernel for {operator.name}", hint=f"It has {has}.")
    return _build(Candidate(name), operator, args_list, architectures, TIME_LIMIT_S)


def _build(
    candidate: Candidate,
    operator: Operator,
    args_list: Sequence[Mapping[str, Any]],
    architectures: Sequence[str],
    time_limit_s: float,
) -> Builds:
    works = [_work_of(operator, args) for args in args_list]
    _check_installed()
    wanted = tuple(dict.fromkeys(architectures))
    with ThreadPoolExecutor(min(len(wanted), os.cpu_count() or 1)) as pool:
        running = [
            pool.submit(build_on, architecture, candidate, operator.name, args_list, time_limit_s=time_limit_s)
            for architecture in wanted
        ]
        builds = tuple(each.result() for each in running)
    findings = check_builds(builds, operator.name, works)
    return Builds(candidate.name, operator.name, tuple(args_list), builds, findings, Losses(ALL_TABLES))


def _work_of(operator: Operator, args: Mapping[str, Any]) -> Work:
    try:
        return operator.work(**args)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"{operator.name}: {dict(args)}: {error}") from None


def _check_input(operator: Operator, args_list: Sequence[Mapping[str, Any]], architectures: Sequence[str]) -> None:
    require_operator(operator.name)  # other processes know it by its name
    for architecture in architectures:
        if architecture not in ARCHITECTURES:
            raise UnknownName("architecture", architecture, ARCHITECTURES)
    if not architectures or not args_list:
        raise InputError(f"expected something to build, found no {'shapes' if architectures else 'architectures'}")


def _check_installed() -> None:
    for package in ("torch", "triton"):
        if find_spec(package) is None:
            raise Unavailable(f"{package} is not installed", hint="pip install 'inferometer[torch]'")
