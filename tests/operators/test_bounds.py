"""Bounds from hand-made work and devices: which binds, what is padded, what isn't known."""

import pytest

from inferometer.hardware.device import Device, Kind, Quantity
from inferometer.hardware.known import require_device
from inferometer.operators import require_operator
from inferometer.operators.bounds import BOUNDS, Bounds, bounds_of, padded, tile_of
from inferometer.operators.work import Product, Tile, Work, active_experts


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
        {"dependency": 2000, "matrix": 8000, "vector": 20_000, "special": 1e9 * 1e6 / 6.6e12,
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
        "dependency": 0.0, "matrix": 0.0, "vector": None, "special": 0.0, "memory": None,
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
        (Product(2 * 24 * 24 * 64, M=24, N=24), 2 * 640 * 64),  # four instructions and a half: both ways in one product
        (Product(2 * 1 * 1 * 64, M=1, N=1), 2 * 16 * 8 * 64),
    ],
)
def test_sizes_are_padded_to_what_the_instructions_multiply(product: Product, flops: int) -> None:
    assert padded(product, DEVICE, "bf16") == flops


def test_a_product_of_one_row_is_no_slower_than_on_vector_units() -> None:
    work = Work(dtype="bf16", products=(Product(2 * 1 * 64, M=1, N=1, K=64),))
    lean = Device(name="lean", arch="gfx942", matrix={"bf16": quantity(1e14, "FLOP/s")}, vector=dict(DEVICE.vector))
    assert bounds_of(work, lean).times_ns["matrix"] == pytest.approx(1e9 * 128 / 5e13)


NONE = (1, 1, 1)


@pytest.mark.parametrize(
    ("arch", "dtype", "cell", "K"),
    [
        ("sm_80", "fp64", (8, 8, 2), 4), ("sm_80", "fp32", (8, 8, 2), 8), ("sm_80", "tf32", (8, 8, 2), 8),
        ("sm_80", "bf16", (8, 8, 2), 16), ("sm_86", "fp16", (8, 8, 2), 16), ("sm_90", "fp8", (8, 8, 2), 32),
        ("sm_120", "fp6", (8, 8, 2), 32), ("sm_100", "fp4", (8, 8, 2), 64), ("sm_89", "int8", (8, 8, 2), 32),
        ("sm_80", "int4", (8, 8, 2), 64), ("sm_90a", "bf16", (8, 8, 2), 16), ("sm_103f", "bf16", (8, 8, 2), 16),
        # AMD matrix instruction calculator: v_mfma_f32_32x32x8bf16_1k, v_mfma_f64_16x16x4f64, v_mfma_f32_32x32x2f32,
        # v_mfma_i32_32x32x8i8, v_mfma_f32_32x32x4_xf32, v_mfma_f32_32x32x16_fp8_fp8, v_mfma_i32_32x32x16_i8,
        # v_mfma_scale_f32_32x32x64_f8f6f4
        ("gfx90a", "bf16", (16, 16, 1), 8), ("gfx90a", "fp64", (16, 16, 1), 4), ("gfx90a", "fp32", (16, 16, 1), 2),
        ("gfx90a", "int8", (16, 16, 1), 8), ("gfx90a", "fp8", NONE, 1), ("gfx90a", "tf32", NONE, 1),
        ("gfx942", "bf16", (16, 16, 1), 8), ("gfx942", "fp16", (16, 16, 1), 8), ("gfx942", "tf32", (16, 16, 1), 4),
        ("gfx942", "fp8", (16, 16, 1), 16), ("gfx942", "int8", (16, 16, 1), 16), ("gfx942", "fp4", NONE, 1),
        ("gfx950", "bf16", (16, 16, 1), 8), ("gfx950", "fp8", (16, 16, 1), 16), ("gfx950", "fp4", (16, 16, 1), 64),
        ("gfx950", "fp6", (16, 16, 1), 64), ("gfx950", "tf32", NONE, 1),
        ("sm_75", "fp16", NONE, 1), ("sm_79", "fp16", NONE, 1), ("gfx1100", "fp16", NONE, 1), ("sm_90", "fp2", NONE, 1),
    ],
)  # fmt: skip
def test_what_instructions_multiply_at_once_follows_from_architecture_and_dtype(
    arch: str, dtype: str, cell: tuple[int, int, int], K: int
) -> None:
    M, N, cells = cell
    assert tile_of(arch, dtype) == Tile(M=M, N=N, K=K, cells=cells)


