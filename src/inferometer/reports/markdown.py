"""A result as GitHub-flavoured Markdown."""

import re

from inferometer.analyses.result import Result, Section
from inferometer.reports.base import cell, clean, is_right, loss_lines, shown_fields

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def render_markdown(result: Result) -> str:
    """Facts as a list, each section as a table, then remarks and losses."""
    blocks = []
    if result.facts():
        blocks.append("\n".join(f"- **{label}**: {_escape(text)}" for label, text in result.facts()))
    blocks += [_section(section) for section in result.sections()]
    if result.remarks():
        blocks.append("\n".join(f"- {_escape(remark)}" for remark in result.remarks()))
    if lines := loss_lines(result.losses):
        blocks.append("\n".join(["Losses:", "", *(f"- {_escape(line)}" for line in lines)]))
    return "\n\n".join(blocks) + "\n"


def _section(section: Section) -> str:
    fields = shown_fields(section)
    lines = [f"### {section.title}", "", "| " + " | ".join(field.title for field in fields) + " |"]
    lines.append("|" + "|".join("---:" if is_right(field) else "---" for field in fields) + "|")
    rows = section.frame.iter_rows(named=True)
    lines += ["| " + " | ".join(_escape(cell(field, row[field.column])) for field in fields) + " |" for row in rows]
    return "\n".join([*lines, *(f"\n{_escape(note)}" for note in section.notes)])


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", clean(text))
