"""Writes the pages of docs/reference from the declarations in the code, and today's output into the other pages.

    python docs/generate.py                     write what has changed
    python docs/generate.py --check             write nothing; name the stale pages and exit 1 when there are any
    python docs/generate.py [--check] PAGE...   of these pages alone, as paths from the repository's root

Blocks of commands and Python in README.md, CONTRIBUTING.md and docs/guide run on the way: see pages.py.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import kineto_events
import polars as pl
import works_on
from json_schemas import json_page, schema_files
from make_picture import PICTURE, make_picture
from pages import ROOT, PageError, refresh, runnable_pages

from inferometer.commands.main import cli
from inferometer.commands.tools import listing
from inferometer.commands.tools.offered import LIMIT_AND_OFFSET, offered
from inferometer.findings.engine import known_rules
from inferometer.findings.rule import Rule
from inferometer.findings.thresholds import thresholds_of
from inferometer.fleet.joined import JOINED
from inferometer.fleet.tables import SOURCES, VERSION
from inferometer.formats.base import Format, known_formats
from inferometer.reports.views.findings import TITLE
from inferometer.trace import store_writer
from inferometer.trace.losses import KINDS, Kind
from inferometer.trace.tables import TABLES, Table
from inferometer.units import format_share

_MARK = "<!-- Made by docs/generate.py: do not edit. -->"
_HELP_WIDTH = 88
_EXITS = (
    ("0", "Done."),
    ("1", "A check that the command was asked for said no."),
    ("2", "Wrong usage: an unknown command or option, or two that are mutually exclusive."),
    ("3", "Bad input: a file, a name or a value that can't be used."),
    ("4", "A device, a program or an extra that the request needs is not here."),
    ("70", "A bug in inferometer. Run it again with `--debug` and report what it prints."),
    ("130", "Interrupted."),
)


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 when a page is stale and `--check` is given."""
    check, names = "--check" in arguments, [argument for argument in arguments if argument != "--check"]
    pages = _pages()
    if unknown := sorted(set(names) - set(pages)):
        raise SystemExit(f"no such page: {unknown[0]}\n  Known: {', '.join(pages)}")
    stale = [name for name in names or pages if not _is_current(name, pages[name], write=not check)]
    for name in stale:
        print(f"{name}: {'is stale: run `make docs`' if check else 'written'}", file=sys.stderr)
    return 1 if check and stale else 0


def _is_current(name: str, make: Callable[[], str], *, write: bool) -> bool:
    path, content = ROOT / name, make()
    if path.exists() and path.read_text("utf-8") == content:
        return True
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return False


def _pages() -> dict[str, Callable[[], str]]:
    """How each page is made, by its path from the root."""
    pages: dict[str, Callable[[], str]] = {
        f"docs/reference/{name}": partial(_reference, make) for name, make in REFERENCES.items()
    }
    pages |= {f"docs/reference/{name}": make for name, make in schema_files().items()}
    pages[str(PICTURE.relative_to(ROOT))] = make_picture
    for path in runnable_pages():
        name = str(path.relative_to(ROOT))
        pages[name] = partial(_refreshed, path, name)
    return pages


def _reference(make: Callable[[], str]) -> str:
    return f"{_MARK}\n\n{make().strip()}\n"


def _refreshed(path: Path, name: str) -> str:
    return refresh(path.read_text("utf-8"), name)


def tables_page() -> str:
    contents = "\n".join(f"- [`{table.name}`](#{table.name}): {table.row}" for table in TABLES.values())
    return f"""\
# Tables

What a trace holds, as [`trace/tables.py`](../../src/inferometer/trace/tables.py) declares it. Every trace has every
table with exactly these columns: a format fills what its source records, and what it can't fill is null. Times are
whole nanoseconds. Text that frameworks print (shapes, strides) stays as recorded.

{contents}

{"".join(map(_table, TABLES.values()))}"""


