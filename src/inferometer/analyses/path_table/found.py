"""What is wrong with a table of call paths, in words with the numbers that show it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inferometer.analyses.path_table.fit import DEARER, Contradiction, align, distances, judge
from inferometer.analyses.path_table.rows import SEPARATOR, PathRows, Times
from inferometer.analyses.path_table.shift import Explained
from inferometer.units import format_duration, format_share

_ODD, _ODD_SPREADS = float(np.log(3)), 10.0  # beyond both, the runs' ratio at a path is far outside of the others
_FEWEST_ROWS = 5  # with both times: else no ratio is usual
_FOLLOWS = 0.5  # of a callee's difference that its caller must show, if it is called each time
_SUM_ABOVE = 1.1  # times the caller's: callees with one call each
_MOST_LISTED = 6  # cells in a sentence
_NAMES = 2  # of a path in a sentence
_NEGATED = re.compile(r"(?:non|no|not|without)[ _-]?(?=.).*", re.IGNORECASE)
_PLAIN = frozenset(
    {"torch", "pytorch", "eager", "native", "baseline", "base", "reference", "ref", "original", "default"}
)
_WORDS = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True)
class Found:
    """One thing that is wrong; `numbers` are the evidence, times in ns. `path` is None where it is of no single one."""

    kind: str
    path: str | None
    words: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "path": self.path, "words": self.words, "numbers": dict(self.numbers)}


def find_wrong(rows: PathRows, times: Times, explained: Explained | None) -> list[Found]:
    """The gravest first. `times` are by the paths that they are of, as far as that can be known."""
    lost = explained.shift.lost if explained and explained.is_sure else None
    fit = judge(rows, times, lost)
    contradicted = {(each.arm, each.row) for each in fit.contradictions}
    return [
        *(_shift(rows, explained, times) if explained else ()),
        *_swapped_names(rows, times, explained),
        *(_contradiction(rows, times, each) for each in fit.contradictions),
        *_sums_above(rows, times),
        *(each for each in _odd_differences(rows, times, {row for _, row in contradicted})),
        *_repeated(rows),
    ]


def short(path: str) -> str:
    """The last names of a path, for sentences."""
    names = path.split(SEPARATOR)
    return path if len(names) <= _NAMES else f"…{SEPARATOR.join(names[-_NAMES:])}"


def dearer_in_all(rows: PathRows, times: Times) -> list[str]:
    """Paths that take longer than their caller in every run that has both: those that aren't called each time."""
    found = []
    for row, parent in enumerate(rows.parents):
        pairs = [(column[row], column[parent]) for column in times] if parent is not None else []
        known = [(mine, above) for mine, above in pairs if mine is not None and above is not None]
        if known and all(mine > DEARER * above for mine, above in known):
            found.append(rows.paths[row])
    return found


def _shift(rows: PathRows, explained: Explained, times: Times) -> Iterator[Found]:
    shift, arm = explained.shift, rows.arms[explained.shift.arm]
    numbers: dict[str, Any] = {
        "arm": arm,
        "sure": explained.is_sure,
        "missing": rows.paths[shift.missing],
        "doubtful": [rows.paths[row] for row in explained.doubtful],
        "contradictions_printed": len(explained.before.contradictions),
        "contradictions_then": len(explained.after.contradictions),
        "misfit_printed": explained.before.misfit,
        "misfit_then": explained.after.misfit,
        "next_best_worse_by": explained.next_best,
    }
    if not explained.is_sure:
        missing = [rows.paths[row] for row in explained.missing]
        numbers["alternatives"] = missing
        yield Found("unclear_shift", None, _unclear_words(rows, explained, missing), numbers)
        return
    cells = list(_cells(rows, explained, times))
    numbers["cells"] = cells
    yield Found("shifted_rows", cells[0]["path"], _shift_words(rows, explained, cells), numbers)
    if shift.kind == "lacks":
        words = f"The run {arm} has no path {short(rows.paths[shift.missing])}: what stands there is of another."
        yield Found("missing_key", rows.paths[shift.missing], words, {"arm": arm})
    yield from _wrong_differences(rows, explained, times)


def _unclear_words(rows: PathRows, explained: Explained, missing: Sequence[str]) -> str:
    shift, after = explained.shift, explained.after
    arm = rows.arms[shift.arm]
    paths = _listed([short(path) for path in missing])
    lacks = f"{arm} may lack {paths}" if shift.kind == "lacks" else f"a time of no path here may stand at {paths}"
    if len(missing) > 1:
        why = f"several explanations fit alike ({lacks})"
    elif after.contradictions:
        why = f"the best explanation ({lacks}) leaves {len(after.contradictions)} cells that can't be"
    else:
        why = f"the best explanation ({lacks}) leaves times far from those of the other run"
    return (
        f"Times of {arm} stand at other paths than their own, but which isn't known: {why}. They are left as printed."
    )


