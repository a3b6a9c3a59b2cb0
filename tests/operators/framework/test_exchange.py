"""What collectives exchange: NCCL's factors by hand, and what arguments say of bytes and ranks."""

import json
from fractions import Fraction
from typing import Any

import pytest

from inferometer.analyses.roofline.work import bounded
from inferometer.hardware.device import Device, Quantity
from inferometer.operators.framework.call import OpCall, Unmodelled, read_call
from inferometer.operators.framework.collectives import exchange_of
from inferometer.operators.framework.exchange import EQUAL_SPLITS, NO_SWITCH, TWO_RANKS, Exchange, bus_factor


def call_of(op: str, dims: list[Any], types: list[str], values: list[str] | None = None, **more: Any) -> OpCall:
    return read_call(op, json.dumps(dims), json.dumps(types), None, json.dumps(values) if values else None, **more)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [  # nccl-tests, doc/PERFORMANCE.md, of four ranks
        ("all_reduce", Fraction(3, 2)),
        *((kind, Fraction(3, 4)) for kind in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")),
        *((kind, Fraction(1)) for kind in ("broadcast", "reduce", "send_recv")),
        ("other", None),
    ],
)
def test_the_factor_of_four_ranks(kind: str, factor: Fraction | None) -> None:
    assert bus_factor(kind, 4) == factor
    assert bus_factor(kind, 1) == (None if factor is None else 0)


@pytest.mark.parametrize(
    ("found", "message_bytes", "link_bytes"),
    [
        (Exchange("all_reduce", 800, 800, 8), 800, 1_400),
        (Exchange("all_gather", 100, 800, 8), 800, 700),
        (Exchange("reduce_scatter", 800, 100, 8), 800, 700),
        (Exchange("broadcast", 800, 800, 8), 800, 800),
        (Exchange("all_to_all", 800, 600, 8), 800, 700),
        (Exchange("all_to_all", 800, 600, 2, (Fraction(3, 4), Fraction(1, 2)), True), 800, 300),
        (Exchange("all_reduce", 101, 101, 3), 101, 134),  # 134.67, and no more is certain
        (Exchange("all_reduce", 800, 800, None), 800, None),
        (Exchange("all_reduce", None, None, 8), None, None),
        (Exchange("other", 800, 800, 8), 800, None),
    ],
)
def test_bytes_over_the_link(found: Exchange, message_bytes: int | None, link_bytes: int | None) -> None:
    assert (found.message_bytes, found.link_bytes) == (message_bytes, link_bytes)
    assert (found.unknown is None) == (link_bytes is not None)


def test_what_is_taken_for_granted_is_named() -> None:
    assert NO_SWITCH in Exchange("all_reduce", 8, 8, 2).work().assumes
    assert NO_SWITCH not in Exchange("all_gather", 8, 16, 2).work().assumes
    assert EQUAL_SPLITS in Exchange("all_to_all", 8, 8, 2).work().assumes
    assert EQUAL_SPLITS not in Exchange("all_to_all", 8, 8, 2, has_splits=True).work().assumes
    assert Exchange("all_reduce", 8, 8, 1).work().assumes == ()


