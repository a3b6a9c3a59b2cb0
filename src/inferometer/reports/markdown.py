"""A result as GitHub-flavoured Markdown."""

import re
from collections.abc import Mapping
from typing import Any

from inferometer.analyses.result import Result
from inferometer.errors import clean
from inferometer.reports.base import cell, is_right, loss_lines, shown_fields
from inferometer.reports.screen.shown_names import readable_kernel
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import brief_of, facts_of, more_of, remarks_of, sections_of
from inferometer.trace.facts import without_folders

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_CALLS_UP = re.compile(  # by GitHub or GitLab: @user, #12, !12, ~label; GH-12; links; a command at the begin of a line
    r"(?<=[@#!$%&~^])(?=[\w\"])|(?<=\bG[HL]-)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)|^(?=/)", re.IGNORECASE
)
_BREAK = "\u200b"  # a space of no width; `clean` leaves none in a text


def render_markdown(result: Result, *, raw: bool = False) -> str:
    """Facts as a list, each section as a table, then remarks and losses; folded below the brief where there is one.

    Names of kernels are demangled, but for `raw`.
    """
    blocks = []
    if facts := facts_of(result):
        blocks.append("\n".join(f"- **{label}**: {escape_markdown(_to_share(label, text))}" for label, text in facts))
    blocks += [markdown_table(section, raw=raw) for section in (*sections_of(result), *more_of(result))]
    if remarks := remarks_of(result):
        blocks.append("\n".join(f"- {escape_markdown(remark)}" for remark in remarks))
    if lines := loss_lines(result.losses):
        blocks.append("\n".join(["Losses:", "", *(f"- {escape_markdown(line)}" for line in lines)]))
    if brief := brief_of(result):
        first, *rest = (escape_markdown(line) for line in brief)
        blocks = [
            f"**{first}**",
            "\n".join(f"- {line}" for line in rest),
            "<details>\n<summary>Details</summary>",
            *blocks,
            "</details>",
        ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def markdown_table(section: Section, *, level: int = 3, raw: bool = False) -> str:
    """A heading of this level (none for 0), the table, and the notes; names of kernels demangled, but for `raw`."""
    fields = shown_fields(section)
    heading = [f"{'#' * level} {section.title}", ""] if level else []
    lines = [*heading, "| " + " | ".join(field.title for field in fields) + " |"]
    lines.append("|" + "|".join("---:" if is_right(field) else "---" for field in fields) + "|")
    rows = section.frame.iter_rows(named=True)
    lines += ["| " + " | ".join(escape_markdown(_cell(field, row, raw=raw)) for field in fields) + " |" for row in rows]
    return "\n".join([*lines, *(f"\n{escape_markdown(note)}" for note in section.notes)])


def _cell(field: Field, row: Mapping[str, Any], *, raw: bool) -> str:
    value = row[field.column]
    is_kernel = field.kind == "kernel" and (field.kernel_where is None or row[field.kernel_where])
    return cell(field, readable_kernel(value) if is_kernel and value is not None and not raw else value)


def _to_share(label: str, text: str) -> str:
    """What is in a list of facts: of a file, its name without the folders of this machine."""
    return without_folders(text) if label == "File" else text


def escape_markdown(text: str) -> str:
    """`text` without any meaning in Markdown or HTML, on one line.

    Nor is anything in it a mention, a reference, a link or a command to GitHub or GitLab, which look for these in the
    text that is left when Markdown is done: a kernel named `{lambda()#1}` is no word about issue 1.
    """
    broken = _CALLS_UP.sub(_BREAK, clean(text))
    return _SPECIAL.sub(r"\\\1", broken).replace(_BREAK, "&#8203;")
