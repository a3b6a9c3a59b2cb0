"""Every launch of a Triton kernel becomes a compilation, reported once for each distinct binary.

Triton's own `JITFunction.run` does it, asked to warm up: types, divisibility and values that are 1 are recognised from
the real arguments, as in a launch. An autotuner's configurations are all compiled, none is timed.
"""

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inferometer.bench.builds.cute_dsl import build_of
from inferometer.bench.builds.disassembly import measured
from inferometer.bench.builds.events import Began, Built, Events, Launched, Refused
from inferometer.bench.builds.limits import ArchitectureLimits
from inferometer.bench.builds.record import KernelBuild
from inferometer.bench.builds.stub_driver import StubDriver, call_once
from inferometer.errors import clean

_LONGEST_MESSAGE = 4_000
_TOLD = 20  # lines of a compiler's messages that are kept


class Recorder:
    """Compiles and reports. `case` is the call that is going on."""

    def __init__(
        self, limits: ArchitectureLimits, architecture: str, events: Events, messages: str, driver: StubDriver
    ) -> None:
        self.case: int | None = None
        self._limits, self._architecture, self._events, self._driver = limits, architecture, events, driver
        self._messages = Path(messages)
        self._tuning = False
        self._seen: dict[str, set[int | None]] = {}
        self._refused: set[tuple[str, str, str]] = set()

    def install(self) -> None:
        """From here on nothing of Triton's is launched in this process."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.driver import driver
        from triton.runtime.jit import JITFunction

        driver.set_active(self._driver)
        own = JITFunction.run

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            asked = None if warmup or grid is None else _grid_of(function, grid, args, kwargs)
            call = lambda: own(function, *args, grid=grid, warmup=True, **kwargs)  # noqa: E731
            return self.compile(function.__name__, call, kwargs, asked)

        JITFunction.run = run
        Autotuner.do_bench = property(lambda tuner: self._try)

    def compile(
        self,
        kernel: str,
        call: Callable[[], Any],
        configuration: Mapping[str, Any],
        grid: tuple[int, ...] | None = None,
    ) -> Any:
        """What `call` compiles, reported; None where it doesn't compile, and the candidate goes on."""
        self._events.send(Began(kernel))
        log, stderr = io.StringIO(), self._stderr_bytes()
        try:
            with contextlib.redirect_stdout(log):
                found = call()
        except Exception as error:  # noqa: BLE001  compilers and the candidate's own hooks raise anything
            self._refuse(kernel, _plainly(configuration), describe(error, self._stderr_since(stderr)))
            return None
        if found is not None:
            self._report(kernel, found, log.getvalue(), grid)
        return found

    def note(self, key: str, record: Mapping[str, Any] | None) -> None:
        """A kernel of CuTe-DSL: compiled, with its record, or launched again."""
        cases = self._seen.get(key)
        if cases is None and record is not None:
            self._seen[key] = {self.case}
            self._events.send(Built(key, build_of(record, self._architecture, self.case)))
        elif cases is not None and self.case is not None and self.case not in cases:
            cases.add(self.case)
            self._events.send(Launched(key, self.case))

    def _try(self, call: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        self._tuning = True
        try:
            return call_once(call, *args, **kwargs)
        finally:
            self._tuning = False

    def _report(self, kernel: str, found: Any, log: str, grid: tuple[int, ...] | None) -> None:
        cases = self._seen.get(found.hash)
        if cases is None:
            self._seen[found.hash] = {self.case}
            build = self._record(kernel, found, log, grid)
            if build.registers is not None:
                self._driver.registers[found.kernel] = build.registers
            self._events.send(Built(found.hash, build))
        elif self.case is not None and self.case not in cases:
            cases.add(self.case)
            self._events.send(Launched(found.hash, self.case))

    def _record(self, kernel: str, found: Any, log: str, grid: tuple[int, ...] | None) -> KernelBuild:
        metadata = found.metadata
        return KernelBuild(
            kernel=kernel,
            architecture=self._architecture,
            arguments=describe_arguments(found.src),
            cases=() if self.case is None else (self.case,),
            grid=grid,
            tuned=self._tuning,
            triton=metadata.triton_version,
            num_warps=metadata.num_warps,
            num_stages=metadata.num_stages,
            num_ctas=metadata.num_ctas,
            dynamic_shared_bytes=metadata.shared,
            tensor_memory_columns=getattr(metadata, "tmem_size", None) or 0,
            **measured(self._limits, found, log),
        )

    def _refuse(self, kernel: str, configuration: str, message: str) -> None:
        if (kernel, configuration, message) not in self._refused:
            self._refused.add((kernel, configuration, message))
            self._events.send(Refused(kernel, configuration, self.case, self._tuning, message))

    def _stderr_bytes(self) -> int:
        return self._messages.stat().st_size if self._messages.exists() else 0

    def _stderr_since(self, start: int) -> str:
        """What compilers wrote to stderr next to the exception that they raised."""
        if not self._messages.exists():
            return ""
        with self._messages.open("rb") as file:
            file.seek(start)
            return file.read(1 << 20).decode("utf-8", "replace")


def describe(error: BaseException, stderr: str = "") -> str:
    """An error as lines of clean text, with what a compiler printed of it elsewhere; no traceback."""
    lines = f"{type(error).__name__}: {error}".splitlines()
    lines += [line for line in stderr.splitlines() if "error:" in line or "LLVM ERROR" in line]
    text = "\n".join(clean(line).rstrip() for line in lines[: 2 * _TOLD] if line.strip())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} …"


def _plainly(configuration: Mapping[str, Any]) -> str:
    """Numbers and texts by name; tensors and functions are no configuration."""
    plain = {name: value for name, value in configuration.items() if isinstance(value, (int, float, str))}
    return clean(", ".join(f"{name}={value}" for name, value in plain.items()))[:200]


def describe_arguments(source: Any) -> dict[str, str]:
    """By name, as `KernelBuild.arguments` has them."""
    names = list(source.signature)
    constants = {path[0]: value for path, value in _by_path(source.constants).items() if len(path) == 1}
    divisible = {
        path[0]
        for path, attributes in _by_path(source.attrs or {}).items()
        if len(path) == 1 and any(name == "tt.divisibility" for name, _ in attributes)
    }
    return {
        name: f"={_constant(constants[index])}" if index in constants
        else f"{source.signature[name]}{':16' if index in divisible else ''}"
        for index, name in enumerate(names)
    }  # fmt: skip


def _by_path(items: Mapping[Any, Any]) -> dict[Sequence[int], Any]:
    """Older versions have a plain index where newer ones have a path into tuples."""
    return {path if isinstance(path, tuple) else (path,): value for path, value in items.items()}


def _constant(value: Any) -> str:
    """A function's name, or the value as Python writes it."""
    value = getattr(value, "value", value)  # of a constexpr
    return clean(getattr(value, "__name__", None) or str(value))[:80]


def _grid_of(function: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...] | None:
    """The grid of a launch; None where its function fails, which the candidate would see on a device only."""
    try:
        if callable(grid):
            named = {name: value for name, value in kwargs.items() if name in function.signature.parameters}
            bound = function.signature.bind(*args, **named)
            bound.apply_defaults()
            grid = grid(dict(bound.arguments))
        return tuple(int(size) for size in grid)
    except Exception:  # noqa: BLE001  the candidate's own function
        return None