def fleet_page() -> str:
    tables = {SOURCES.name: SOURCES, **JOINED}
    contents = "\n".join(f"- [`{table.name}`](#{table.name}): {table.row}" for table in tables.values())
    return f"""\
# A fleet

What `inferometer mine` writes, as [`fleet/tables.py`](../../src/inferometer/fleet/tables.py) declares it: in
`FLEET.ifm/tables`, a Parquet file for each table. Times are whole nanoseconds. `FLEET.ifm/digests` has the rows of each
trace by itself, as a list for each table, under the SHA-256 of the trace's content and the CRC-32 of the digest;
digests have version {VERSION}.
`inferometer fleet` doesn't read a fleet of another version: mine it anew.

{contents}

{"".join(map(_columns, tables.values()))}"""


def _columns(table: Table) -> str:
    return f"""\
## {table.name}

One row: {table.row[0].lower()}{table.row[1:]}

{_column_rows(table)}

"""


def _column_rows(table: Table) -> str:
    rows = [
        (f"`{column.name}`", _type(column.dtype), column.meaning, column.null or "never") for column in table.columns
    ]
    return _markdown(("Column", "Type", "Meaning", "Null when"), rows)


def _table(table: Table) -> str:
    time = f" Its time is `{table.time}`." if table.time else ""
    links = [f"[{fmt.name}](formats.md#{fmt.name})" for fmt in known_formats().values() if table.name in fmt.tables]
    by = f"Filled by {', '.join(links)}." if links else "No format of today fills it."
    return f"""\
## {table.name}

One row: {table.row[0].lower()}{table.row[1:]}{time} {by}

{_column_rows(table)}

"""


def _type(dtype: pl.DataType | type[pl.DataType]) -> str:
    if isinstance(dtype, pl.Array):
        return f"{dtype.size} × {dtype.inner}"
    return str(dtype)


def losses_page() -> str:
    dropped = [kind for kind in KINDS.values() if kind.dropped]
    kept = [kind for kind in KINDS.values() if not kind.dropped]
    return f"""\
# Losses

What a reader could not read or had to mend is counted by name, severity and the file's own category. Reports show
the counts, `--json` has them all under `losses`, and `trace.losses` in Python. The names are declared in
[`trace/losses.py`](../../src/inferometer/trace/losses.py).

In every category of the file, **events in the file = events read + events dropped**: `events` under `losses` has
the first number, its entries with `dropped: true` add up to the last. A counter event may make several rows. What is
too broken to tell its category is counted without one, next to that sum. No loss is an error: the rest was read, and
the exit code is 0; what can't be read at all is refused. With fewer tables asked for, the counts are of those tables
alone: `scope` names them. Reports for people leave out events that are dropped by design (severity `info`).

## Dropped: the event has no row

{_kinds(dropped)}

## Repairs and remarks: the row is there, or the loss is not of an event

{_kinds(kept)}
"""


def _kinds(kinds: Sequence[Kind]) -> str:
    return _markdown(
        ("Name", "Severity", "Meaning"), [(f"`{kind.name}`", kind.severity, kind.meaning) for kind in kinds]
    )


def commands_page() -> str:
    group = click.Context(cli, info_name="inferometer", terminal_width=_HELP_WIDTH, **cli.context_settings)
    sections = [f"```text\n{cli.get_help(group)}\n```\n"]
    for name in cli.list_commands(group):
        command = cli.get_command(group, name)
        if command is not None:
            ctx = click.Context(command, info_name=name, parent=group, terminal_width=_HELP_WIDTH)
            sections.append(f"## {name}\n\n```text\n{command.get_help(ctx)}\n```\n")
    helps = "\n".join(sections)
    return f"""\
# Commands

Data goes to stdout, everything else to stderr. Options that mean the same have the same name everywhere. `--debug`
works with every command.

{helps}
## Exit codes

{_markdown(("Code", "Meaning"), _EXITS)}
"""


def formats_page() -> str:
    return f"""\
# Formats

The format is recognised from the content, not from the name; `--format NAME` overrides that. Files may be
gzip-compressed, under any name and in several members; `-` reads standard input, plain or compressed.

{"".join(map(_format, known_formats().values()))}\
## store

A folder `NAME.ifm` that [`inferometer import`](commands.md#import) makes: Parquet files and `facts.json`. Every command
opens it where it takes a file; standard input can't hold one.

Schema version: {".".join(map(str, store_writer.SCHEMA))}
"""


