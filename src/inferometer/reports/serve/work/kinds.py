"""The kinds of jobs: a function each, by its name, which leaves files in a kept place and returns plain data."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.reports.serve.work.opened import JobRun, open_run
from inferometer.reports.serve.work.progress import Progress

if TYPE_CHECKING:
    from inferometer.analyses.compare.tests import TestComparison
    from inferometer.reports.page.document import Page


def about(progress: Progress, run: JobRun) -> dict[str, Any]:
    """What the list says of a run; it is read on the way."""
    from inferometer.reports.serve.work.facts import describe
    from inferometer.reports.serve.work.fleets import describe_fleet, open_run_fleet
    from inferometer.reports.serve.work.opened import is_profile

    place = Path(run["kept"]) / "about.json"
    if run["kind"] == "fleet":
        return _written(place, {"is_profile": True, **describe_fleet(open_run_fleet(run, progress))})
    if not is_profile(run):
        return _written(place, {"is_profile": False})
    trace = open_run(run, progress)
    progress("looking at it", None)
    return _written(place, {"is_profile": True, **describe(trace)})


def page(progress: Progress, run: JobRun, target: str) -> dict[str, Any]:
    """The report of a run, or the page of a fleet."""
    if run["kind"] == "fleet":
        from inferometer.reports.serve.work.fleets import fleet_page

        made = fleet_page(run, progress)
        return _written_page(made, Path(target))
    from inferometer.reports.page.look import PageData

    return _write_page(PageData(open_run(run, progress)), run["title"], Path(target), progress)


def pair_page(progress: Progress, base: JobRun, candidate: JobRun, target: str) -> dict[str, Any]:
    """The report of two runs."""
    from inferometer.reports.page.look import PageData

    look = PageData(open_run(base, progress), open_run(candidate, progress))
    return _write_page(look, f"{candidate['title']} compared with {base['title']}", Path(target), progress)


def verdict(progress: Progress, base: JobRun, candidate: JobRun, target: str) -> dict[str, Any]:
    """Whether a run is slower than its base, in a line."""
    from inferometer.analyses.compare.comparison import compare
    from inferometer.analyses.compare.tests import are_repeated, compare_tests
    from inferometer.reports.views.comparison_brief import headline

    runs = open_run(base, progress), open_run(candidate, progress)
    progress("comparing", None)
    if are_repeated(*runs):
        return _written(Path(target), _of_tests(compare_tests(*runs)))
    compared = compare(*runs)
    found = {
        "outcome": compared.outcome,
        "verdict": compared.verdict,
        "ratio": compared.changes.step_ratio if compared.compares_times else None,
        "headline": headline(compared),
    }
    return _written(Path(target), found)


def _of_tests(found: "TestComparison") -> dict[str, Any]:
    """The same of tests of a benchmark, each of which has a ratio of its own."""
    from inferometer.reports.views.compared_tests import headline

    return {"outcome": found.verdict, "verdict": found.verdict, "ratio": None, "headline": headline(found)}


def line(progress: Progress, run: JobRun, target: str) -> dict[str, Any]:
    """The time line of a run as files, for windows of it."""
    from inferometer.analyses.timeline.lanes.find import find_lanes
    from inferometer.analyses.timeline.lanes.levels import Levels
    from inferometer.new_files import NewFolder
    from inferometer.reports.serve.work.line_files import write_levels
    from inferometer.reports.serve.work.line_marks import find_places

    trace = open_run(run, progress)
    progress("finding steps and gaps", None)
    steps, places = find_places(trace)
    progress("laying out the time line", None)
    lanes = find_lanes(trace, steps)
    place = Path(target)
    if lanes is None:
        return _written(place.with_suffix(".json"), {"events": 0})
    progress("merging what is short", None)
    with NewFolder(place, ours=lambda _: True, force=True) as work:
        write_levels(Levels(lanes), places(lanes), work)
    return _written(place.with_suffix(".json"), {"events": len(lanes.start_ns)})


def query(progress: Progress, run: JobRun, query: str, most_rows: int) -> dict[str, Any]:
    """The rows of a question in SQL, as text: a browser's numbers are no whole ones of 64 bits."""
    from inferometer.analyses.sql.query import run_query

    if run["kind"] == "fleet":
        from inferometer.reports.serve.work.fleets import query_fleet

        found = query_fleet(run, query, most_rows, progress)
    else:
        trace = open_run(run, progress)
        progress("answering", None)
        found = run_query(trace, query, most_rows=most_rows)
    columns = [
        {"name": name, "type": str(dtype), "is_number": dtype.is_numeric()}
        for name, dtype in found.frame.schema.items()
    ]
    rows = [[None if value is None else _text(value) for value in row] for row in found.frame.iter_rows()]
    return {"columns": columns, "rows": rows, "more": found.more}


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _write_page(look: Any, title: str, place: Path, progress: Progress) -> dict[str, Any]:
    from inferometer.reports.page.document import render_page
    from inferometer.reports.page.section import build_blocks, page_sections

    parts, done = len(page_sections()) + 1, count()
    blocks = build_blocks(look, on_progress=lambda name: progress(f"the section {name}", next(done) / parts))
    progress("the page", next(done) / parts)
    return _written_page(render_page(blocks, title=title), place)


def _written_page(page: "Page", place: Path) -> dict[str, Any]:
    from inferometer.new_files import NewFile

    with NewFile(place, force=True) as work:
        work.write_bytes(page.html.encode())
    return {"bytes": place.stat().st_size, "left_out": list(page.left_out)}


def _written(place: Path, data: dict[str, Any]) -> dict[str, Any]:
    import msgspec

    from inferometer.new_files import NewFile

    with NewFile(place, force=True) as work:
        work.write_bytes(msgspec.json.encode(data))
    return data


KINDS: Mapping[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (about, page, pair_page, verdict, line, query)
}
