"""Files made to harm, or with bytes changed: an answer with counted losses, or an `InputError`."""

import zlib
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tools.make_perfetto import Options, write_perfetto
from tools.make_xplane import block, text, varint, whole

import inferometer
from inferometer.errors import InputError
from inferometer.formats.perfetto.slices import find_ends

GOOD = block(1, whole(8, 1) + block(11, whole(9, 3) + text(23, "good")))


def _track(uuid: int, parent: int, name: str = "") -> bytes:
    return block(1, block(60, whole(1, uuid) + whole(5, parent) + text(2, name)))


def _kernel(track: int, arguments: bytes = b"") -> bytes:
    body = whole(11, track) + text(22, "kernel_dispatch") + text(23, "k") + arguments
    return block(1, whole(8, 5) + block(11, whole(9, 3) + body))


def _argument(name: str, value: bytes) -> bytes:
    return block(4, text(10, name) + value)


HOSTILE = {
    "an endless number": GOOD + b"\x0a" + b"\xff" * 40,
    "a packet larger than any file": GOOD + b"\x0a" + varint(2**62),
    "a group": GOOD + b"\x0b\x0c",
    "field 0": GOOD + b"\x02\x00",
    "tracks around each other": _track(1, 2) + _track(2, 1) + _kernel(1),
    "a track in itself": _track(1, 1, "GPU 999999999999999999999") + _kernel(1),
    "a long way up": b"".join(_track(i, i + 1) for i in range(1, 500)) + _kernel(1),
    "a queue beyond 64 bits": _track(1, 0, "AGENT [1] QUEUE [999999999999999999]") + _kernel(1),
    "an agent that is text": _kernel(1, _argument("agent", text(6, "Agent \N{SNOWMAN}"))),
    "ids beyond 64 bits": _kernel(
        1, b"".join(_argument(n, whole(3, 2**64 - 1)) for n in ("corr_id", "queue", "agent"))
    ),
    "a grid that is none": _kernel(1, b"".join(_argument(f"grid_{axis}", text(6, "x")) for axis in "xyz")),
    "registers that are no number": _kernel(1, _argument("vgpr_count", b"\x29" + b"\xff" * 8)),
    "packets packed in packets": block(1, block(50, zlib.compress(block(1, block(50, zlib.compress(GOOD)))))),
    "packed packets that end": block(1, block(50, zlib.compress(GOOD)[:-3])) + GOOD,
    "a clock in units of centuries": block(
        1, block(6, block(1, whole(1, 6) + whole(2, 1)) + block(1, whole(1, 64) + whole(2, 1) + whole(4, 2**63)))
    )
    + block(1, whole(8, 2**63) + whole(58, 64) + block(11, whole(9, 3) + text(23, "far"))),
    "text that isn't": block(1, block(60, whole(1, 1) + block(2, b"\xff"))) + _kernel(1),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_an_answer_or_an_input_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pftrace"
    path.write_bytes(data)
    with suppress(InputError):
        trace = inferometer.open(path, format="perfetto")
        assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()


@given(seed=st.integers(0, 2**32), packed=st.booleans())
@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_bytes_are_an_answer_or_an_input_error(seed: int, packed: bool, tmp_path: Path) -> None:
    changed, rng = bytearray(write_perfetto(Options(steps=1, packed=packed, ops=True))[0]), Random(seed)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    path = tmp_path / "changed.pftrace"
    path.write_bytes(changed)
    with suppress(InputError):
        trace = inferometer.open(path, format="perfetto")
        assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()


def test_a_file_cut_anywhere_gives_what_stands_before(tmp_path: Path) -> None:
    data = GOOD * 3
    path = tmp_path / "cut.pftrace"
    for size in range(len(GOOD), len(data)):
        path.write_bytes(data[:size])
        trace = inferometer.open(path)
        assert trace.spans.collect().height == size // len(GOOD)
        assert (trace.losses.total("truncated") == 0) == (size % len(GOOD) == 0)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.sampled_from([1, 2, 3])), max_size=40),
)
def test_ends_are_those_that_a_stack_for_each_track_finds(events: list[tuple[int, int, int]]) -> None:
    track, time, kind = (np.array([each[i] for each in events], np.int64) for i in range(3))
    found = find_ends(track, time, kind)
    ends: dict[int, int] = {}
    orphans = 0
    for own in range(3):
        opened: list[int] = []
        for at in sorted((i for i, each in enumerate(events) if each[0] == own), key=lambda i: events[i][1]):
            if events[at][2] == 1:
                opened.append(at)
            elif events[at][2] == 2 and opened:
                ends[opened.pop()] = events[at][1]
            elif events[at][2] == 2:
                orphans += 1
    assert {i: int(found.end_ns[i]) for i in np.flatnonzero(found.has_end).tolist()} == ends
    assert found.orphans == orphans
