"""How large what is copied and multiplied must be, so that memory and units are measured and nothing else."""

from collections.abc import Callable

from inferometer.errors import Unavailable

_LEAST_COPY = 128 << 20  # of one buffer
_TIMES_CACHE = 3
_SHARE_OF_FREE = 8  # a buffer takes at most one of so many parts
_STEP = 256  # of a product: whole tiles on all hardware
_MIB = 1 << 20
_MOST_TRIES = 20


def far_copy_bytes(cache_bytes: int | None, free_bytes: int | None, *, least: int = _LEAST_COPY) -> int:
    """The size of a buffer that caches can't hold, in whole MiB.

    Raises:
        Unavailable: There isn't the memory for it.
    """
    wanted = max(least, _TIMES_CACHE * (cache_bytes or 0))
    if free_bytes is not None and wanted > free_bytes // _SHARE_OF_FREE:
        size = megabytes(_SHARE_OF_FREE * wanted)
        raise Unavailable(f"a copy much larger than the caches wants {size} of free memory, of {megabytes(free_bytes)}")
    return wanted // _MIB * _MIB


def near_copy_bytes(cache_bytes: int | None) -> int:
    """The size of a buffer of which two lie in the caches: a quarter of them.

    Raises:
        Unavailable: Nobody says how large they are.
    """
    if cache_bytes is None:
        raise Unavailable("nobody says how large the cache is")
    return cache_bytes // 4


def product_size(run_of: Callable[[int], Callable[[int], float]], wanted_ns: int, limits: tuple[int, int]) -> int:
    """The size of a square product that takes the time wanted, from how long smaller ones take.

    Args:
        run_of: Of a size, the `run` of a job that multiplies so.
        wanted_ns: The time.
        limits: The least and the greatest size, multiples of 256.
    """
    size, greatest = limits
    took_ns = _least_time(run_of(size), wanted_ns)
    while took_ns < wanted_ns / 10 and 2 * size <= greatest:
        size *= 2
        took_ns = _least_time(run_of(size), wanted_ns)
    scaled: float = size * (wanted_ns / max(took_ns, 1.0)) ** (1 / 3)
    return min(greatest, max(limits[0], round(scaled / _STEP) * _STEP))


def megabytes(size_bytes: int) -> str:
    """A size for the source of a value."""
    return f"{size_bytes / _MIB:.4g} MiB"


def _least_time(run: Callable[[int], float], enough_ns: int) -> float:
    """Of some calls: many may have had to wait for other work; the first also chooses a kernel."""
    times = [run(1) for _ in range(3)]
    while sum(times) < enough_ns and len(times) < _MOST_TRIES:
        times.append(run(1))
    return min(times)
