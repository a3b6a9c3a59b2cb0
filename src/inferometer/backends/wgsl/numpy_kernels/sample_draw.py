"""The next token, drawn. V vocabulary, N threads, S tokens of a thread's segment.

Sums are float32 in the kernel's order: threads take every N-th token, 16 lanes every 16th thread. What differs is `exp`
in its last digits: where top_p or the draw falls within some 1e-6 of a boundary, a device may find the token next to
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.argmax_final import most_probable, step_on
from inferometer.backends.wgsl.numpy_kernels.argmax_partial import ordered, penalised

BOUND = np.float32(1e35)
LANES, WAYS = 16, 16


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """As `argmax_final` where the temperature is 0."""
    V, threads = int(constants["V"]), int(constants["THREADS"])
    sampling, state = arrays["sampling"], arrays["state"]
    token = most_probable(arrays["partials"], int(constants["GROUPS"]))
    if sampling[0]:
        row = _Row(penalised(arrays["logits"][:V], arrays["seen"][:V], sampling), sampling.view(np.float32)[0], threads)
        top_k, top_p = int(sampling[1]), sampling.view(np.float32)[2]
        if 0 < top_k < V:
            row.keep_count(top_k)
        if top_p < 1:
            row.keep_share(top_p)
        token = row.draw(uniform(int(sampling[3]), int(state[2])), token)
    step_on(arrays, token)


def uniform(seed: int, step: int) -> Any:
    """Float32 in [0, 1) for a step of a seed: the upper 24 bits of a hash."""
    return np.float32((_pcg((step + _pcg(seed)) & 0xFFFFFFFF) >> 8) * 2.0**-24)


def _pcg(number: int) -> int:
    """PCG-RXS-M-XS-32 as a hash of 32 bits (Jarzynski and Olano, JCGT 9(3), 2020)."""
    state = (number * 747796405 + 2891336453) & 0xFFFFFFFF
    word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & 0xFFFFFFFF
    return (word >> 22) ^ word


@dataclass
class _Reached:
    """A key, the sums of greater keys and with it, and what they were to reach."""

    key: int
    above: Any
    sum: Any
    wanted: Any


class _Row:
    """Logits of one row, and what is kept of them."""

    def __init__(self, logits_V: Any, temperature: Any, threads: int) -> None:
        self._threads = threads
        is_number = ~np.isnan(logits_V)
        clamped_V = np.clip(np.where(is_number, logits_V, 0), -BOUND, BOUND)
        self._key_V = np.where(is_number, ordered(clamped_V.view(np.uint32)), np.uint32(0))
        largest = clamped_V[is_number].max() if is_number.any() else np.float32(0)
        weight_V = np.exp(np.maximum((clamped_V - largest) / temperature, np.float32(-200)))
        self._weight_V = np.where(is_number, weight_V, np.float32(0))
        self._kept_V = is_number

    def keep_count(self, number: int) -> None:
        """The `number` most probable; of equals, the first."""
        ones_V = np.ones_like(self._weight_V)
        self._keep(self._reach(ones_V, number=np.float32(number)), each=np.float32(1))

    def keep_share(self, share: Any) -> None:
        """The fewest whose weights add up to `share` of all that are kept."""
        reached = self._reach(self._weight_V, share=share)
        equal_V = self._key_V == reached.key
        each = self._weight_V[equal_V][0] if equal_V.any() else np.float32(0)
        self._keep(reached, each=max(each, np.float32(1e-37)))

    def draw(self, share: Any, backup: int) -> int:
        """The first at which the running sum passes `share` of the whole; `backup` where nothing is kept."""
        weight_V = np.where(self._kept_V, self._weight_V, np.float32(0))
        sum_N = self._segments(weight_V).cumsum(-1)[:, -1]
        running_N = sum_N.cumsum()
        goal = share * running_N[-1]
        filled = np.flatnonzero(sum_N)
        if not filled.size:
            return backup
        passing = filled[running_N[filled] > goal]
        segment = passing[0] if passing.size else filled[-1]
        before = running_N[segment - 1] if segment else np.float32(0)
        weight_S = self._segments(weight_V)[segment]
        running_S = np.concatenate([[before], weight_S]).astype(np.float32).cumsum()[1:]
        nonzero = np.flatnonzero(weight_S)
        passing = nonzero[running_S[nonzero] > goal]
        return int(segment * weight_S.size + (passing[0] if passing.size else nonzero[-1]))

    def _reach(self, weight_V: Any, *, number: Any = None, share: Any = None) -> _Reached:
        """The greatest key such that what is kept and has it or a greater one adds up to the number, or the share."""
        weight_V = np.where(self._kept_V, weight_V, np.float32(0))
        found = _Reached(0, np.float32(0), np.float32(0), number)
        for shift in range(28, -1, -4):
            start = found.key
            for way in range(WAYS):
                candidate = start + (way << shift)
                total = self._sum(np.where(self._key_V >= candidate, weight_V, np.float32(0)))
                if found.wanted is None:
                    found.wanted = share * total
                if way and total < found.wanted:
                    found.above = total
                    break
                found.key, found.sum = candidate, total
            if number is not None and found.sum == number:
                break
        return found

    def _keep(self, reached: _Reached, *, each: Any) -> None:
        rank = max(1.0, np.ceil((reached.wanted - reached.above) / each))
        equal_V = self._kept_V & (self._key_V == reached.key)
        if rank < (reached.sum - reached.above) / each - 0.5:
            equal_V &= equal_V.cumsum() <= rank
        self._kept_V = (self._kept_V & (self._key_V > reached.key)) | equal_V

    def _sum(self, weight_V: Any) -> Any:
        """In the order of the kernel: of a thread, of a lane, of all."""
        padded = np.zeros(-(-weight_V.size // self._threads) * self._threads, np.float32)
        padded[: weight_V.size] = weight_V
        sum_N = _in_order(padded.reshape(-1, self._threads))
        lanes = min(LANES, self._threads)
        return _in_order(_in_order(sum_N.reshape(-1, lanes))[:, None])[0]

    def _segments(self, weight_V: Any) -> Any:
        """[N, S], zeros after the last token."""
        size = -(-weight_V.size // self._threads)
        padded = np.zeros((self._threads, size), np.float32)
        padded.reshape(-1)[: weight_V.size] = weight_V
        return padded


def _in_order(rows: Any) -> Any:
    """Sums over the first axis, one row after another."""
    return rows.cumsum(0)[-1]
