"""Whether a step prefills, decodes or does both, as far as its kernels show; unknown rather than wrong.

Attention kernels that only prefill or only decode show it. Kernels that do either show it by their surroundings: next
to others that only decode, or by the time of matrix products, which read all weights in decode however small the batch
and take many times as long once hundreds of tokens are computed.
"""

import numpy as np

from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.roles import Flags
from inferometer.analyses.steps.found.segments import Segments, Shares

UNKNOWN, PREFILL, DECODE, MIXED = range(4)
PHASES = (None, "prefill", "decode", "mixed")
_LONGER = 2.0  # times the matrix products of decode: a prompt's hundreds of rows against a batch's
_APART = 3.0  # between two kinds of steps where nothing else says: decode of other batch sizes differs by less
_ALIKE = 1.6  # from the shortest to the longest of them: in decode, reading the weights takes as long at any batch
_MOST_STEPS = (
    0.05,
    0.95,
)  # quantiles that stand for the shortest and longest: a warm-up or a disturbed step is neither
_LEAST_SHARE = 0.5  # of the attentions of a usual step: fewer are of a draft or an encoder, not of a phase


def find_phases(lane: DeviceLaunches, segments: Segments, *, is_training: bool) -> Numbers:
    """The phase of each step, a number of `PHASES`. Shape (steps,)."""
    if is_training:
        return np.full(len(segments.first), UNKNOWN, dtype=np.int64)
    roles = lane.roles
    decodes = _has(segments, roles.decode)
    prefills = _has(segments, roles.prefill)
    either = _has(segments, roles.either)
    gemm_ns = segments.times[:, roles.gemm[segments.roles]].sum(axis=1).astype(np.float64)
    phase = np.select([decodes & prefills, prefills, decodes], [MIXED, PREFILL, DECODE], default=UNKNOWN)
    if decodes.any():
        usual = np.median(gemm_ns[decodes & ~either]) if (decodes & ~either).any() else np.inf
        long = _per_body(gemm_ns, segments) > _LONGER * usual / np.median(segments.bodies[decodes])
        phase = np.where(either & long, np.where(decodes, MIXED, PREFILL), phase)
        return np.where(either & decodes & ~long, UNKNOWN, phase).astype(np.int64)
    if either.any() and not prefills.any():
        phase = np.where(_short(gemm_ns, segments) & either, DECODE, phase)
    return phase.astype(np.int64)


def _has(segments: Segments, flags: Flags) -> Flags:
    """Steps with such launches, in about as many layers as they have."""
    launches = segments.counts[:, flags[segments.roles]].sum(axis=1)
    return np.asarray(launches >= np.maximum(1, _LEAST_SHARE * segments.bodies))


def _per_body(times: Shares, segments: Segments) -> Shares:
    return np.asarray(times / np.maximum(segments.bodies, 1))


def _short(times: Shares, segments: Segments) -> Flags:
    """The shorter of two kinds of steps, where the times of their matrix products are far apart; else none.

    The longer kind may be prefill or mixed. The shorter must be of one length, else short prompts may be among them.
    """
    per_body = _per_body(times, segments)
    ordered = np.sort(per_body[per_body > 0])
    if len(ordered) < 2:
        return np.zeros(len(times), dtype=np.bool_)
    ratios = ordered[1:] / ordered[:-1]
    apart = np.flatnonzero(ratios >= _APART)
    if not len(apart):
        return np.zeros(len(times), dtype=np.bool_)
    shorter = ordered[: int(apart[0]) + 1]
    low, high = np.quantile(shorter, _MOST_STEPS)
    return np.asarray((per_body > 0) & (per_body <= shorter[-1]) & (high <= _ALIKE * low))
