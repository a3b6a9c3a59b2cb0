"""Files cut at every byte, with bytes changed, or made to harm: an answer with counted losses, or an `InputError`."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.xplane_files import PLANE, blocks
from tools.make_xplane import Options, Plane, Stat, block, text, varint, whole, write_xplane

import inferometer
from inferometer.errors import InputError
from inferometer.formats.source import Source
from inferometer.formats.xplane.space import read_space
from inferometer.trace.losses import Losses

HOSTILE = {
    "an endless number": b"\x0a" + b"\xff" * 40,
    "a plane larger than the file": b"\x0a" + varint(2**62) + b"\x12\x0e/host:metadata",
    "planes in planes": block(1, block(1, block(1, text(2, "/host:CPU")))),
    "a group": b"\x0b\x0c" + block(1, text(2, "/device:GPU:0")),
    "another wire type": block(1, text(2, "/device:GPU:0") + b"\x1d\x00\x00\x00\x00"),
    "a reference to itself": block(1, text(2, "Task Environment") + block(6, whole(1, 1) + whole(7, 1))),
}


def test_a_file_cut_anywhere_gives_the_planes_before_its_end(tmp_path: Path) -> None:
    data = write_xplane(Options(steps=1, derived=False))[0]
    whole_planes = [data.index(plane) + len(plane) for plane in blocks(data, PLANE)]
    path = tmp_path / "cut.xplane.pb"
    for size in range(whole_planes[0], len(data)):
        path.write_bytes(data[:size])
        losses = Losses()
        assert len(read_space(Source(path), losses).planes) == sum(end <= size for end in whole_planes)
        assert (losses.total("truncated") == 0) == (size in whole_planes)
        if size % 200 == 0:
            trace = inferometer.open(path)
            assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()
    for size in range(whole_planes[0]):
        path.write_bytes(data[:size])
        with pytest.raises(InputError):
            inferometer.open(path, format="xplane")


@given(seed=st.integers(0, 2**32))
@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_bytes_are_an_answer_or_an_input_error(seed: int, tmp_path: Path) -> None:
    changed, rng = bytearray(write_xplane(Options(steps=1, derived=False))[0]), Random(seed)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    path = tmp_path / "changed.xplane.pb"
    path.write_bytes(changed)
    with suppress(InputError):
        trace = inferometer.open(path, format="xplane")
        rows = sum(n for name, n in trace.count_rows().items() if name != "collectives")
        assert trace.losses.seen.total() == rows + trace.losses.dropped()


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_an_answer_or_an_input_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "hostile.xplane.pb"
    path.write_bytes(data)
    with suppress(InputError):
        inferometer.open(path).count_rows()


def test_numbers_at_the_ends_of_64_bits_are_dropped_or_kept_whole(tmp_path: Path) -> None:
    least, most = -(2**63), 2**63 - 1
    plane = Plane("/device:GPU:0", [("compute_cap_major", most), ("process_id", least)])
    for i, at_ns in enumerate((least, -1, 2**62, most)):
        stats: list[Stat] = [("correlation_id", most), ("kernel_details", "grid:9999999999999999999,1,1 regs:-1")]
        events = [plane.event("k", offset, dur, stats) for offset in (least, 0, most) for dur in (least, 0, most)]
        plane.line(most - i, f"Stream #{i}(Kernel)", at_ns, events)
    path = tmp_path / "far.xplane.pb"
    path.write_bytes(plane.encode())
    trace = inferometer.open(path)
    launches = trace.launches.collect()
    assert launches.height + trace.losses.dropped() == trace.losses.seen.total() - trace.ops.collect().height
    assert launches["start_ns"].min() >= -(2**62)  # type: ignore[operator]
    assert launches["dur_ns"].max() == 0