FLOATS = ["float", "float", ""]
INSIDE = read_call(
    "record_param_comms",
    json.dumps([[[8]], *[[]] * 9]),
    json.dumps(["TensorList", "", "", "Scalar", "", "ScalarList", "ScalarList", "Scalar", "Scalar", "Scalar"]),
    None,
    json.dumps(["", "", "", "0", "", "[]", "[]", "0", "1", "4"]),
)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (call_of("c10d::_allgather_base_", [[64, 2], [8, 2], []], FLOATS), ("all_gather", 64, 512, 8)),
        (call_of("c10d::_reduce_scatter_base_", [[8, 2], [64, 2], []], FLOATS), ("reduce_scatter", 512, 64, 8)),
        (call_of("c10d::alltoall_base_", [[5], [6], [], [], []], [*FLOATS, "", ""]), ("all_to_all", 24, 20, None)),
        (call_of("c10d::allreduce_", [[[8]], [], []], ["TensorList", "", ""]), ("all_reduce", None, None, None)),
        (
            call_of("c10d::allreduce_", [[[8]], []], ["TensorList", ""], inside=(INSIDE,)),
            ("all_reduce", None, None, 4),
        ),
        (call_of("vllm::all_reduce", [[3, 4], []], ["c10::Half", ""]), ("all_reduce", 24, 24, None)),
        (call_of("_C_custom_ar::all_reduce", [[], [6], [6]], ["Scalar", "float", "float"], ["1", "", ""]),
         ("all_reduce", 24, 24, None)),
        (call_of("vllm::all_gather", [[3], [], []], ["float", "Scalar", "Scalar"], ["", "0", "4"]),
         ("all_gather", 12, 48, 4)),
        (call_of("_c10d_functional::reduce_scatter_tensor", [[8], [], []], ["float", "", "Scalar"], ["", "", "2"]),
         ("reduce_scatter", 32, 16, 2)),
    ],
)  # fmt: skip
def test_arguments_say_bytes_and_some_say_ranks(call: OpCall, expected: tuple[Any, ...]) -> None:
    found = exchange_of(call)
    assert (found.kind, found.in_bytes, found.out_bytes, found.ranks) == expected


def test_splits_of_an_all_to_all_say_ranks_and_what_may_stay() -> None:
    types = ["float", "float", "", "ScalarList", "ScalarList"]
    call = call_of("c10d::alltoall_base_", [[6], [8], [], [], []], types, ["", "", "", "[3, 3]", "[6, 2]"])
    found = exchange_of(call)
    assert (found.ranks, found.kept, found.link_bytes) == (2, (Fraction(3, 4), Fraction(1, 2)), 12)


@pytest.mark.parametrize(("got", "given"), [("[-3, 9]", "[6, 2]"), ("[3, 3]", "[8]"), ("[]", "[]"), ("[3, 3]", "")])
def test_splits_that_cannot_be_say_nothing(got: str, given: str) -> None:
    types = ["float", "float", "", "ScalarList", "ScalarList"]
    found = exchange_of(call_of("c10d::alltoall_base_", [[6], [8], [], [], []], types, ["", "", "", got, given]))
    assert (found.ranks, found.kept, found.message_bytes) == (None, None, 32)


@pytest.mark.parametrize("ranks", ["0", "-1", ""])
def test_a_number_of_ranks_that_cannot_be_is_a_reason(ranks: str) -> None:
    call = call_of("vllm::all_gather", [[3], [], []], ["float", "Scalar", "Scalar"], ["", "0", ranks])
    with pytest.raises(Unmodelled):
        exchange_of(call)


def test_the_link_binds_or_memory_does_where_nothing_crosses_it() -> None:
    def rate(value: float) -> Quantity:
        return Quantity(value=value, unit="B/s", kind="datasheet", source="this test")

    device = Device(name="one", memory_bandwidth=rate(1e12), link=rate(1e11))
    call = call_of("c10d::_allgather_base_", [[1_000_000], [250_000], []], FLOATS)
    over = bounded(call, device)
    assert over.binding == "link"
    assert over.bound_ns == pytest.approx(1e9 * 3_000_000 / 1e11)

    alone = bounded(call_of("c10d::_allgather_base_", [[1_000_000], [1_000_000], []], FLOATS), device)
    assert alone.binding == "memory"
    assert alone.bound_ns == pytest.approx(1e9 * 8_000_000 / 1e12)

    no_link = bounded(call, Device(name="two", memory_bandwidth=rate(1e12)))
    assert (no_link.bound_ns, bool(no_link.reason)) == (None, True)


def test_where_ranks_arent_recorded_the_bound_is_that_of_two() -> None:
    known, unknown = (Exchange("all_to_all", 64, 64, ranks).work() for ranks in (2, None))

    assert unknown.link_bytes == known.link_bytes == 32
    assert unknown.assumes == (*known.assumes, TWO_RANKS)
    assert Exchange("all_to_all", 64, 64, None).link_bytes is None  # no bandwidth of the bus is made of a guess
    with pytest.raises(Unmodelled, match="how many bytes"):
        Exchange("all_reduce", None, None, None).work()
