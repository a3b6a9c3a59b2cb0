"""Ranges that PyTorch opens around collectives: their sizes where no record and no op has any."""

import json
from typing import Any

import pytest
from tests.traces import trace_of

from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import Roofline, roofline

NCCL = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"
THREAD = {"process": 1, "thread": 2}


def found_of(*ranges: tuple[str, list[Any] | str, list[str]], op: str = "c10d::allreduce_") -> Roofline:
    """A launch in each of these ranges, all of them of one op whose list of tensors has no sizes."""
    launches: list[dict[str, Any]] = []
    tables: dict[str, list[dict[str, Any]]] = {"calls": [], "ops": [], "spans": []}
    for number, (name, dims, types) in enumerate(ranges, 1):
        start = number * 1_000
        arguments = {"input_dims": "[[], []]", "input_dtypes": '["TensorList", "Scalar"]'}
        tables["ops"].append({"op": op, "start_ns": start, "dur_ns": 500, **THREAD, **arguments})
        texts = {"input_dims": dims if isinstance(dims, str) else json.dumps(dims), "input_dtypes": json.dumps(types)}
        span = {"span": name, "domain": "user_annotation", "start_ns": start + 10, "dur_ns": 100}
        tables["spans"].append({**span, **THREAD, **texts})
        call = {"api": "cudaLaunchKernel", "start_ns": start + 20, "dur_ns": 5, "correlation_id": number}
        tables["calls"].append({**call, **THREAD})
        launch = {"kernel": NCCL, "kind": "kernel", "device": "gpu:0", "stream": 1, "process": 1}
        launches.append({**launch, "start_ns": start + 200, "dur_ns": 100, "correlation_id": number})
    trace = trace_of(launches, facts=None, tables=None, **tables)
    return roofline(attribute(trace, with_op_calls=True), trace)


def test_ranges_tell_what_all_reduces_exchange() -> None:
    found = found_of(("nccl:all_reduce", [[300]], ["float"]), ("nccl:all_reduce", [[8, 4], [2]], ["c10::Half"] * 2))

    rows = sorted((row["read_bytes"], row["write_bytes"], row["link_bytes"]) for row in found.frame.to_dicts())
    assert rows == [(68, 68, 68), (1200, 1200, 1200)]  # over two ranks, the least: 2 (n - 1) / n of the message
    assert found.collectives.frame["message_bytes"].sort().to_list() == [68, 1200]
    assert found.times.sized_ns == found.times.sized_modelled_ns == 200


def test_of_others_a_range_has_what_goes_in() -> None:
    found = found_of(("nccl:all_to_all", [[10]], ["long"]), op="record_param_comms")

    (row,) = found.frame.to_dicts()
    assert (row["read_bytes"], row["write_bytes"], row["link_bytes"]) == (80, 0, 40)


@pytest.mark.parametrize(
    "unsaid",
    [
        ("nccl:all_reduce", [[300]], ["unheard of"]),
        ("nccl:all_reduce", [], []),
        ("nccl:all_reduce", "{", ["float"]),
        ("nccl:all_reduce", [[-3]], ["float"]),
        ("nccl:barrier", [[300]], ["float"]),
        ("all_reduce", [[300]], ["float"]),
    ],
)
def test_a_range_that_doesnt_say_it_leaves_the_bytes_unknown(unsaid: tuple[str, Any, list[str]]) -> None:
    found = found_of(unsaid)

    (row,) = found.frame.to_dicts()
    assert row["reason"] == "how many bytes it exchanges isn't recorded"
    assert (row["sizes_recorded"], found.times.sized_ns) == (False, 0)
