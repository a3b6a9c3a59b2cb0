"""Events of a generated Kineto file, read by `json` and with Decimal; nothing of the generator or of inferometer."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op", "python_function", "user_annotation", *CALLS)

Event = dict[str, Any]


def read(data: bytes) -> dict[str, Any]:
    return json.loads(data, parse_float=Decimal)


def start(event: Event) -> int:
    return int(event["ts"] * 1000)


def end(event: Event) -> int:
    return int((event["ts"] + event["dur"]) * 1000)


def of(events: Iterable[Event], *categories: str) -> list[Event]:
    return [event for event in events if event.get("cat") in categories]


def enclosing(events: Iterable[Event]) -> Iterator[tuple[Event, list[Event]]]:
    """Every event with those around it on its thread, outermost first, found from times alone."""
    open_on: defaultdict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (start(event), -end(event))):
        around = open_on[event["pid"], event["tid"]]
        while around and end(around[-1]) <= start(event):
            around.pop()
        yield event, around
        around.append(event)


def innermost(around: list[Event], category: str, prefix: str = "") -> str | None:
    names = (event["name"] for event in reversed(around) if event["cat"] == category)
    return next((name[len(prefix) :] for name in names if name.startswith(prefix)), None)
