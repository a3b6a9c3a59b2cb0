"""What a call takes: as the published catalogue counts it, and the least that any implementation must do.

Plain integers, no torch. A multiply and an add are two FLOPs; anything else that gives a number is one.
"""

from fractions import Fraction
from math import ceil

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """Work and bytes as the published catalogue has them: of an eager reference that copies what it updates.

    `flops` counts products of matrices, `+ - * /` (1 per element), SiLU (4), softmax (4 per element, less one per row),
    layer norm (7), means (1 an element), sums (1 an element less one an output); nothing else. None, where a random
    draw decides: see `Operator.published_cost`.
    """

    flops: int | None
    read_bytes: int
    written_bytes: int | None


class Tile(msgspec.Struct, frozen=True):
    """What instructions multiply at once: cells of M x N, so many `cells` side by side, K deep."""

    M: int = 1
    N: int = 1
    K: int = 1
    cells: int = 1


class Product(msgspec.Struct, frozen=True):
    """Products of matrices, rows M by columns N over a depth K, any number of them: `flops` exactly.

    A size that is given is rounded up to what the device's instructions multiply at once. One that is None needs no
    rounding: a kernel can lay out that side freely, or it is large.
    """

    flops: int
    M: int | None = None
    N: int | None = None
    K: int | None = None

    def padded(self, tile: Tile) -> int:
        """FLOPs with every given size rounded up; where both sides are given, to whole instructions."""
        rows, columns, depth = _steps(self.M, tile.M), _steps(self.N, tile.N), _steps(self.K, tile.K)
        area = rows * columns * (self.M or 1) * (self.N or 1)
        if self.M and self.N:
            least = tile.M * tile.N * tile.cells
            area = Fraction(ceil(area / least) * least)
        return ceil(self.flops * depth * area / ((self.M or 1) * (self.N or 1)))


def _steps(size: int | None, step: int) -> Fraction:
    """How many times a size is larger when it is rounded up to whole steps; 1 of one that isn't given."""
    return Fraction(ceil(size / step) * step, size) if size else Fraction(1)


class Work(msgspec.Struct, frozen=True):
    """The least that any implementation must do: what bounds are made of.

    Attributes:
        dtype: What the matrix units multiply, as `hardware` names it; None where there are no products.
        products: What matrix units can do.
        vector_flops: The other arithmetic, in fp32 on vector units.
        special_ops: exp, rsqrt, sin, log, tanh and their like among it; not part of `vector_flops`.
        read_bytes: Inputs that it needs, once each: of a cache or pool only the rows that it touches.
        written_bytes: Outputs, updated in place where production does.
        link_bytes: What crosses the link to other devices, in the busier direction; of collectives alone.
        chain: Arithmetic instructions of which each needs the one before: of a recurrence, steps times those of one.
        assumes: What the shape doesn't say: how tokens are spread over experts.
    """

    dtype: str | None = None
    products: tuple[Product, ...] = ()
    vector_flops: int = 0
    special_ops: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    link_bytes: int = 0
    chain: int = 0
    assumes: tuple[str, ...] = ()

    @property
    def matrix_flops(self) -> int:
        """Flops of all matrix products, without padding."""
        return sum(product.flops for product in self.products)

    @property
    def moved_bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.written_bytes


def active_experts(tokens: int, experts: int, top_k: int) -> int:
    """Experts that at least one of `tokens` is expected to use when each draws `top_k` of them evenly, rounded up."""
    drawn = experts * (1 - (1 - top_k / experts) ** tokens)
    return min(experts, tokens * top_k, ceil(drawn))
