"""Events with their arguments decoded in the same pass: most of a profile's, told apart by their category.

A chunk of the text decodes this way or not at all. What is unusual about one event (another phase, no category, a
field of an unexpected type, the arguments of a collective) sends its chunk the general way, where each event is an
`Event` whose arguments are still text. Both ways give the same rows and losses.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Raw

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.kineto.arguments import COLLECTIVE_SIGN, CallArgs, FrameArgs, Id, LaunchArgs, OpArgs

_NONE = Raw(b"")
_MOST_MISSES: Final = 6  # then one chunk in 63 is tried
_LAUNCHES: Final = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS: Final = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")
_SPANS: Final = ("user_annotation", "gpu_user_annotation", "overhead", "cuda_sync")
_FLOWS: Final = ("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu")
_ARGUMENTS: Final[tuple[tuple[str, tuple[str, ...], type[msgspec.Struct]], ...]] = (
    ("launches", _LAUNCHES, LaunchArgs),
    ("calls", _CALLS, CallArgs),
    ("ops", ("cpu_op",), OpArgs),
    ("frames", ("python_function",), FrameArgs),
)


class TypedEvent(msgspec.Struct, gc=False, tag_field="cat"):
    """An event of one category: `cat` belongs to the class. `args` are decoded, text as in `Event`, or not there."""

    cat: ClassVar[str] = ""

    @property
    def category(self) -> str:
        """As of `Event`."""
        return self.cat


class _Flow(TypedEvent, gc=False):
    """An arrow between events, which is only counted."""

    ph: Literal["s", "t", "f"]


class CompleteEvent(TypedEvent, gc=False):
    """One with a start and a duration."""

    ph: Literal["X"]
    name: str | None = None
    pid: Id = None
    tid: Id = None
    ts: Raw = _NONE
    dur: Raw = _NONE
    args: Any = None


class TypedDecoder:
    """Decodes arrays of events, typed where that works.

    Args:
        tables: Those that are wanted; the arguments of events of other tables stay text.
        general: Decodes an array whatever its events are.
    """

    def __init__(self, tables: Iterable[str], general: Callable[[bytes], list[Any]]) -> None:
        wanted = frozenset(tables)
        kinds = [
            _typed(CompleteEvent, category, kind if table in wanted else Raw)
            for table, categories, kind in _ARGUMENTS
            for category in categories
        ]
        kinds += [_typed(CompleteEvent, category, Raw) for category in _SPANS]
        kinds += [_typed(_Flow, category) for category in _FLOWS]
        self._typed: Callable[[bytes], list[Any]] = msgspec.json.Decoder(
            list[reduce(or_, kinds)],  # type: ignore[misc]
            strict=False,
        ).decode
        self._general = general
        self._has_collectives = "collectives" in wanted
        self._misses = self._skips = 0

    def decode(self, text: bytes) -> list[Any]:
        """All events of an array. Chunks that aren't typed come in rows: after some, fewer are tried.

        Raises:
            One of `BAD_JSON`: It isn't an array of events.
        """
        if self._skips:
            self._skips -= 1
            return self._general(text)
        if not (self._has_collectives and COLLECTIVE_SIGN in text):
            try:
                events = self._typed(text)
            except BAD_JSON:
                self._misses += 1
                self._skips = 2 ** min(self._misses, _MOST_MISSES) - 2
            else:
                self._misses = 0
                return events
        return self._general(text)


def _typed(base: type[TypedEvent], category: str, args: type | None = None) -> type[TypedEvent]:
    """The class of a category's events."""
    fields: list[tuple[str, Any, Any]] = []
    if args is Raw:
        fields = [("args", Raw, _NONE)]
    elif args is not None:
        fields = [("args", args | None, None)]
    return msgspec.defstruct(  # type: ignore[return-value]
        f"{base.__name__}_{category}", fields, bases=(base,), namespace={"cat": category}, tag=category, gc=False
    )
