"""Runs a module's tests on mutants: each in a fork of one process, which imports the mutant in the module's place.

A fork begins with Python's libraries imported, but none of ours: so a mutant costs its tests, not two seconds of
imports. Polars starts its threads when it is first used, which is after the fork. Tests that need files next to the
repository are left out: the answer is the same wherever it is asked. Property tests search 20 examples, always the
same, and don't shrink what they find.

A mutant may loop, or wait for what never comes. The first is limited by processor time, which other programs on the
machine don't use up; the second by wall time, and what waited is tried once more, alone, before it counts.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from tests.mutants.changes import Mutant
from tests.mutants.subjects import ROOT, Subject

Outcome = Literal["killed", "timed out", "survived"]
_WARM = ("polars", "numpy", "scipy.stats", "hypothesis", "msgspec", "rich.table", "click", "jinja2", "torch")
_BESIDE = frozenset({"shared_data", "seeds"})  # fixtures of files that a checkout may lack
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
_LOOK_EVERY_S = 0.02
_PATIENCE = 5  # times the processor time that the unchanged module takes, and as many seconds
_WAITS = 3  # times that, by the wall clock


@dataclass(frozen=True)
class CannotRun(Exception):
    """The tests don't pass on the unchanged module, so they show nothing about its mutants."""

    reason: str


def warm_up() -> None:
    """Import what tests use, once for all forks."""
    for name in _WARM:
        with suppress(ImportError):
            importlib.import_module(name)


def time_unchanged(subject: Subject) -> float:
    """Seconds of processor time that the tests take on the module as it is.

    Raises:
        CannotRun: They fail, or all of them skip.
    """
    _, status, used = os.wait4(_start(subject, subject.source(), is_heard=True), 0)
    code = os.waitstatus_to_exitcode(status)
    if code != _PASSED:
        raise CannotRun(f"{subject.module}: its tests fail without any change (pytest exits {code})")
    return used.ru_utime + used.ru_stime


def run_mutants(
    subject: Subject, mutants: Iterable[Mutant], *, usual_s: float, jobs: int
) -> Iterator[tuple[Mutant, Outcome]]:
    """The outcome of each mutant, as it comes; last of those that waited too long, which run again one at a time."""
    limit_s = math.ceil(_PATIENCE * (1 + usual_s))
    waited = []
    for mutant, outcome in _run_once(subject, mutants, limit_s=limit_s, jobs=jobs):
        if outcome is None:
            waited.append(mutant)
        else:
            yield mutant, outcome
    for mutant, outcome in _run_once(subject, waited, limit_s=limit_s, jobs=1):
        yield mutant, outcome or "timed out"


def _run_once(
    subject: Subject, mutants: Iterable[Mutant], *, limit_s: int, jobs: int
) -> Iterator[tuple[Mutant, Outcome | None]]:
    """Outcomes, None of a mutant that didn't end and hadn't used up its processor time."""
    waiting, running = iter(mutants), dict[int, tuple[Mutant, float]]()
    while True:
        while len(running) < jobs and (mutant := next(waiting, None)) is not None:
            running[_start(subject, mutant.source, limit_s=limit_s)] = mutant, time.monotonic()
        if not running:
            return
        time.sleep(_LOOK_EVERY_S)
        for pid, (mutant, began) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                yield mutant, _outcome(status)
            elif time.monotonic() - began > _WAITS * limit_s:
                _end(pid)
                yield mutant, None
            else:
                continue
            del running[pid]


def _outcome(status: int) -> Outcome:
    match os.waitstatus_to_exitcode(status):
        case code if code == _PASSED:
            return "survived"
        case code if code == -signal.SIGXCPU:
            return "timed out"
    return "killed"


def _start(subject: Subject, source: str, *, limit_s: int | None = None, is_heard: bool = False) -> int:
    """Fork; the process that runs the tests on `source`, for `limit_s` seconds of processor time at most."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = _INTERRUPTED
    try:
        os.setpgid(0, 0)  # with what it starts, ended as one
        if limit_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
        if not is_heard:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
        code = _run_tests(subject, source)
    except BaseException:  # noqa: BLE001  of a fork that ends here
        traceback.print_exc()
    finally:
        os._exit(code)


def _run_tests(subject: Subject, source: str) -> int:
    from hypothesis import Phase, settings

    os.chdir(ROOT)
    sys.meta_path.insert(0, _Instead(subject, source))
    settings.register_profile(
        "mutants", deadline=None, derandomize=True, max_examples=20, phases=(Phase.explicit, Phase.generate)
    )
    options = (
        *("--exitfirst", "-qq", "--no-header", "--tb=short", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"),
        *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # Hypothesis is imported already
    )
    own = _Own()
    code = pytest.main([*options, *subject.tests], plugins=[own])
    return int(code) if code != _PASSED or own.passed else _FAILED


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


class _Own:
    """Leaves tests out that need files next to the repository, and counts those that pass."""

    passed = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not _BESIDE & set(getattr(item, "fixturenames", ()))]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports a module from a text instead of its file."""

    def __init__(self, subject: Subject, source: str) -> None:
        self._subject, self._source = subject, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._subject.name:
            return None
        file = str(ROOT / self._subject.module)
        spec = importlib.util.spec_from_loader(name, self, origin=file)
        if spec is not None:
            spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str:
        return self._source

    def get_code(self, fullname: str) -> Any:
        return compile(self._source, str(ROOT / self._subject.module), "exec", dont_inherit=True)
