"""`inferometer findings`: what to look at first, with evidence and next steps; for CI, whether there is anything."""

import sys
from typing import TYPE_CHECKING, get_args

import click

from inferometer.commands.base import (
    FORMATS,
    Output,
    TraceArgument,
    asked_detail,
    asked_thresholds,
    command,
    output_options,
    source_argument,
)
from inferometer.commands.options.modelled import Modelled, model_options
from inferometer.commands.options.selection import rank_option, top_option
from inferometer.findings.finding import Severity

if TYPE_CHECKING:
    from inferometer.findings.engine import Findings

_CHECKED = tuple(severity for severity in reversed(get_args(Severity)) if severity != "info")  # that asks for nothing
_JUDGED = ("launches", "steps", "totals", "log")


@command(
    "findings",
    group="Look",
    help="What to look at first: each finding with its evidence and a next step.\n\n"
    "With --check the exit code is 1, too, where nothing can be checked: the file is damaged, or has no device work, "
    "steps or sums of time.",
    example="inferometer findings trace.json.gz --check medium",
)
@source_argument
@click.option(
    "--check", type=click.Choice(_CHECKED), help="Exit 1 where a finding is of this severity or a graver one, for CI."
)
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Ask this rule alone; may be given several times.")
@top_option("findings")
@rank_option()
@model_options(sizes=False)
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    check: Severity | None,
    rules: tuple[str, ...],
    top: int | None,
    rank: int | None,
    modelled: Modelled,
    out: Output,
) -> None:
    from inferometer.findings.engine import find_findings

    model, ran_on = modelled.model(), modelled.ran_on()
    trace = source.open(rank=rank)
    modelled.refuse_unused(trace)
    found = find_findings(
        trace,
        model=model,
        device=ran_on,
        bandwidths=modelled.bandwidths(),
        rules=rules,
        thresholds=asked_thresholds(),
    )
    _show(found if top is None else found.head(top), out)
    if check is None:
        return
    unchecked = _why_unchecked(found)
    if unchecked:
        click.echo(f"not checked: {unchecked}", err=True)
    if unchecked or found.at_least(check):
        click.get_current_context().exit(1)


def _why_unchecked(found: "Findings") -> str:
    """Why no finding is no good news; empty where it is."""
    from inferometer.analyses.lost_work import say_lost_work

    if lost := say_lost_work(found.losses):
        return f"the file {lost}, so findings may be missing."
    if not any(found.examined.rows.get(table) for table in _JUDGED):
        return "the file has no device work, steps or sums of time."
    return ""


def _show(found: "Findings", out: Output) -> None:
    if out.form is not None:
        out.show(found)
        return
    from inferometer.reports.finding_list import render_findings

    out.write(render_findings(found, is_terminal=sys.stdout.isatty(), detail=asked_detail()))
