"""Lower bounds of a call's time on a device: one for each thing that may limit it, each with its source.

The time can't be below any of them, so the bound is the greatest and `binding` names it. What the device's data lacks
makes that bound None, never 0. What a launch takes is in none of them: figures of it are times that somebody measured,
which the next driver, graph or persistent kernel may undercut. `launch` stands next to the bounds as a reference.

- dependency: a chain of instructions that each need the one before, at the clock; CYCLES for each.
- matrix: products, each size rounded up to the instructions' sizes, at the peak of the matrix units for the dtype; or
  without rounding at the peak of fp32 on vector units, where that is quicker (a row or two).
- vector: other arithmetic at the peak of fp32.
- special: exp, rsqrt and the like: on the special-function units, and next to them by polynomials on the vector units.
- memory: bytes that must move, at the bandwidth of device memory; `memory_warm` the same from L2, where they fit.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from inferometer.hardware.device import Device, Quantity
from inferometer.operators.work import Product, Tile, Work

Bound = Literal["dependency", "matrix", "vector", "special", "memory", "unknown"]
BOUNDS: tuple[Bound, ...] = ("dependency", "matrix", "vector", "special", "memory")

CYCLES = 4
"""Least cycles from one dependent fp32 instruction to the next, on NVIDIA's since Volta (Jia et al., 2018,
arXiv:1804.06826, table 4.1) and on AMD's CDNA, whose 64 lanes go through 16 units (CDNA 3 ISA, chapter 1)."""

SPECIAL_A_CYCLE = 16
"""exp2, rsqrt, sin of fp32 a cycle and multiprocessor: CUDA programming guide, table of throughputs, compute
capability 7.0 to 9.0; on CDNA a quarter of 64 lanes."""

POLYNOMIAL_FLOPS = 10
"""FLOPs of an exp2 on vector units, counted low: a floor, a subtraction, a cubic's three multiply-adds, two for the
exponent. Kernels do that where the special-function units are what limits them, so those alone are no bound."""

_BITS = {"fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp6": 8, "fp4": 4, "int8": 8, "int4": 4}
_NVIDIA_K_BITS = 256  # of one instruction, whatever the dtype: 16 of bf16, 32 of fp8
_CDNA_2 = {"fp64": 4, "fp32": 2, "bf16": 8, "fp16": 8, "int8": 8}  # v_mfma_f32_32x32x8bf16_1k, v_mfma_f32_32x32x2f32
_CDNA_3 = {**_CDNA_2, "tf32": 4, "fp8": 16, "int8": 16}  # v_mfma_f32_32x32x16_fp8_fp8, v_mfma_i32_32x32x16_i8
_CDNA_4 = {**_CDNA_2, "fp8": 16, "int8": 16, "fp6": 64, "fp4": 64}  # v_mfma_scale_f32_32x32x64_f8f6f4
_CDNA_K = {"gfx90a": _CDNA_2, "gfx942": _CDNA_3, "gfx950": _CDNA_4}
"""The least depth of an instruction at the full rate of its kind, by dtype: that of 32 x 32, or of 16 x 16 for fp64."""


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of one call on one device, in ns; None: the device's data doesn't have them.

    `sources` says of each whether its device data are measured, derived or from a datasheet. `launch`: what a launch
    that does nothing takes on the device, as far as is known: a reference, and no bound.
    """

    times_ns: Mapping[Bound, float | None]
    memory_warm_ns: float | None
    sources: Mapping[Bound, str] = msgspec.field(default_factory=dict)
    launch: Quantity | None = None

    @property
    def is_below_launch(self) -> bool:
        """Whether a launch that does nothing takes longer than the bound: a call's time may be mostly its launch."""
        return self.launch is not None and (self.bound_ns or 0.0) < self.launch.value

    @property
    def bound_ns(self) -> float | None:
        """The greatest; None where nothing is known that takes time."""
        return max((time for time in self.times_ns.values() if time), default=None)

    @property
    def binding(self) -> Bound:
        """Which one that is; `unknown` where there is none."""
        longest = self.bound_ns
        if longest is None:
            return "unknown"
        return next(bound for bound, time in self.times_ns.items() if time == longest)


