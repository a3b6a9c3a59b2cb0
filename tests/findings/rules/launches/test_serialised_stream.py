"""A second stream that only takes turns with the first is found; one that overlaps, or that nothing orders, is not."""

from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import called, findings, generated, launched, marked, only, trace_with

RULE = "serialised_stream"


def turns(second_us: float, *, waits: int = 40, second: dict[str, Any] | None = None) -> Any:
    """Twenty times 50 μs on stream 7, and 30 μs on stream 13 that begin `second_us` after that began."""
    rows = [
        row
        for i in range(20)
        for row in (
            launched(i, 100 * i + 50, 50, stream=7),
            launched(i + 0.5, 100 * i + 50 + second_us, 30, **({"stream": 13} | (second or {}))),
        )
    ]
    events = [called("cudaStreamWaitEvent", i, i + 0.1) for i in range(waits)]
    return trace_with(rows, calls=events, spans=marked((100 * i for i in range(2)), 99))


def test_streams_that_take_turns_are_named_with_their_time() -> None:
    finding = only(turns(55), RULE)
    assert finding.severity == "high"
    assert "stream 13 never runs in parallel with stream 7" in finding.title
    assert finding.size_ns == 20 * 30_000
    assert "It takes over 20 times, and at the changes to and fro both idle 385.000 μs in all" in finding.evidence[1]
    assert "wait_stream" in finding.next


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(turns(10), id="it overlaps"),
        pytest.param(turns(55, waits=0), id="nothing orders them"),
        pytest.param(turns(55, second={"stream": 7}), id="one stream"),
        pytest.param(turns(55, second={"stream": None}), id="a stream that isn't known"),
        pytest.param(turns(55, second={"stream": 13, "graph_node_id": 1}), id="of a graph"),
        pytest.param(turns(55, second={"stream": 13, "kind": "memcpy", "kernel": "Memcpy DtoH"}), id="copies"),
        pytest.param(turns(55, second={"stream": 13, "kernel": "ncclDevKernel_AllReduce_Sum_bf16"}), id="collectives"),
    ],
)
def test_it_is_silent_about_the_rest(trace: Any) -> None:
    assert not findings(trace, RULE)


def test_the_planted_stream_is_found(tmp_path: Path) -> None:
    finding = only(generated(tmp_path, fault="serial-stream", mode="eager", batch=64), RULE)
    assert finding.severity in ("medium", "high")


def test_a_thread_with_a_stream_of_its_own_is_healthy(tmp_path: Path) -> None:
    assert not findings(generated(tmp_path, mode="eager", threads=2), RULE)
