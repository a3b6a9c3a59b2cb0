"""Counters over time of both runs, each run from its own start; those of ranked causes stand with the causes.

The samples of a tick stand in `counters`, which shows one run.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Block, Part, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._counter_curves import CURVES, curve, curved_causes, run_start

MOST_METRICS = 12
_TITLE = "Counters of both runs"
_NAMED = 20  # metrics that are listed and not drawn
_LACKING = "A counter that both runs have, with times: clocks, load, traffic or memory of the host or the devices."
_Key = tuple[str, str]


def build(look: PageData) -> Block | None:
    """A chart per metric, other causes first, and which metrics are not drawn."""
    found = look.comparison
    if found is None or look.candidate is None:
        return None
    base, candidate = ({entity.key: entity for entity in run} for run in look.entities)
    starts_ns = run_start(look.base.trace), run_start(look.candidate.trace)
    drawn: list[Part] = []
    flat, untimed, others = [], [], []
    elsewhere = {(cause.metric, cause.device) for cause in curved_causes(found)}
    for key in _ranked(found, base, candidate):
        pair = base[key], candidate[key]
        if key in elsewhere:
            continue
        if pair[0].times_ns is None or pair[1].times_ns is None:
            untimed.append(key)
        elif _is_flat(*pair):
            flat.append(key)
        elif len(drawn) == MOST_METRICS:
            others.append(key)
        else:
            drawn += curve(found, pair, starts_ns)
    rest = [*_not_drawn(flat, untimed, others)]
    if not drawn:
        if not elsewhere:
            return Block("compared_counters", _TITLE, lacking=_LACKING)
        return Block("compared_counters", _TITLE, rest) if rest else None
    words = [CURVES, *(["Those of ranked causes are in the section of causes."] if elsewhere else [])]
    return Block("compared_counters", _TITLE, [Words(" ".join(words), "note"), *drawn, *rest])


def _ranked(found: Comparison, base: dict[_Key, Entity], candidate: dict[_Key, Entity]) -> list[_Key]:
    """Causes in their order, then effects, then context; of what both runs have, in one unit."""
    causes = [(cause.metric, cause.device) for cause in found.causes]
    kinds = {kind: i for i, kind in enumerate(("cause", "effect", "context"))}
    rest = sorted((key for key in base if key not in causes), key=lambda key: kinds[base[key].role.kind])
    both = [key for key in [*causes, *rest] if key in base and key in candidate]
    return [key for key in both if base[key].unit == candidate[key].unit and len(base[key].values)]


def _is_flat(base: Entity, candidate: Entity) -> bool:
    """Whether nothing can be seen: one value in both runs."""
    return float(np.ptp(np.concatenate((base.values, candidate.values)))) == 0


def _not_drawn(flat: Sequence[_Key], untimed: Sequence[_Key], others: Sequence[_Key]) -> Iterator[Part]:
    for words, keys in (
        ("One value all the time, the same in both runs", flat),
        ("Without times in one of the runs", untimed),
        (f"Not drawn, since {MOST_METRICS} are", others),
    ):
        if keys:
            more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
            yield Words(
                f"{words}: {', '.join(f'{metric} on {device}' for metric, device in keys[:_NAMED])}{more}.", "note"
            )


SECTION = PageSection("compared_counters", build, after="causes")
