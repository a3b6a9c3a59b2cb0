"""The kinds of jobs. Each leaves files in a kept place, and returns plain data."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.reports.serve.work.opened import Given, open_run
from inferometer.reports.serve.work.telling import Tell

if TYPE_CHECKING:
    from inferometer.analyses.compare.tests import TestComparison
    from inferometer.reports.page.document import Page


def about(tell: Tell, run: Given) -> dict[str, Any]:
    """What the list says of a run; it is read on the way."""
    from inferometer.reports.serve.work.facts import describe
    from inferometer.reports.serve.work.fleets import describe_fleet, open_run_fleet
    from inferometer.reports.serve.work.opened import is_profile

    place = Path(run["kept"]) / "about.json"
    if run["kind"] == "fleet":
        return _written(place, {"is_profile": True, **describe_fleet(open_run_fleet(run, tell))})
    if not is_profile(run):
        return _written(place, {"is_profile": False})
    trace = open_run(run, tell)
    tell("looking at it", None)
    return _written(place, {"is_profile": True, **describe(trace)})


def page(tell: Tell, run: Given, page: str) -> dict[str, Any]:
    """The report of a run, or the page of a fleet."""
    if run["kind"] == "fleet":
        from inferometer.reports.serve.work.fleets import fleet_page

        made = fleet_page(run, tell)
        return _written_page(made, Path(page))
    from inferometer.reports.page.look import PageData

    return _write_page(PageData(open_run(run, tell)), run["title"], Path(page), tell)


def pair_page(tell: Tell, base: Given, candidate: Given, page: str) -> dict[str, Any]:
    """The report of two runs."""
    from inferometer.reports.page.look import PageData

    look = PageData(open_run(base, tell), open_run(candidate, tell))
    return _write_page(look, f"{candidate['title']} compared with {base['title']}", Path(page), tell)


def verdict(tell: Tell, base: Given, candidate: Given, verdict: str) -> dict[str, Any]:
    """Whether a run is slower than its base, in a line."""
    from inferometer.analyses.compare.comparison import compare
    from inferometer.analyses.compare.tests import are_repeated, compare_tests
    from inferometer.reports.views.comparison_brief import headline

    runs = open_run(base, tell), open_run(candidate, tell)
    tell("comparing", None)
    if are_repeated(*runs):
        return _written(Path(verdict), _of_tests(compare_tests(*runs)))
    found = compare(*runs)
    ratio = found.changes.step_ratio if found.compares_times else None
    said = {"outcome": found.outcome, "verdict": found.verdict, "ratio": ratio, "headline": headline(found)}
    return _written(Path(verdict), said)


def _of_tests(found: "TestComparison") -> dict[str, Any]:
    """The same of tests of a benchmark, each of which has a ratio of its own."""
    from inferometer.reports.views.compared_tests import headline

    return {"outcome": found.verdict, "verdict": found.verdict, "ratio": None, "headline": headline(found)}


def line(tell: Tell, run: Given, line: str) -> dict[str, Any]:
    """The time line of a run as files, for windows of it."""
    from inferometer.analyses.timeline.lanes.find import find_lanes
    from inferometer.analyses.timeline.lanes.levels import Levels
    from inferometer.new_files import NewFolder
    from inferometer.reports.serve.work.line_files import write_levels
    from inferometer.reports.serve.work.line_marks import find_places

    trace = open_run(run, tell)
    tell("finding steps and gaps", None)
    steps, places = find_places(trace)
    tell("laying out the time line", None)
    lanes = find_lanes(trace, steps)
    place = Path(line)
    if lanes is None:
        return _written(place.with_suffix(".json"), {"events": 0})
    tell("merging what is short", None)
    with NewFolder(place, ours=lambda _: True, force=True) as work:
        write_levels(Levels(lanes), places(lanes), work)
    return _written(place.with_suffix(".json"), {"events": len(lanes.start_ns)})


def query(tell: Tell, run: Given, query: str, most_rows: int) -> dict[str, Any]:
    """The rows of a question in SQL, as text: a browser's numbers are no whole ones of 64 bits."""
    from inferometer.analyses.sql.query import run_query

    if run["kind"] == "fleet":
        from inferometer.reports.serve.work.fleets import query_fleet

        found = query_fleet(run, query, most_rows, tell)
    else:
        trace = open_run(run, tell)
        tell("answering", None)
        found = run_query(trace, query, most_rows=most_rows)
    columns = [
        {"name": name, "type": str(dtype), "is_number": dtype.is_numeric()}
        for name, dtype in found.frame.schema.items()
    ]
    rows = [[None if value is None else _text(value) for value in row] for row in found.frame.iter_rows()]
    return {"columns": columns, "rows": rows, "more": found.more}


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _write_page(look: Any, title: str, place: Path, tell: Tell) -> dict[str, Any]:
    from inferometer.reports.page.document import render_page
    from inferometer.reports.page.section import build_blocks, page_sections

    names = [section.name for section in page_sections()]
    blocks = build_blocks(
        look, on_progress=lambda name: tell(f"the section {name}", names.index(name) / (len(names) + 1))
    )
    tell("the page", len(names) / (len(names) + 1))
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