def _cells(rows: PathRows, explained: Explained, times: Times) -> Iterator[dict[str, Any]]:
    """Those of the chain: what is printed, whose time that is, and the path's own."""
    shift = explained.shift
    holds: dict[int, int | None] = dict.fromkeys(shift.chain)
    for first, second in zip(shift.chain, shift.chain[1:], strict=False):
        held, owner = (second, first) if shift.kind == "lacks" else (first, second)
        holds[held] = owner
    for row in sorted(shift.chain):
        of = holds[row]
        yield {
            "path": rows.paths[row],
            "printed_ns": rows.times[shift.arm][row],
            "time_of": None if of is None else rows.paths[of],
            "own_ns": times[shift.arm][row],
        }


def _shift_words(rows: PathRows, explained: Explained, cells: Sequence[Mapping[str, Any]]) -> str:
    shift, arm = explained.shift, rows.arms[explained.shift.arm]
    listed = "; ".join(
        f"{short(each['path'])} "
        + ("is blank" if each["printed_ns"] is None else f"has that of {short(each['time_of'] or 'no path here')}")
        for each in cells[:_MOST_LISTED]
    )
    more = f"; and {len(cells) - _MOST_LISTED} more" if len(cells) > _MOST_LISTED else ""
    because = (
        f"Its run has no path {short(rows.paths[shift.missing])}"
        if shift.kind == "lacks"
        else "Its run has a path that the table hasn't"
    )
    before, after = explained.before, explained.after
    doubt = _listed([short(rows.paths[row]) for row in explained.doubtful[:_MOST_LISTED]], "and")
    may = f" Those of {doubt} take nearly as long: which is whose can't be known." if explained.doubtful else ""
    return (
        f"{len(cells)} cells of {arm} don't hold their own path's time: {listed}{more}. {because}: the times were "
        f"joined to the other run's paths by position. Cells that can't be: {len(before.contradictions)} as printed, "
        f"{len(after.contradictions)} so explained. Misfit (a factor of e in one cell is 1): {before.misfit:.2f} as "
        f"printed, {after.misfit:.2f} so explained; the next best one is worse by {explained.next_best:.2f}.{may}"
    )


def _wrong_differences(rows: PathRows, explained: Explained, times: Times) -> Iterator[Found]:
    """Printed differences of which a time is another path's."""
    for row in sorted(explained.shift.chain):
        for other in range(1, len(rows.arms)):
            if explained.shift.arm not in (0, other):
                continue
            printed, own = _difference(rows.times, row, other), _difference(times, row, other)
            if printed is None or printed == own:
                continue
            pair = f"{rows.arms[0]} − {rows.arms[other]}"
            then = "there is none" if own is None else f"it is {format_duration(own)}"
            words = f"{pair} at {short(rows.paths[row])} is printed as {format_duration(printed)}; by key {then}."
            numbers = {"pair": [rows.arms[0], rows.arms[other]], "printed_ns": printed, "own_ns": own}
            yield Found("implausible_difference", rows.paths[row], words, numbers)


def _difference(times: Times, row: int, other: int) -> int | None:
    first, second = times[0][row], times[other][row]
    return None if first is None or second is None else first - second


def _swapped_names(rows: PathRows, times: Times, explained: Explained | None) -> Iterator[Found]:
    """An inference: which run's own functions go unrecorded says which run has them. A table alone can't prove it."""
    if len(rows.arms) != 2 or (explained and not explained.is_sure):
        return
    for arm, other in ((0, 1), (1, 0)):
        if not _is_plain(rows.arms[arm]) or _is_plain(rows.arms[other]):
            continue
        lacks = [
            row for row, (mine, its) in enumerate(zip(times[arm], times[other], strict=True)) if mine is None and its
        ]
        if len(lacks) != sum(mine is None for mine in times[arm]) or None in times[other]:
            continue  # each run has a path that the other hasn't: nothing follows
        for row in lacks:
            at = next((i for i, name in enumerate(rows.names) if name == rows.names[row] and times[arm][i]), None)
            if at is None or rows.children[row]:
                continue
            words = (
                f"{rows.arms[arm]} and {rows.arms[other]} are likely swapped. Only the column {rows.arms[arm]} lacks "
                f"{short(rows.paths[row])}, though {rows.names[row]} is recorded in it at {short(rows.paths[at])}: its "
                "run calls another function there, which isn't recorded. That is what a run with replaced kernels "
                f"does, and by its name {rows.arms[arm]} has none. An inference: only the program that wrote the table "
                "can prove it."
            )
            numbers = {"lacks": rows.arms[arm], "has": rows.arms[other], "recorded_at": rows.paths[at]}
            yield Found("likely_swapped_names", rows.paths[row], words, numbers)
            return