def findings_page() -> str:
    return f"""\
# Findings

What [`inferometer findings`](commands.md#findings) tells, and [`inferometer summary`](commands.md#summary) lists the
first of under "{TITLE}". Each rule is one file of
[`findings`](../../src/inferometer/findings), which says what fires it, its thresholds and why. A rule is silent where a
source doesn't record what it needs. Under `--json` a finding has `rule`, `severity`, `title`, `evidence` (sentences),
`size_ns` (time of the run in what the title names; null where it is no time), `share` (of that time in what it belongs
to), `next`, and `explained_by`: the rule of another finding that names the cause, behind which it stands. They come
gravest first, then by `size_ns`.

A rule's thresholds are the shares of time from which on a finding of it is low, medium or high; a
[settings file](../guide/settings-and-completion.md#thresholds) sets others by the names given here.

{"".join(map(_rule, known_rules().values()))}"""


def tools_page() -> str:
    tools = {listing.NAME: (listing.DESCRIPTION, listing.schema())}
    tools |= {name: (tool.description, tool.schema()) for name, tool in offered().items()}
    sections = "".join(_tool(name, words, schema) for name, (words, schema) in tools.items())
    return f"""\
# Tools of an assistant

What [`inferometer mcp`](commands.md#mcp) offers, as a client sees it; the [guide](../guide/mcp.md) has the setup.
Every tool but `{listing.NAME}` is the [command](commands.md) of its name. All take `limit` and `offset`:

{_arguments(LIMIT_AND_OFFSET, ())}

{sections}"""


def _tool(name: str, words: str, schema: dict[str, Any]) -> str:
    own = {argument: about for argument, about in schema["properties"].items() if argument not in LIMIT_AND_OFFSET}
    table = _arguments(own, schema["required"]) if own else "No arguments of its own."
    return f"## {name}\n\n{words}\n\n{table}\n\n"


def _arguments(properties: dict[str, Any], required: Sequence[str]) -> str:
    rows = [
        (f"`{name}`" + (" (needed)" if name in required else ""), _kind(about), about["description"])
        for name, about in properties.items()
    ]
    return _markdown(("Argument", "Type", "Meaning"), rows)


def _kind(about: dict[str, Any]) -> str:
    if "enum" in about:
        return " or ".join(f"`{choice}`" for choice in about["enum"])
    return f"{about['type']} of {about['items']['type']}s" if about["type"] == "array" else str(about["type"])


def _rule(rule: Rule) -> str:
    words = sys.modules[rule.find.__module__].__doc__ or ""
    return f"## {rule.name}\n\n{words.strip()}\n\n{_thresholds(rule)}"


def _thresholds(rule: Rule) -> str:
    values = ", ".join(f"`{name}` {format_share(value)}" for name, value in thresholds_of([rule]).items())
    return f"Thresholds: {values}.\n\n" if values else ""


def _format(fmt: Format) -> str:
    tables = ", ".join(f"[`{name}`](tables.md#{name})" for name in TABLES if name in fmt.tables)
    rows = [
        ("Names for `--format`", ", ".join(f"`{name}`" for name in (fmt.name, *fmt.aliases))),
        ("Usual endings", ", ".join(f"`{suffix}`" for suffix in fmt.suffixes)),
        ("Fills", tables),
        *([("Recorded by", f"`{fmt.recorded_by}`")] if fmt.recorded_by else []),
        ("Not read", fmt.limits or "Nothing is left out."),
    ]
    return f"## {fmt.name}\n\n{fmt.title}\n\n{_markdown(('', ''), rows)}\n\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


REFERENCES: dict[str, Callable[[], str]] = {
    "tables.md": tables_page,
    "fleet.md": fleet_page,
    "losses.md": losses_page,
    "commands.md": commands_page,
    "formats.md": formats_page,
    "kineto-events.md": lambda: kineto_events.page(_markdown),
    "works-on.md": lambda: works_on.page(_markdown),
    "findings.md": findings_page,
    "tools.md": tools_page,
    "json.md": json_page,
}

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PageError as error:
        sys.exit(str(error))
