"""The call tree for viewers of flame graphs: folded stacks, and speedscope's own file format.

Folded stacks are what the `stackcollapse` programs of Brendan Gregg's FlameGraph write
(https://github.com/brendangregg/FlameGraph, "2. Fold stacks"): a line a stack, its names joined by semicolons, root
first, then a space and a whole number. flamegraph.pl, inferno and speedscope read them. The format can't quote, so what
would change a line's meaning is replaced in the names.

speedscope's format is described by https://www.speedscope.app/file-format-schema.json and the types it is made from
(`src/lib/file-format-spec.ts` of jlfwong/speedscope). We write one `sampled` profile: a stack of frames by their
numbers, and its weight.

Two values per line are of two runs, as difffolded.pl of FlameGraph writes them: base, then candidate.

Values are nanoseconds of device time. Each node's own time (`self_ns`) is one stack, so values add up to all device
work of the tree; counts of launches have no place in either format.
"""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from inferometer import __version__
from inferometer.errors import clean
from inferometer.trace.facts import without_folders

if TYPE_CHECKING:
    import polars as pl

    from inferometer.analyses.compare.call_trees import CallTreeComparison
    from inferometer.analyses.launched_by.call_tree import CallTreeTable

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"

_NAMELESS = "(no name)"
_SPACES = re.compile(r"\s+")
_NUMBER_AT_END = re.compile(r" (?=[0-9]+(?:\.[0-9]*)?$)")


def render_folded(table: "CallTreeTable") -> str:
    """A line for each node with time of its own: `a;b;c 123`, in the tree's order; "" where there is none.

    Semicolons in names become commas, line ends and control characters spaces, runs of spaces one space. A number at
    the end of a name is tied to it with `_`: readers would take it for the first of two values.
    """
    names = {name: _folded(name) for name in table.frame["name"].unique()}
    lines = [
        f"{';'.join(map(names.__getitem__, path))} {self_ns}\n" for path, (self_ns,) in _stacks(table.frame, "self_ns")
    ]
    return "".join(lines)


def render_folded_difference(tree: "CallTreeComparison") -> str:
    """A line for each node with time of its own in either run: `a;b;c 123 456`, the base's and the candidate's.

    Names as in `render_folded`. flamegraph.pl and inferno draw such lines as a differential flame graph.
    """
    names = {name: _folded(name) for name in tree.frame["name"].unique()}
    stacks = _stacks(tree.frame, "base_self_ns", "candidate_self_ns")
    return "".join(
        f"{';'.join(map(names.__getitem__, path))} {base_ns} {candidate_ns}\n"
        for path, (base_ns, candidate_ns) in stacks
    )


def render_speedscope(table: "CallTreeTable") -> str:
    """One `sampled` profile in nanoseconds as JSON; names stand as they are, each once among the shared frames."""
    numbers: dict[str, int] = {}
    samples, weights = [], []
    source = without_folders(table.source)
    for path, (self_ns,) in _stacks(table.frame, "self_ns"):
        samples.append([numbers.setdefault(name, len(numbers)) for name in path])
        weights.append(self_ns)
    document: dict[str, Any] = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "exporter": f"inferometer@{__version__}",
        "name": source,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{source}: device time by caller",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def _stacks(frame: "pl.DataFrame", *times: str) -> Iterator[tuple[list[str], list[int]]]:
    """Names from the root to each node with time of its own, and these times; the path is the same list each time."""
    path: list[str] = []
    for depth, name, *own_ns in frame.select("depth", "name", *times).iter_rows():
        path[depth:] = [name]
        if any(own_ns):
            yield path, own_ns


def _folded(name: str) -> str:
    plain = _SPACES.sub(" ", clean(name).replace(";", ",")).strip()
    return _NUMBER_AT_END.sub("_", plain) or _NAMELESS
