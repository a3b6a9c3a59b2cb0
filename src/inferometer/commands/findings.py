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


@command(
    "findings",
    group="Look",
    help="What to look at first: each finding with its evidence and a next step.",
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
    found = find_findings(
        trace,
        model=model,
        device=ran_on,
        bandwidths=modelled.bandwidths(),
        rules=rules,
        thresholds=asked_thresholds(),
    )
    _show(found if top is None else found.head(top), out)
    if check is not None and found.at_least(check):
        click.get_current_context().exit(1)


def _show(found: "Findings", out: Output) -> None:
    if out.form is not None:
        out.show(found)
        return
    from inferometer.reports.finding_list import render_findings

    out.write(render_findings(found, is_terminal=sys.stdout.isatty(), detail=asked_detail()))