def test_a_head_of_72_is_no_waste_in_depth_on_gfx942() -> None:
    """v_mfma_f32_32x32x8: 72 is nine times 8. Of the columns of the second product 72 are five times 16, 80."""
    device = Device(name="made up", arch="gfx942")
    assert padded(Product(2 * 64 * 64 * 72, K=72), device, "bf16") == 2 * 64 * 64 * 72
    assert padded(Product(2 * 64 * 64 * 72, N=72), device, "bf16") == 2 * 64 * 64 * 80


def test_a_launch_is_a_reference_and_no_bound() -> None:
    quick, long = (bounds_of(Work(read_bytes=n), DEVICE) for n in (4_000, 4 * 2_000_000))
    assert (quick.bound_ns, quick.binding, quick.is_below_launch) == (1.0, "memory", True)
    assert (long.bound_ns, long.is_below_launch) == (2_000.0, False)  # as long as the launch isn't below it
    assert quick.launch == DEVICE.launch
    assert "launch" not in (*BOUNDS, *quick.times_ns, *quick.sources)
    assert bounds_of(Work(), DEVICE).bound_ns is None
    assert not bounds_of(Work(read_bytes=1), Device(name="bare")).is_below_launch


def test_blocks_of_experts_are_bound_by_their_bytes_whatever_a_launch_takes() -> None:
    """`moe_align_block_size` 5, deployed at 400 μs, among them."""
    operator, device = require_operator("moe_align_block_size"), require_device("XPU-A")
    for shape in operator.catalogue().shapes:
        found = bounds_of(operator.work(**shape.args), device)
        assert found.binding == "memory"
        assert found.bound_ns == pytest.approx(1e9 * operator.work(**shape.args).moved_bytes / 5.3e12)


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
        "dependency": "datasheet", "matrix": "datasheet", "vector": "derived", "special": "datasheet",
        "memory": "measured",
    }  # fmt: skip
    assert bounds_of(Work(), device).sources == {}


@pytest.mark.parametrize(("read_bytes", "warm_ns"), [(2**25, 2**25 / 1e4), (2**25 + 1, None)])
def test_what_just_fits_the_cache_has_a_warm_bound(read_bytes: int, warm_ns: float | None) -> None:
    assert bounds_of(Work(read_bytes=read_bytes), DEVICE).memory_warm_ns == warm_ns


def test_without_a_known_cache_there_is_no_warm_bound() -> None:
    device = Device(name="no size", l2_bandwidth=quantity(1e13, "B/s"))
    assert bounds_of(Work(read_bytes=1), device).memory_warm_ns is None


def test_of_equal_bounds_the_first_binds_and_zeros_bind_nothing() -> None:
    assert Bounds({"matrix": 5.0, "memory": 5.0}, None).binding == "matrix"
    nothing = Bounds({"matrix": None, "memory": 0.0}, None)
    assert (nothing.binding, nothing.bound_ns, nothing.sources) == ("unknown", None, {})


def test_a_depth_without_a_known_architecture_is_not_padded() -> None:
    assert tile_of(None, "bf16") == tile_of("apple", "bf16") == tile_of("sm_90", None) == Tile()


@pytest.mark.parametrize(("tokens", "experts", "top_k", "used"), [(1, 128, 8, 8), (32, 256, 8, 164), (9999, 8, 2, 8)])
def test_experts_in_use_are_those_expected_of_even_routing(tokens: int, experts: int, top_k: int, used: int) -> None:
    assert active_experts(tokens, experts, top_k) == used
