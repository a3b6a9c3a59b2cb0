"""What the program does itself while windows turn over: its own profiles, and captures of graphs."""

import threading
from collections.abc import Callable
from typing import Any


class OtherProfiles:
    """The program's own use of torch.profiler: `begins` is called before each of its profiles, `ended` after it.

    Methods of `torch.autograd.profiler.profile` are replaced meanwhile; `torch.profiler` goes through it.
    """

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None]) -> None:
        self._begins, self._ended = begins, ended
        self._restore: list[Callable[[], None]] = []

    def watch(self) -> None:
        """From now on."""
        from torch.autograd.profiler import profile

        begins, ended = self._begins, self._ended
        prepare: Any = profile._prepare_trace
        leave: Any = profile.__exit__

        def _prepare_trace(self: Any) -> Any:
            begins()
            return prepare(self)

        def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807  # in its place
            try:
                return leave(self, *error)
            finally:
                if getattr(self, "enabled", True):
                    ended()

        self._replace(profile, "_prepare_trace", prepare, _prepare_trace)
        self._replace(profile, "__exit__", leave, __exit__)

    def restore(self) -> None:
        """As it was, unless someone else has replaced a method since."""
        for restore in self._restore:
            restore()
        self._restore.clear()

    def _replace(self, owner: Any, name: str, old: Any, new: Any) -> None:
        setattr(owner, name, new)

        def restore() -> None:
            if getattr(owner, name) is new:
                setattr(owner, name, old)

        self._restore.append(restore)


class Captures:
    """Captures of CUDA graphs: to wait for the device meanwhile would break them, so no window turns over then.

    `torch.cuda.CUDAGraph.capture_begin` and `capture_end` are replaced meanwhile. While `lock` is held and `open` is 0,
    none runs and none can begin.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = 0
        self._restore: Callable[[], None] = lambda: None

    def watch(self, graph: Any = None) -> None:
        """From now on. `graph`: the class, for tests."""
        if graph is None:
            import torch

            graph = torch.cuda.CUDAGraph
        begin, end = getattr(graph, "capture_begin", None), getattr(graph, "capture_end", None)
        if begin is None or end is None:
            return

        def capture_begin(self_: Any, *args: Any, **options: Any) -> Any:
            with self.lock:
                self.open += 1
            try:
                return begin(self_, *args, **options)
            except BaseException:
                self._ended()
                raise

        def capture_end(self_: Any, *args: Any, **options: Any) -> Any:
            try:
                return end(self_, *args, **options)
            finally:
                self._ended()

        graph.capture_begin, graph.capture_end = capture_begin, capture_end

        def restore() -> None:
            if graph.capture_begin is capture_begin:
                graph.capture_begin, graph.capture_end = begin, end

        self._restore = restore

    def restore(self) -> None:
        """As it was."""
        self._restore()

    def _ended(self) -> None:
        with self.lock:
            self.open = max(0, self.open - 1)
