"""A fleet in a job: what the list says of it, its page, and questions in SQL about its tables."""

from dataclasses import replace
from typing import Any

from inferometer.analyses.sql.query import QueryResult, query_tables
from inferometer.fleet.joined import JOINED
from inferometer.fleet.opening import Fleet, open_fleet
from inferometer.fleet.questions.overview import fleet_overview
from inferometer.fleet.tables import SOURCES
from inferometer.reports.fleet.page import build_blocks, render_fleet
from inferometer.reports.page.document import Page
from inferometer.reports.serve.work.opened import JobRun, path_of
from inferometer.reports.serve.work.progress import Progress


def open_run_fleet(run: JobRun, progress: Progress) -> Fleet:
    """The fleet, under its name: a page says no path of the machine.

    Raises:
        InputError: It is damaged, of another version, or its mining has not ended.
    """
    progress(f"opening {run['title']}", None)
    return replace(open_fleet(path_of(run)), source=run["title"])


def describe_fleet(fleet: Fleet) -> dict[str, Any]:
    """As `facts.describe`, of a fleet: it has no length and no step, and `traces`."""
    whole = fleet_overview(fleet)
    row = whole.frame.row(0, named=True) if whole.frame.height else {}
    models, devices = ([*fleet.traces[name].drop_nulls().unique().sort()] for name in ("model", "gpu"))
    return {
        "format": "fleet",
        "tool": "inferometer mine",
        "framework": None,
        "model": ", ".join(models) or None,
        "devices": devices,
        "hosts": [],
        "ranks": 0,
        "date": None,
        "wall_ns": None,
        "busy_share": row.get("busy_share"),
        "launches": int(fleet.traces["launches"].sum()),
        "rows": {name: about.rows for name, about in fleet.manifest.tables.items() if about.rows},
        "steps": 0,
        "step_ns": None,
        "warnings": whole.losses.warnings(),
        "tags": ["fleet"],
        "traces": whole.traces,
    }


def fleet_page(run: JobRun, progress: Progress) -> Page:
    """The page of all its questions; its filters need no server."""
    fleet = open_run_fleet(run, progress)
    blocks = build_blocks(fleet, on_progress=lambda name: progress(f"the question {name}", None))
    progress("the page", None)
    return render_fleet(blocks, title=run["title"])


def query_fleet(run: JobRun, query: str, most_rows: int, progress: Progress) -> QueryResult:
    """The rows of a question about its tables."""
    fleet = open_run_fleet(run, progress)
    progress("answering", None)
    frames = {name: fleet.table(name) for name in (*JOINED, SOURCES.name)}
    return query_tables(frames, query, source=fleet.source, losses=fleet.losses(), most_rows=most_rows)