def _is_plain(arm: str) -> bool:
    """Whether a name says that nothing was replaced in this run."""
    return bool(_NEGATED.fullmatch(arm)) or not _PLAIN.isdisjoint(word.lower() for word in _WORDS.findall(arm))


def _contradiction(rows: PathRows, times: Times, each: Contradiction) -> Found:
    arm, path = rows.arms[each.arm], rows.paths[each.row]
    if each.kind == "blank_caller":
        words = f"{arm} has no time at {short(path)}, but at paths that are called from it."
        return Found(each.kind, path, words, {"arm": arm})
    mine, above = times[each.arm][each.row], times[each.arm][rows.parents[each.row] or 0]
    words = (
        f"A call of {short(path)} takes {format_duration(mine)} in {arm}, one of its caller "
        f"{format_duration(above)}; in the other run it takes less. It can be only where not every call of "
        "the caller calls it."
    )
    return Found(each.kind, path, words, {"arm": arm, "host_ns": mine, "caller_ns": above})


def _sums_above(rows: PathRows, times: Times) -> Iterator[Found]:
    """Callers that take less than their callees with one call each, in one run and not in another."""
    for parent, children in enumerate(rows.children):
        sums = [(column[parent], [column[row] for row in children]) for column in times]
        if len(children) < 2 or any(above is None or None in parts for above, parts in sums):
            continue
        known = [(above or 0, sum(filter(None, parts)), max(filter(None, parts), default=0)) for above, parts in sums]
        if all(total > above for above, total, _ in known):
            continue
        for arm, (above, total, most) in enumerate(known):
            if total > _SUM_ABOVE * above and most <= DEARER * above:
                words = (
                    f"One call of {short(rows.paths[parent])} takes {format_duration(above)} in {rows.arms[arm]}, "
                    f"one call of each of its callees {format_duration(total)} together; in the other run they fit."
                )
                numbers = {"arm": rows.arms[arm], "host_ns": above, "callees_ns": total}
                yield Found("callees_above_caller", rows.paths[parent], words, numbers)


def _odd_differences(rows: PathRows, times: Times, contradicted: set[int]) -> Iterator[Found]:
    """Paths whose ratio is far outside of all others while their callers' times don't follow."""
    if len(rows.arms) < 2:
        return
    apart, aligned = distances(times), align(times)
    known = apart[~np.isnan(apart)]
    if known.size < _FEWEST_ROWS:
        return
    usual = float(np.median(known))
    for row in np.flatnonzero(np.nan_to_num(apart) > max(_ODD, _ODD_SPREADS * usual)).tolist():
        arm = int(np.nanargmax(np.abs(aligned[:, row] - np.nanmedian(aligned[:, row]))))
        other = 0 if arm else 1
        if row in contradicted or times[other][row] is None or _caller_follows(rows, times, row, arm, other):
            continue
        mine, its = times[arm][row] or 0, times[other][row] or 0
        words = (
            f"{short(rows.paths[row])} takes {format_duration(mine)} in {rows.arms[arm]} and {format_duration(its)} in "
            f"{rows.arms[other]}; at most paths the runs differ by {format_share(float(np.expm1(usual)))}, and "
            "the time of its caller doesn't follow. Nothing else in the table explains it."
        )
        numbers = {"arm": rows.arms[arm], "host_ns": mine, "other": rows.arms[other], "other_ns": its, "usual": usual}
        yield Found("implausible_difference", rows.paths[row], words, numbers)


def _caller_follows(rows: PathRows, times: Times, row: int, arm: int, other: int) -> bool:
    """Whether the caller's times differ as they must if each call of it calls this path; True for a root."""
    parent = rows.parents[row]
    if parent is None:
        return True
    own, above = [times[each][row] for each in (arm, other)], [times[each][parent] for each in (arm, other)]
    if None in own or None in above:
        return True
    change, followed = (own[0] or 0) - (own[1] or 0), (above[0] or 0) - (above[1] or 0)
    return followed * (1 if change > 0 else -1) >= _FOLLOWS * abs(change)


def _repeated(rows: PathRows) -> Iterator[Found]:
    for row in rows.repeated:
        words = f"{short(rows.paths[row])} has several rows: whose times are in which can't be known."
        yield Found("repeated_path", rows.paths[row], words, {"order": row})


def _listed(paths: Sequence[str], word: str = "or") -> str:
    return f" {word} ".join(paths) if len(paths) < 3 else f"{', '.join(paths[:-1])} {word} {paths[-1]}"
