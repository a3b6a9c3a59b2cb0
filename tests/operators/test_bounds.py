"""Bounds from hand-made work and devices: which binds, what is padded, what isn't known."""

import pytest

from inferometer.hardware.device import Device, Quantity
from inferometer.operators.bounds import CYCLES, POLYNOMIAL_FLOPS, SPECIAL_A_CYCLE, bounds_of, tiles
from inferometer.operators.work import Product, Work, active_experts


def quantity(value: float, unit: str) -> Quantity:
    return Quantity(value, unit, "measured", "made up")


DEVICE = Device(
    name="made up",
    arch="sm_90",
    matrix={"bf16": quantity(1e15, "FLOP/s"), "fp8": quantity(2e15, "FLOP/s")},
    vector={"fp32": quantity(5e13, "FLOP/s")},
    memory_bandwidth=quantity(4e12, "B/s"),
    l2=quantity(2**25, "B"),
    l2_bandwidth=quantity(1e13, "B/s"),
    multiprocessors=quantity(100, "count"),
    graphics_clock=quantity(1e9, "Hz"),
    launch=quantity(2000, "ns"),
)


def test_each_bound_is_its_amount_over_its_rate_and_the_greatest_binds() -> None:
    work = Work(
        dtype="bf16", products=(Product(8_000_000_000),), vector_flops=10**9, special_ops=10**6, read_bytes=30_000_000,
        written_bytes=2_000_000, chain=500,
    )  # fmt: skip
    found = bounds_of(work, DEVICE)
    rate = SPECIAL_A_CYCLE * 100 * 1e9 + 5e13 / POLYNOMIAL_FLOPS
    assert found.times_ns == pytest.approx(
        {"launch": 2000, "dependency": 500 * CYCLES, "matrix": 8000, "vector": 20_000, "special": 1e15 / rate,
         "memory": 8000}
    )  # fmt: skip
    assert (found.binding, found.bound_ns) == ("vector", 20_000)
    assert found.memory_warm_ns == pytest.approx(3200)
    assert found.sources["memory"] == "measured"


def test_what_does_not_fit_the_cache_has_no_warm_bound() -> None:
    assert bounds_of(Work(read_bytes=2**26), DEVICE).memory_warm_ns is None


def test_what_a_device_does_not_tell_is_none_and_nothing_to_do_is_zero() -> None:
    found = bounds_of(Work(vector_flops=10, read_bytes=10), Device(name="bare"))
    assert found.times_ns == {
        "launch": None, "dependency": 0.0, "matrix": 0.0, "vector": None, "special": 0.0, "memory": None,
    }  # fmt: skip
    assert (found.binding, found.sources) == ("unknown", {})


@pytest.mark.parametrize(
    ("product", "flops"),
    [
        (Product(2 * 100 * 72 * 72, K=72), 2 * 100 * 72 * 80),  # depth 72 in steps of 16
        (Product(2 * 100 * 72 * 72, N=72), 2 * 100 * 72 * 72),  # 72 is nine times 8
        (Product(2 * 9 * 64 * 64, M=9), 2 * 16 * 64 * 64),
        (Product(2 * 9 * 20 * 64, M=9, N=20), 2 * 16 * 24 * 64),
        (Product(2 * 20 * 9 * 64, M=20, N=9), 2 * 24 * 16 * 64),  # either operand may be the left one
    ],
)
def test_sizes_are_padded_to_what_the_instructions_multiply(product: Product, flops: int) -> None:
    assert min(product.padded(tile) for tile in tiles("sm_90", "bf16")) == flops


def test_a_product_of_one_row_is_no_slower_than_on_vector_units() -> None:
    work = Work(dtype="bf16", products=(Product(2 * 1 * 64, M=1, N=1, K=64),))
    lean = Device(name="lean", arch="gfx942", matrix={"bf16": quantity(1e14, "FLOP/s")}, vector=dict(DEVICE.vector))
    assert bounds_of(work, lean).times_ns["matrix"] == pytest.approx(1e9 * 128 / 5e13)


@pytest.mark.parametrize(
    ("arch", "dtype", "K"),
    [("sm_80", "bf16", 16), ("sm_90", "fp8", 32), ("sm_100", "fp4", 64), ("gfx942", "fp8", 32), ("sm_70", "fp16", 1)],
)
def test_depths_follow_from_the_dtype(arch: str, dtype: str, K: int) -> None:
    assert {tile["K"] for tile in tiles(arch, dtype)} == {K}


def test_a_depth_without_a_known_architecture_is_not_padded() -> None:
    assert tiles(None, "bf16") == tiles("apple", "bf16") == tiles("sm_90", None)


@pytest.mark.parametrize(("tokens", "experts", "top_k", "used"), [(1, 128, 8, 8), (32, 256, 8, 164), (9999, 8, 2, 8)])
def test_experts_in_use_are_those_expected_of_even_routing(tokens: int, experts: int, top_k: int, used: int) -> None:
    assert active_experts(tokens, experts, top_k) == used
