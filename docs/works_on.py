"""Which command answers of which format: each is run on a sample of each, and what it printed is looked at.

Samples are those of the repository, and where it has none of a format, the small file that tests read of it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from pages import ROOT

SAMPLES = {
    "kineto": ("decode.json.gz", "cpu/profile.json.gz", "h200/kineto_eager.json.gz"),
    "nsys": ("nsys.sqlite.gz",),
    "xplane": ("h200/jax.xplane.pb",),
    "ncu": ("h200/ncu_raw.csv.gz",),
    "proton": ("h200/proton_tree.hatchet",),
    "execution-trace": ("cpu/et.json.gz",),
    "webgpu-log": ("webgpu.log.gz",),
    "latencyprism": ("slow/normal",),
}
TABLES = {
    "findings": ("findings", "device_time_budget"),
    "kernels": ("rows",),
    "launches": ("rows",),
    "tree": ("nodes",),
    "groups": ("groups", "refused"),
    "spans": ("rows",),
    "calls": ("rows",),
    "timeline": ("devices",),
    "steps": ("steps", "runs"),
    "roofline": ("rows",),
    "ops": ("rows",),
    "memory": ("devices",),
    "counters": ("rows",),
}
"""Commands that list something, and the keys of their JSON: they answer where one of these lists isn't empty."""
OTHERS = ("summary", "report", "export --to chrome", "export --to perfetto", "export --to parquet", "import")
"""Commands that answer where they don't refuse."""
_OUTPUTS = {
    "report": "page.html",
    "import": "store.ifm",
    "export --to chrome": "trace.json",
    "export --to perfetto": "trace.pftrace",
    "export --to parquet": "tables",
}
ANSWERS, NOTHING, REFUSES = "yes", "-", "no"


def run(words: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command and what it printed on stdout."""
    from inferometer.commands.main import main

    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        try:
            main([*words])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, out.getvalue()


def outcome(command: str, path: Path, scratch: Path) -> str:
    """What it makes of a file: `yes`, `-` where it says that there is nothing, `no` where it refuses.

    Raises:
        RuntimeError: It fails otherwise.
    """
    words = command.split()
    if command in TABLES:
        words = [*words, str(path), "--json"]
    else:
        output = ["-o", str(scratch / _OUTPUTS[command]), "--force"] if command in _OUTPUTS else []
        words = [*words, str(path), *output]
    code, printed = run(words)
    if code not in (0, 3):
        raise RuntimeError(f"{' '.join(words)}: exit code {code}")
    if code:
        return REFUSES
    if command in TABLES and not any(json.loads(printed).get(key) for key in TABLES[command]):
        return NOTHING
    return ANSWERS


def rows() -> Iterator[tuple[str, ...]]:
    """A row for each format: its name, and what each command makes of its samples at best."""
    sys.path.append(str(ROOT))
    from tests.conformance.samples import SAMPLES as SMALL

    for name in sorted(SMALL):
        with TemporaryDirectory() as folder:
            scratch = Path(folder)
            paths = [ROOT / "samples" / each for each in SAMPLES.get(name, ())]
            if not paths:
                paths = [scratch / "sample"]
                paths[0].write_bytes(SMALL[name]())
            cells = [_best(command, paths, scratch) for command in (*TABLES, *OTHERS)]
        yield f"[{name}](formats.md#{name})", *cells


def _best(command: str, paths: Sequence[Path], scratch: Path) -> str:
    found = set()
    for path in paths:
        found.add(outcome(command, path, scratch))
        if ANSWERS in found:
            return ANSWERS
    return NOTHING if NOTHING in found else REFUSES


def page(markdown_table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
    """The page, as Markdown."""
    head = ("Format", *(f"`{command.removeprefix('export --to ')}`" for command in (*TABLES, *OTHERS)))
    return f"""\
# Which command works on which format

To make this table, each command was run on samples of each format. **{ANSWERS}**: it answers. **{NOTHING}**: it runs,
and says that there is nothing of the kind in the file. **{REFUSES}**: it refuses, and says what to record instead.
Which rows a file has depends on what was recorded, not on its format alone: `memory` needs a profiler's
`profile_memory=True`, `roofline` and `ops` need recorded shapes. `chrome`, `perfetto` and `parquet` are of `export`.

{markdown_table(head, list(rows()))}
"""
