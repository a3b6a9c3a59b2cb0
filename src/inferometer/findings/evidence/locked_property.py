"""A cached property that rules on several threads share: the first to ask makes it, the others wait for that."""

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, Generic, Self, TypeVar, overload

from inferometer.findings.evidence.turns import awaited, let_others

Made = TypeVar("Made")


class locked_cached_property(cached_property[Made], Generic[Made]):  # noqa: N801 - a decorator, as `cached_property` is
    """`functools.cached_property` with the lock that it lost in Python 3.12.

    A property has one lock, whatever the instance. What makes it may ask for others, but never in a circle.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        super().__init__(make)
        self._making = RLock()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Made: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | Made:
        if instance is None:
            return self
        if self._making.acquire(blocking=False):
            try:
                with awaited():
                    return super().__get__(instance, owner)
            finally:
                self._making.release()
        with let_others(), self._making:
            return super().__get__(instance, owner)
