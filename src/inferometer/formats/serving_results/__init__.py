"""A benchmark's result: what a client saw of an engine that served it. It is no trace, so there is no FORMAT here.

`serving.py` says what a run of a benchmark has, `tools.py` which tools write it and what their fields mean,
`json_runs.py` takes the file apart, `requests.py` its details of each request.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferometer.formats.serving_results.serving import Serving
    from inferometer.formats.source import Limits


def read_serving(path: "str | Path", run: int | None = None, *, limits: "Limits | None" = None) -> "Serving":
    """One run of a benchmark's result file; `-` is standard input.

    Args:
        path: JSON of one run, or several runs one after another (JSON lines, a list); plain or gzip.
        run: Its number in the file, from 0. None: the only one.
        limits: What is refused; `held_bytes` is the largest file.

    Raises:
        InputError: It can't be opened, there is no such run, or there are several and none was chosen.
        FormatError: It is no such file; the message names the run and the field.
    """
    from inferometer.formats.serving_results.tools import choose_run

    return choose_run(path, read_serving_runs(path, limits=limits), run)


def read_serving_runs(path: "str | Path", *, limits: "Limits | None" = None) -> "list[Serving]":
    """All runs of a benchmark's result file, in its order; errors as in `read_serving`."""
    from inferometer.formats.serving_results.tools import read_all

    return read_all(path, limits=limits)
