"""Damage of any kind, anywhere: a trace with counted losses or an `InputError`, soon, and nothing else."""

import gzip
import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.kineto_files import COMPACT, KINETO, Layout, call, event, kernel, write_file
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import InputError

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
    kernel("void a<1>(float*)", "100.001", "2.5", grid=[1, 2, 3], block=[32, 1, 1]),
    call(kernel="b", stream=7),
    event("cpu_op", "aten::mm", "80", "50.5", Input_Dims=[[1, 2], []], External_id=4),
    event("python_function", "nn.Module: é😀", "70", "80", Python_id=3),
    {"ph": "C", "name": "queue", "pid": 1, "ts": 3, "args": {"running": 3, "waiting": 0}},
    {"ph": "B", "cat": "user_annotation", "name": "begun", "pid": 1, "tid": 2, "ts": 4},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 9},
    event("gpu_memcpy", "Memcpy HtoD", "110", "1", device=0, stream=7, bytes=64),
]
DEVICE = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85017755648, "computeMajor": 9, "computeMinor": 0}
FILE = write_file(
    EVENTS, before={"schemaVersion": 1, "deviceProperties": [DEVICE]}, after={"distributedInfo": {"rank": 0}}
)
TOKENS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\0",
    b"\xff",
    b"\n",
    b"NaN",
    b"1e999",
    b"}},{",
    b"\x1f\x8b",
    b"-",
]


def outcome(data: bytes, folder: Path, tables: set[str] | None = None, *, ask: bool = True) -> Trace | None:
    """The trace, after it was asked for its answers; None where an `InputError` says that there is no trace."""
    path = folder / "trace.json"
    path.write_bytes(data)
    try:
        trace = inferometer.open(path, tables, format="kineto")
    except InputError:
        return None
    if ask:
        answer = inferometer.kernel_table(trace) if tables else inferometer.summarize(trace)
        json.dumps(answer.as_json(), allow_nan=False)
    return trace


def test_the_file_is_whole(tmp_path: Path) -> None:
    trace = outcome(FILE, tmp_path)
    assert trace
    assert sorted(loss.name for loss in trace.losses) == ["end_event", "metadata_event"]
    assert trace.launches.collect().height == 2


@pytest.mark.parametrize(("layout", "step"), [(KINETO, 1), (COMPACT, 7)], ids=["kineto", "compact"])
def test_a_file_may_end_at_any_byte(layout: Layout, step: int, tmp_path: Path) -> None:
    data = write_file(EVENTS[1:4] if step == 1 else EVENTS, layout).rstrip()
    kernels = 0
    for size in range(0, len(data), step):
        trace = outcome(data[:size], tmp_path, ask=size % 40 == 0)
        if trace:
            assert trace.losses.total("truncated") == 1
            assert trace.launches.collect().height >= kernels
            kernels = trace.launches.collect().height
    assert kernels in (1, 2)


def test_a_compressed_file_may_end_at_any_byte(tmp_path: Path) -> None:
    data = gzip.compress(FILE)
    for size in range(0, len(data), 2):
        trace = outcome(data[:size], tmp_path, ask=size % 20 == 0)
        if trace:
            assert trace.losses.total("broken_compression") == 1


def test_two_members_may_end_at_any_byte(tmp_path: Path) -> None:
    first = gzip.compress(FILE[:700])
    data = first + gzip.compress(FILE[700:])
    for size in range(len(first) - 5, len(data), 7):
        trace = outcome(data[:size], tmp_path, ask=False)
        assert trace
        assert trace.losses.total("broken_compression") + trace.losses.total("truncated") >= 1