def bounds_of(work: Work, device: Device) -> Bounds:
    """All bounds of `work` on `device`."""
    matrix = _peak(device, work.dtype)
    vector = device.vector.get("fp32")
    special = _special_rate(device)
    clock = device.graphics_clock
    times: dict[Bound, float | None] = {
        "dependency": _time(work.chain * CYCLES, clock),
        "matrix": _matrix_ns(work, device, matrix, vector),
        "vector": _time(work.vector_flops, vector),
        "special": _special_ns(work.special_ops, special, vector),
        "memory": _time(work.moved_bytes, device.memory_bandwidth),
    }
    sources = {
        "dependency": clock, "matrix": matrix, "vector": vector, "special": clock, "memory": device.memory_bandwidth,
    }  # fmt: skip
    kinds = {bound: found.kind for bound in BOUNDS if times[bound] and (found := sources[bound]) is not None}
    fits = device.l2 is not None and work.moved_bytes <= device.l2.value
    warm_ns = _time(work.moved_bytes, device.l2_bandwidth) if fits else None
    return Bounds(times, warm_ns, kinds, device.launch)


def _peak(device: Device, dtype: str | None) -> Quantity | None:
    """Of the matrix units; of the vector units where the device has none for the dtype, as most CPUs."""
    found: Quantity | None = (device.matrix.get(dtype) or device.vector.get(dtype)) if dtype else None  # type: ignore[call-overload]
    return found


def _matrix_ns(work: Work, device: Device, matrix: Quantity | None, vector: Quantity | None) -> float | None:
    if not work.products:
        return 0.0
    if matrix is None:
        return None
    return sum(
        1e9 * min(
            padded(product, device, work.dtype) / matrix.value,
            product.flops / vector.value if vector else float("inf"),
        )
        for product in work.products
    )  # fmt: skip


def padded(product: Product, device: Device, dtype: str | None) -> int:
    """FLOPs of a product on the device's instructions, were all of them equally quick."""
    return product.padded(tile_of(device.arch, dtype))


def tile_of(arch: str | None, dtype: str | None) -> Tile:
    """What sizes are rounded up to: the least that an architecture's matrix instructions allow, alone or together.

    NVIDIA: mma.sync is 16 x 8 (PTX ISA, warp-level matrix instructions), and either operand may be the left one: two
    cells of 8 x 8; wgmma and tcgen05 are 64 x 8, which is never less. CDNA (AMD matrix instruction calculator): 16 x
    16, or 32 x 32 half as deep, and a kernel may take both for parts of a product; 4 x 4 is slower by four, and
    shallower ones by two, which is as much as rounding up. Others: 1.
    """
    bits = _BITS.get(dtype or "", 0)
    if not bits or arch is None:
        return Tile()
    if arch.startswith("sm_") and int(arch[3:].rstrip("af")) >= 80:
        return Tile(M=8, N=8, K=_NVIDIA_K_BITS // bits, cells=2)
    depth = _CDNA_K.get(arch, {}).get(dtype or "")
    return Tile(M=16, N=16, K=depth) if depth else Tile()


def _special_rate(device: Device) -> float | None:
    if device.multiprocessors is None or device.graphics_clock is None:
        return None
    return SPECIAL_A_CYCLE * device.multiprocessors.value * device.graphics_clock.value


def _special_ns(ops: int, rate: float | None, vector: Quantity | None) -> float | None:
    if not ops:
        return 0.0
    if rate is None:
        return None
    return 1e9 * ops / (rate + (vector.value / POLYNOMIAL_FLOPS if vector else 0.0))


def _time(amount: int, rate: Quantity | None) -> float | None:
    """In ns; 0 where there is nothing to do, whatever is known of the device."""
    if not amount:
        return 0.0
    return None if rate is None else 1e9 * amount / rate.value
