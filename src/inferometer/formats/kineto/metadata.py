"""Metadata events (phase M): names and labels of processes and threads."""

from collections.abc import Iterable

import msgspec

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.ids import Ids

_NAMES = ("process_name", "process_labels", "thread_name")


def take_names(events: Iterable[Event], header: FileHeader, ids: Ids) -> None:
    """Note in `header` what metadata events say."""
    for event in events:
        if event.name not in _NAMES:
            continue
        try:
            args = msgspec.json.decode(event.args or b"{}", type=dict[str, str | None])
        except BAD_JSON:
            continue
        process, thread = ids.process(event.pid), ids.thread(event.tid)
        name, label = args.get("name"), args.get("labels")
        if event.name == "thread_name":
            header.name_thread(process, thread, name)
        else:
            header.name_process(process, name, label)