@pytest.mark.parametrize("tables", [None, {"launches"}], ids=["all", "launches"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_any_byte_may_be_any_other(pack: type, tables: set[str] | None, tmp_path: Path) -> None:
    data, chance = pack(FILE), random.Random(7)
    for _ in range(100):
        spoiled = bytearray(data)
        for _ in range(chance.choice([1, 1, 1, 3, 20])):
            spoiled[chance.randrange(len(data))] = chance.randrange(256)
        outcome(bytes(spoiled), tmp_path, tables)


@pytest.mark.parametrize("tables", [None, {"launches"}], ids=["all", "launches"])
def test_text_may_be_cut_out_doubled_and_put_in_anywhere(tables: set[str] | None, tmp_path: Path) -> None:
    chance = random.Random(8)
    for _ in range(100):
        a, b, c = sorted(chance.randrange(len(FILE)) for _ in range(3))
        piece = chance.choice([FILE[b:c], b"", *TOKENS, chance.choice(TOKENS) * 50])
        outcome(FILE[:a] + piece + FILE[b:], tmp_path, tables)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b'{"traceEvents": [', b"[", b'[{"ph":"X","args":', b"\x1f\x8b\x08"])
)
@examples(50)
def test_any_bytes_are_a_trace_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bytes
) -> None:
    outcome(start + data, tmp_path_factory.mktemp("bytes"))


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.integers(-(2**70), 2**70),
            st.floats(),
            st.text(max_size=5),
            st.sampled_from(["host(1)", f"host({2**70})", "gpu 7", "1e400", "NaN", "-", "7", "\ud800"]),
        ),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
        max_leaves=4,
    ),
    st.sampled_from(EVENTS),
    st.data(),
)
@examples(80)
def test_any_field_may_hold_anything(
    tmp_path_factory: pytest.TempPathFactory, value: object, given_event: dict[str, object], data: st.DataObject
) -> None:
    spoiled = dict(given_event)
    key = data.draw(st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "?"]))
    if key == "?" and isinstance(args := spoiled.get("args"), dict) and args:
        spoiled["args"] = args | {data.draw(st.sampled_from(sorted(args))): value}
    else:
        spoiled[key] = value
    text = json.dumps({"schemaVersion": 1, "traceEvents": [spoiled, kernel("last", "500", "1")]})
    folder = tmp_path_factory.mktemp("field")
    trace = outcome(text.encode("utf-8", "surrogatepass"), folder, ask=False)
    assert trace
    inferometer.kernel_table(trace)
    assert trace.launches.collect()["kernel"].to_list()[-1] == "last"
    seen = trace.losses.seen.total() + trace.losses.total("unreadable_event")
    assert seen == 2
    store = folder / "store.ifm"
    assert inferometer.open(trace.save(store)).facts == stored_facts(trace)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "deviceProperties",
                "distributedInfo",
                "baseTimeNanoseconds",
                "schemaVersion",
                "with_stack",
                "metadata",
                "x",
            ]
        ),
        st.recursive(
            st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(st.sampled_from(["id", "name", "rank", "world_size", "numSms", "computeMajor"]), inner),
            ),
            max_leaves=4,
        ),
    )
)
@examples(40)
def test_any_header_may_hold_anything(tmp_path_factory: pytest.TempPathFactory, header: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("header")
    text = json.dumps({**header, "traceEvents": [kernel("only")]})
    trace = outcome(text.encode("utf-8", "surrogatepass"), folder)
    assert trace
    assert trace.launches.collect().height == 1
    assert inferometer.open(trace.save(folder / "store.ifm")).facts == stored_facts(trace)


# Size


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel tells no peak of memory here")
def test_one_giant_string_takes_little_memory_and_is_counted(tmp_path: Path) -> None:
    """A string of 72 MiB, which is above the limit of one event: in an event, next to the events, in a bare array."""
    program = """
        import re, sys, inferometer
        trace = inferometer.open(sys.argv[1], format="kineto")
        names = trace.launches.select("kernel").collect().to_series().to_list()
        print(names, {loss.name: loss.count for loss in trace.losses})
        print(int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
    """
    giant, size = tmp_path / "giant.json", 72 << 20
    one, last = json.dumps(kernel("one")).encode(), json.dumps(kernel("last", "900")).encode()
    before = {
        "args": b'{"schemaVersion": 1, "traceEvents": [' + one + b', {"ph": "X", "args": {"text": "',
        "metadata": b'{"metadata": "',
        "array": b"[" + one + b', "',
    }
    after = {
        "args": b'"}}, ' + last + b"]}",
        "metadata": b'", "traceEvents": [' + one + b", " + last + b"]}",
        "array": b'", ' + last + b"]",
    }
    losses = {
        "args": {"event_too_large": 1},
        "metadata": {"field_not_searched": 1},
        "array": {"not_an_object": 1},
    }
    for place, start in before.items():
        with giant.open("wb") as file:
            file.write(start)
            for _ in range(size >> 20):
                file.write(b'\\" {[,xx' * (1 << 17))
            file.write(after[place])
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(giant)], capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        said, memory_mib = done.stdout.splitlines()
        assert said == f"['one', 'last'] {losses[place]}"
        assert int(memory_mib) < 400  # three times the string, and what the library holds of two sections
