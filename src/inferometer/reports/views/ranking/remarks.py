"""What a reader of a ranking has to know before believing it: what was left out, and what makes it doubtful."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from inferometer.bench.ranking.ranking import DeviceRanking, Ranked, Ranking
from inferometer.bench.ranking.shape_figures import Key, bound_of, has_launch_as_bound, key_of, sol_fraction
from inferometer.reports.views.view import remarks_of
from inferometer.units import format_counted, format_share

_MOST = 5  # of one kind
_APART = 1e-3  # bounds of one shape that differ by more are modelled otherwise


def ranking_remarks(ranking: Ranking) -> list[str]:
    """The most important first."""
    lines = []
    timed = [device for device in ranking.devices if not device.functional_only]
    if len(timed) > 1:
        lines.append("Devices are ranked apart: a time on one says nothing of another.")
    for device in ranking.devices:
        prefix = f"{device.title}: " if len(ranking.devices) > 1 else ""
        lines += [f"{prefix}{words}" for words in _of_device(device)]
    if ranking.differences is not None:
        lines += remarks_of(ranking.differences)
    return lines


def _of_device(found: DeviceRanking) -> Iterator[str]:
    yield from _left_out(found)
    if not found.functional_only:
        yield from _above(found)
        yield from _bounds(found)
        yield from _libraries(found)
        yield from _concerns(found)
    yield from _mixed(found)
    yield from _superseded(found)


def _left_out(found: DeviceRanking) -> Iterator[str]:
    if len(found.candidates) > 1 and not found.shapes:
        yield "No shape was run by all candidates: there is no order, and figures aren't of the same shapes."
    elif found.left_out:
        yield (
            f"Only the {count_shapes(found.shapes)} that all candidates ran count for the order; {found.left_out:,} "
            "that only some ran are left out of it."
        )


def _above(found: DeviceRanking) -> Iterator[str]:
    above = [
        (fraction.value, each)
        for each in found.results()
        if (fraction := sol_fraction(each)) is not None and fraction.value > 1
    ]
    if above:
        value, most = max(above, key=lambda pair: pair[0])
        yield (
            f"{count_shapes(len(above))} with S above 100 %, where sizes, peaks or cache state aren't as assumed; the "
            f"most, {format_share(value)}, is {most.operator}, {most.shape} of {most.candidate}."
        )


def _bounds(found: DeviceRanking) -> Iterator[str]:
    """One shape, several bounds: the runs were made by versions that model it differently."""
    bounds: dict[Key, list[float]] = defaultdict(list)
    for each in found.results():
        if (bound := bound_of(each)) is not None:
            bounds[key_of(each)].append(bound.bound_ns)
    apart = sum(max(own) > min(own) * (1 + _APART) for own in bounds.values())
    if apart:
        yield f"{count_shapes(apart)} with a bound that isn't the same in all runs: S of these can't be compared."
    older = len({key_of(each) for each in found.results() if has_launch_as_bound(each)})
    if older:
        yield (
            f"{count_shapes(older)} with what a launch takes in place of a bound, as older versions had it: these have "
            "no S. Run bench again for one."
        )


def _libraries(found: DeviceRanking) -> Iterator[str]:
    for each in [each for each in found.candidates if each.is_library][:_MOST]:
        yield f"{each.name}: marked library, as {format_share(each.own)} of its device time is in kernels of its own."


def _concerns(found: DeviceRanking) -> Iterator[str]:
    for each in found.candidates:
        timings = [timing for result in each.standing.results if (timing := result.timing("cold")) is not None]
        if unsteady := sum(not timing.steady for timing in timings):
            yield f"{each.name}, {count_shapes(unsteady)}: times didn't settle; the interval may be too narrow"
        for words, count in each.concerns.most_common(_MOST):
            yield f"{each.name}, {count_shapes(count)}: {words}"


def _mixed(found: DeviceRanking) -> Iterator[str]:
    """Candidates whose results are from several runs that differ."""
    for each in found.candidates:
        for what in _differing(each):
            yield f"{each.name} is put together from {len(each.standing.runs)} runs with different {what}."


def _differing(each: Ranked) -> Iterator[str]:
    runs = [run for _, run in each.standing.runs]
    names = dict.fromkeys(name for run in runs for name in run.versions)
    for name in list(names)[:_MOST]:
        versions = {run.versions.get(name) for run in runs}
        if len(versions) > 1:
            yield f"versions of {name} ({', '.join(sorted(str(version) for version in versions))})"


def _superseded(found: DeviceRanking) -> Iterator[str]:
    """Older results, by run, with whose they are."""
    older: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for each in found.superseded:
        older[each.run, each.date][each.candidate] += each.shapes
    for (run, date), counts in [*older.items()][:_MOST]:
        whose = [f"{count_shapes(count)} of {name}" for name, count in counts.most_common(_MOST)]
        more = " …" if len(counts) > _MOST else ""
        yield f"{run} ({date}): not ranked, as another run has them newer: {', '.join(whose)}{more}."
    if len(older) > _MOST:
        yield f"{len(older) - _MOST:,} more runs have results that another run has newer."


def count_shapes(count: int) -> str:
    """`1 shape`, `1,000 shapes`."""
    return format_counted(count, "shape")
