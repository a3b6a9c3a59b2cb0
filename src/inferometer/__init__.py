"""A measuring instrument for LLM inference, down to the single kernel.

    import inferometer
    trace = inferometer.open("trace.json.gz", tables={"launches"})
    inferometer.kernel_table(trace).to_polars()

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.analyses.ab.comparison import compare_paths as compare_paths
    from inferometer.analyses.compare.comparison import compare as compare
    from inferometer.analyses.groups.groups import find_groups as find_groups
    from inferometer.analyses.launched_by.attribution import attribute as attribute
    from inferometer.analyses.launched_by.call_tree import call_tree as call_tree
    from inferometer.analyses.launched_by.site_times import launch_sites as launch_sites
    from inferometer.analyses.model.bounds import model_bounds as model_bounds
    from inferometer.analyses.path_table.review import review_path_table as review_path_table
    from inferometer.analyses.steps.table import step_table as step_table
    from inferometer.analyses.tables.calls import call_table as call_table
    from inferometer.analyses.tables.kernels import kernel_table as kernel_table
    from inferometer.analyses.tables.spans import span_table as span_table
    from inferometer.analyses.tables.summary import summarize as summarize
    from inferometer.analyses.timeline.timeline import find_timeline as find_timeline
    from inferometer.findings.engine import find_findings as find_findings
    from inferometer.formats.opening import import_trace as import_trace
    from inferometer.formats.opening import open_trace
    from inferometer.formats.source import Limits as Limits
    from inferometer.record.start import record as record
    from inferometer.record.start import step as step
    from inferometer.reports.export import export_trace
    from inferometer.reports.html import render_html as render_html
    from inferometer.reports.markdown import render_markdown as render_markdown
    from inferometer.reports.views.view import json_of as json_of
    from inferometer.reports.views.view import remarks_of as remarks_of
    from inferometer.trace.trace import Trace as Trace

    export, open = export_trace, open_trace

__version__ = "0.1.0"

_WHERE = {
    "open": ("inferometer.formats.opening", "open_trace"),
    "import_trace": ("inferometer.formats.opening", "import_trace"),
    "Limits": ("inferometer.formats.source", "Limits"),
    "Trace": ("inferometer.trace.trace", "Trace"),
    "export": ("inferometer.reports.export", "export_trace"),
    "render_html": ("inferometer.reports.html", "render_html"),
    "render_markdown": ("inferometer.reports.markdown", "render_markdown"),
    "json_of": ("inferometer.reports.views.view", "json_of"),
    "remarks_of": ("inferometer.reports.views.view", "remarks_of"),
    "attribute": ("inferometer.analyses.launched_by.attribution", "attribute"),
    "call_tree": ("inferometer.analyses.launched_by.call_tree", "call_tree"),
    "launch_sites": ("inferometer.analyses.launched_by.site_times", "launch_sites"),
    "kernel_table": ("inferometer.analyses.tables.kernels", "kernel_table"),
    "call_table": ("inferometer.analyses.tables.calls", "call_table"),
    "model_bounds": ("inferometer.analyses.model.bounds", "model_bounds"),
    "span_table": ("inferometer.analyses.tables.spans", "span_table"),
    "step": ("inferometer.record.start", "step"),
    "step_table": ("inferometer.analyses.steps.table", "step_table"),
    "summarize": ("inferometer.analyses.tables.summary", "summarize"),
    "compare": ("inferometer.analyses.compare.comparison", "compare"),
    "compare_paths": ("inferometer.analyses.ab.comparison", "compare_paths"),
    "review_path_table": ("inferometer.analyses.path_table.review", "review_path_table"),
    "find_findings": ("inferometer.findings.engine", "find_findings"),
    "find_groups": ("inferometer.analyses.groups.groups", "find_groups"),
    "find_timeline": ("inferometer.analyses.timeline.timeline", "find_timeline"),
}
_ROOMS = ("names", "record")  # `record` is a folder and a function: its module can be called
__all__ = [*_WHERE, "record"]  # noqa: PLE0604  derived: one list less to keep true


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"inferometer.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'inferometer' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
