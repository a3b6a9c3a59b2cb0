"""Bounds from hand-made work and devices: which binds, what is padded, what isn't known."""

import pytest

from inferometer.hardware.device import Device, Kind, Quantity
from inferometer.operators.bounds import Bounds, bounds_of, padded, tiles
from inferometer.operators.work import Product, Work, active_experts


def quantity(value: float, unit: str, kind: Kind = "measured") -> Quantity:
    return Quantity(value, unit, kind, "made up")


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
    assert found.times_ns == pytest.approx(
        {"launch": 2000, "dependency": 2000, "matrix": 8000, "vector": 20_000, "special": 1e9 * 1e6 / 6.6e12,
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
    assert padded(product, DEVICE, "bf16") == flops


def test_a_product_of_one_row_is_no_slower_than_on_vector_units() -> None:
    work = Work(dtype="bf16", products=(Product(2 * 1 * 64, M=1, N=1, K=64),))
    lean = Device(name="lean", arch="gfx942", matrix={"bf16": quantity(1e14, "FLOP/s")}, vector=dict(DEVICE.vector))
    assert bounds_of(work, lean).times_ns["matrix"] == pytest.approx(1e9 * 128 / 5e13)


NVIDIA = [{"M": 16, "N": 8}, {"M": 8, "N": 16}]  # mma.sync m16n8kX: PTX ISA, warp-level matrix instructions
CDNA = [{"M": 16, "N": 16}]  # v_mfma_f32_16x16xX: AMD matrix instruction calculator
NONE = [{"M": 1, "N": 1}]


@pytest.mark.parametrize(
    ("arch", "dtype", "sides", "K"),
    [
        ("sm_80", "fp64", NVIDIA, 4), ("sm_80", "fp32", NVIDIA, 8), ("sm_80", "tf32", NVIDIA, 8),
        ("sm_80", "bf16", NVIDIA, 16), ("sm_86", "fp16", NVIDIA, 16), ("sm_90", "fp8", NVIDIA, 32),
        ("sm_120", "fp6", NVIDIA, 32), ("sm_100", "fp4", NVIDIA, 64), ("sm_89", "int8", NVIDIA, 32),
        ("sm_80", "int4", NVIDIA, 64), ("sm_90a", "bf16", NVIDIA, 16), ("sm_103f", "bf16", NVIDIA, 16),
        ("gfx90a", "bf16", CDNA, 16), ("gfx942", "fp8", CDNA, 32), ("gfx950", "fp4", CDNA, 64),
        ("sm_75", "fp16", NONE, 1), ("sm_79", "fp16", NONE, 1), ("gfx1100", "fp16", NONE, 1), ("sm_90", "fp2", NONE, 1),
    ],
)  # fmt: skip
def test_an_instruction_s_sides_follow_from_the_architecture_and_its_depth_from_the_dtype(
    arch: str, dtype: str, sides: list[dict[str, int]], K: int
) -> None:
    assert list(tiles(arch, dtype)) == [{**side, "K": K} for side in sides]


def test_a_dependent_instruction_takes_four_cycles() -> None:
    """Jia et al., 2018, arXiv:1804.06826, table 4.1: 4 cycles on Volta; CDNA 3 ISA, chapter 1: 64 lanes by 16 units."""
    clocked = Device(name="clocked", graphics_clock=quantity(2e9, "Hz"))
    assert bounds_of(Work(chain=1_000_000), clocked).times_ns["dependency"] == 2_000_000


def test_a_multiprocessor_gives_sixteen_special_results_a_cycle() -> None:
    """CUDA programming guide, table of throughputs: 16 of compute capability 7.0 to 9.0."""
    lone = Device(name="lone", multiprocessors=quantity(2, "count"), graphics_clock=quantity(1e9, "Hz"))
    assert bounds_of(Work(special_ops=320), lone).times_ns["special"] == 10


def test_special_functions_run_as_ten_vector_flops_beside() -> None:
    """An exp2 of a floor, a subtraction, three multiply-adds and two for the exponent: 1 + 1 + 6 + 2."""
    both = Device(
        name="both", multiprocessors=quantity(1, "count"), graphics_clock=quantity(1e9, "Hz"),
        vector={"fp32": quantity(1.6e11, "FLOP/s")},
    )  # fmt: skip
    assert bounds_of(Work(special_ops=3200), both).times_ns["special"] == 100  # 16 + 16 a ns


@pytest.mark.parametrize(
    "half",
    [
        Device(name="half", multiprocessors=quantity(1, "count")),
        Device(name="half", graphics_clock=quantity(1e9, "Hz")),
    ],
)
def test_special_functions_are_unknown_without_the_count_or_the_clock(half: Device) -> None:
    assert bounds_of(Work(special_ops=1), half).times_ns["special"] is None


def test_a_dtype_without_matrix_units_multiplies_on_vector_units() -> None:
    cpu = Device(name="cpu", vector={"fp64": quantity(1e12, "FLOP/s", "datasheet")})
    found = bounds_of(Work(dtype="fp64", products=(Product(10**6),)), cpu)
    assert (found.times_ns["matrix"], found.sources["matrix"]) == (1000, "datasheet")


@pytest.mark.parametrize("dtype", [None, "fp4"])
def test_products_of_a_dtype_without_a_peak_are_unknown(dtype: str | None) -> None:
    assert bounds_of(Work(dtype=dtype, products=(Product(1),)), DEVICE).times_ns["matrix"] is None


def test_products_add_up_each_padded() -> None:
    work = Work(dtype="bf16", products=(Product(2 * 9 * 64 * 64, M=9), Product(10**6)))
    assert padded(work.products[0], DEVICE, "bf16") == 2 * 16 * 64 * 64
    assert bounds_of(work, DEVICE).times_ns["matrix"] == pytest.approx((2 * 16 * 64 * 64 + 10**6) / 1e6)
    bare = Device(name="bare", arch="sm_90", matrix=dict(DEVICE.matrix))
    assert bounds_of(work, bare).times_ns["matrix"] == pytest.approx((2 * 16 * 64 * 64 + 10**6) / 1e6)


def test_every_bound_that_takes_time_says_what_its_data_are() -> None:
    device = Device(
        name="mixed", arch="sm_90", matrix={"bf16": quantity(1e15, "FLOP/s", "datasheet")},
        vector={"fp32": quantity(5e13, "FLOP/s", "derived")}, memory_bandwidth=quantity(4e12, "B/s"),
        multiprocessors=quantity(100, "count"), graphics_clock=quantity(1e9, "Hz", "datasheet"),
        launch=quantity(2000, "ns", "derived"),
    )  # fmt: skip
    work = Work(
        dtype="bf16", products=(Product(1),), vector_flops=1, special_ops=1, read_bytes=1, chain=1
    )  # fmt: skip
    assert bounds_of(work, device).sources == {
        "launch": "derived", "dependency": "datasheet", "matrix": "datasheet", "vector": "derived",
        "special": "datasheet", "memory": "measured",
    }  # fmt: skip
    assert bounds_of(Work(), device).sources == {"launch": "derived"}


@pytest.mark.parametrize(("read_bytes", "warm_ns"), [(2**25, 2**25 / 1e4), (2**25 + 1, None)])
def test_what_just_fits_the_cache_has_a_warm_bound(read_bytes: int, warm_ns: float | None) -> None:
    assert bounds_of(Work(read_bytes=read_bytes), DEVICE).memory_warm_ns == warm_ns


def test_without_a_known_cache_there_is_no_warm_bound() -> None:
    device = Device(name="no size", l2_bandwidth=quantity(1e13, "B/s"))
    assert bounds_of(Work(read_bytes=1), device).memory_warm_ns is None


def test_of_equal_bounds_the_first_binds_and_zeros_bind_nothing() -> None:
    assert Bounds({"matrix": 5.0, "memory": 5.0}, None).binding == "matrix"
    nothing = Bounds({"launch": None, "memory": 0.0}, None)
    assert (nothing.binding, nothing.bound_ns, nothing.sources) == ("unknown", None, {})


def test_a_depth_without_a_known_architecture_is_not_padded() -> None:
    assert tiles(None, "bf16") == tiles("apple", "bf16") == tiles("sm_90", None)


@pytest.mark.parametrize(("tokens", "experts", "top_k", "used"), [(1, 128, 8, 8), (32, 256, 8, 164), (9999, 8, 2, 8)])
def test_experts_in_use_are_those_expected_of_even_routing(tokens: int, experts: int, top_k: int, used: int) -> None:
    assert active_experts(tokens, experts, top_k) == used
