"""The sample of each format, cut at every byte: an answer with counted losses, or an `InputError`.

A database of SQLite says how many pages it has, and is refused as soon as it has fewer: it is cut at every byte of its
first two pages and of its last, and around the beginning of each other one. Text of which every line is a whole one,
and a message of Protobuf between two of its fields, say nothing of what is missing: such a cut may go unnoticed.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conformance.samples import SAMPLES

import inferometer
from inferometer.errors import InputError

SHARES = 24
UNNOTICED = {"xplane": 1}
"""How many cuts may leave a file that is whole: between planes."""
_SQLITE = b"SQLite format 3\x00"


def sample_of(name: str) -> bytes:
    """The small file of the format; of rocprofv3 one process of it, with a record or two of each kind."""
    data = SAMPLES[name]()
    if name != "rocprof":
        return data
    document = json.loads(data)
    [process, *_] = document["rocprofiler-sdk-tool"]
    for part in ("buffer_records", "callback_records"):
        process[part] = {array: records[:1] for array, records in process[part].items()}
    process["kernel_symbols"] = process["kernel_symbols"][:2]
    return json.dumps({"rocprofiler-sdk-tool": [process]}, separators=(",", ":")).encode()


def sizes_of(data: bytes) -> list[int]:
    """Where to cut."""
    if not data.startswith(_SQLITE):
        return [*range(len(data.rstrip()))]
    page = int.from_bytes(data[16:18], "big")
    return sorted({*range(2 * page), *range(len(data) - page, len(data)), *_around(page, len(data))})


def _around(page: int, end: int) -> Iterator[int]:
    for at in range(page, end, page):
        yield from (at - 1, at, at + 1)


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_file_cut_at_any_byte_is_a_trace_with_losses_or_an_input_error(name: str, share: int, tmp_path: Path) -> None:
    data, path, silent = sample_of(name), tmp_path / "sample", 0
    for size in sizes_of(data)[share::SHARES]:
        path.write_bytes(data[:size])
        with suppress(InputError), inferometer.open(path, format=name) as trace:
            silent += not trace.losses.total()
    assert silent <= UNNOTICED.get(name, 0)
