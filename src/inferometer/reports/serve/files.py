"""The files of the app, of a fixed list: its own, and those that it shares with a report's page."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from inferometer.reports.page.time_line.markup import time_line_css, time_line_module

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_MODULES = ("api", "app", "dom", "jobs", "line", "list", "live", "run", "sql", "tags", "uploads")
_OWN = {"": "index.html", "app.css": "app.css"} | {f"{name}.js": f"{name}.js" for name in _MODULES}


def find_file(name: str) -> tuple[bytes, str] | None:
    """The bytes and media type of what the address ends in; "" is the app itself. None where there is no such file."""
    if name in _SHARED:
        return _SHARED[name](), _TYPES[name.rpartition(".")[2]]
    if name in _OWN:
        return _asset(_OWN[name]), _TYPES[_OWN[name].rpartition(".")[2]]
    return None


@cache
def _asset(name: str) -> bytes:
    return (files("inferometer.reports.serve") / "assets" / name).read_bytes()


@cache
def _page_style() -> bytes:
    """The colours and shapes that reports have."""
    return (files("inferometer.reports.page") / "page.css").read_bytes()


_SHARED: Mapping[str, Callable[[], bytes]] = {
    "page.css": _page_style,
    "time_line.css": lambda: time_line_css().encode(),
    "time_line.js": lambda: time_line_module().encode(),
}
