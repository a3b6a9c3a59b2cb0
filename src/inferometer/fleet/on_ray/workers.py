"""Reads places by tasks of a Ray cluster: first their hash, then, where the content is new, its digest.

A worker that dies says nothing of what it read: that is given to another one. A place that ended several is set aside.
A node that dies doesn't count as one of them. The hash is taken again with the digest, which another node may make: so
no digest is ever kept under the hash of another content.

What this machine reads and a node doesn't is no fault of the file: the run ends and says which node lacks it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from inferometer import __version__
from inferometer.errors import InputError, Unavailable, printable
from inferometer.fleet.on_ray.cluster import AUTO, join, room
from inferometer.fleet.on_ray.node import Answer, read
from inferometer.fleet.readers import ReadersClosed, Reading
from inferometer.fleet.reasons import SetAside
from inferometer.fleet.sources import Place
from inferometer.fleet.workers import WorkerLimits, Workers

if TYPE_CHECKING:
    from ray import ObjectRef

MOST_DEATHS: Final = 3
"""Workers that one place may end."""
_MOST_NODES: Final = 20
_SAME: Final = "Every node needs the same version of inferometer, the same paths (a shared folder) and the same rights."


class RayWorkers:
    """Tasks of the cluster at `address`, `count` at once; by default as many as it has room for."""

    def __init__(self, address: str = AUTO, *, limits: WorkerLimits, count: int | None = None) -> None:
        self._address, self._limits, self._wanted = address, limits, count
        self.count = 0
        self._task: Any = None
        self._lock = Lock()
        self._asked: set[ObjectRef[Answer]] = set()
        self._is_closed = False

    @contextmanager
    def reading(self, place: Place) -> Iterator[Reading]:
        """As `Readers` has it.

        Raises:
            InputError: A node can't read what this machine reads.
            Unavailable: The cluster fails.
        """
        name = place.name if place.is_remote else os.path.abspath(place.name)  # noqa: PTH100 - keeps links
        answer = self._ask(name, None)
        trace = answer.trace
        if trace is None:
            raise self._fault(place, answer)
        yield Reading(trace, lambda: self._digest(Place(name), trace))

    def close(self) -> None:
        """Cancel what is at work."""
        import ray

        with self._lock:
            self._is_closed = True
            asked = [*self._asked]
        for each in asked:
            ray.cancel(each, force=True)

    def _digest(self, place: Place, trace: str) -> bytes:
        answer = self._ask(place.name, trace)
        if answer.trace != trace:
            raise self._fault(place, answer, trace)
        if answer.packed is None:
            raise SetAside(str(answer.reason))
        return answer.packed

    def _fault(self, place: Place, answer: Answer, trace: str | None = None) -> SetAside | InputError:
        """Whose fault it is that a node didn't find `trace`, or any content: this machine reads the place, too."""
        try:
            with Workers(1, self._limits).reading(place) as found:
                ours = found.trace
        except SetAside as error:
            return error
        if trace is not None and ours != trace:
            return SetAside("it changed while it was read")
        why = answer.unread or "another content is there"
        return InputError(
            f"{printable(place.name)}: this machine reads it, the node {answer.node} doesn't: {why}", hint=_SAME
        )

    def _ask(self, name: str, trace: str | None) -> Answer:
        """What a node answers, the first that lives long enough."""
        from ray import exceptions

        worker_ended = (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError)
        node_ended = (exceptions.NodeDiedError, exceptions.LocalRayletDiedError, exceptions.ObjectLostError)
        workers = nodes = 0
        while workers < MOST_DEATHS and nodes < _MOST_NODES:
            try:
                return self._asked_once(name, trace, is_again=workers + nodes > 0)
            except worker_ended:
                workers += 1
            except node_ended:
                nodes += 1
            except exceptions.RayError as error:
                self._check_open()
                raise Unavailable(f"Ray: {_cause(error)}", hint=_SAME) from error
            self._check_open()
        raise SetAside(f"it ended {workers} workers of Ray that read it" if workers else f"{nodes} nodes ended with it")

    def _asked_once(self, name: str, trace: str | None, *, is_again: bool) -> Answer:
        import ray

        strategy = "SPREAD" if is_again else "DEFAULT"
        with self._lock:
            self._check_open()
            asked = self._task.options(scheduling_strategy=strategy).remote(name, trace, self._limits, __version__)
            self._asked.add(asked)
        try:
            answer: Answer = ray.get(asked)
            return answer
        finally:
            with self._lock:
                self._asked.discard(asked)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ReadersClosed

    def __enter__(self) -> Self:
        join(self._address)
        import ray

        try:
            memory = self._limits.memory_bytes
            self.count = self._wanted or room(ray.nodes(), memory)
            # Ray's own retries count nodes as workers, and have no end where memory is short: `_ask` has ours.
            self._task = ray.remote(num_cpus=1, memory=memory, max_retries=0)(read)
        except BaseException:
            ray.shutdown()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        import ray

        ray.shutdown()


def _cause(error: Exception) -> str:
    """Its last line: what a task raised, without the traceback of the node."""
    return str(error).strip().rpartition("\n")[2]
