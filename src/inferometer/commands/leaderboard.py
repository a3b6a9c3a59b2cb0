"""`inferometer leaderboard`: one page about the operator catalogue, with every shape, bound and published figure."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import Output, command, output_options
from inferometer.commands.pages import (
    STDOUT,
    check_output,
    choose_place,
    describe_page,
    say_page,
    warn_left_out,
    write_page,
)

if TYPE_CHECKING:
    from inferometer.analyses.leaderboard import Leaderboard
    from inferometer.hardware.device import Device

_TITLE = "Operators of LLM inference: shapes, bounds and deployed kernels"


@command(
    "leaderboard",
    help="Write one self-contained page about the operator catalogue, with every shape and bound.\n\n"
    "The page has the operators by importance, what H20, XPU-A and each DEVICE allow, S of the deployed kernels beside "
    "the published figures, and rooflines. It is HTML that needs no network, at most 8 MB; with a name in .md it is "
    "Markdown. With --json and without -o, only the data are printed and no page is made.",
    example="inferometer leaderboard -o operators.html --device 'H100 SXM'",
)
@click.option(
    "-o", "--output", metavar="OUT", help="The file to make; - is standard output.  [default: leaderboard.html]"
)
@click.option("--device", "names", metavar="DEVICE", multiple=True, help="One more device: 'H100 SXM'. Repeatable.")
@click.option("--to", type=click.Choice(("html", "markdown")), help="The form.  [default: as OUT ends]")
@click.option("--title", metavar="TEXT", default=_TITLE, help="The page's heading.")
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@output_options("json")
def run(output: str | None, names: tuple[str, ...], to: str | None, title: str, force: bool, out: Output) -> None:
    only_data = out.form == "json" and output is None and to is None
    place, form = choose_place(output, to, stem="leaderboard")
    if not only_data:
        check_output(place, form, force=force, out=out)
    devices = _devices(names)

    from inferometer.analyses.leaderboard import make_leaderboard
    from inferometer.hardware.known import require_device
    from inferometer.operators import operators

    board = make_leaderboard(list(operators().values()), devices, require_device)
    if only_data:
        out.write_json(board.as_json())
        return
    text, left_out = _render(board, title, form, _command(place, names, form))
    write_page(place, text, force=force)
    if out.form == "json":
        out.write_json({**board.as_json(), "page": describe_page(place, form, left_out)})
    elif place != STDOUT:
        say_page(place, out)
    warn_left_out(left_out)


def _devices(names: tuple[str, ...]) -> "list[Device]":
    """Those devices, each once.

    Raises:
        click.UsageError: The page has no room for as many.
        InputError: One isn't known, or several may be meant.
    """
    from inferometer.hardware.known import require_device
    from inferometer.reports.leaderboard.page import MOST_DEVICES

    devices = {device.name: device for device in map(require_device, names)}
    if len(devices) > MOST_DEVICES:
        raise click.UsageError(f"--device: at most {MOST_DEVICES} have room on one page, found {len(devices)}.")
    return list(devices.values())


def _render(board: "Leaderboard", title: str, to: str, command: str) -> tuple[str, tuple[str, ...]]:
    from inferometer.reports.leaderboard.page import render_leaderboard, render_leaderboard_text

    if to == "markdown":
        return render_leaderboard_text(board, title=title, command=command), ()
    page = render_leaderboard(board, title=title, command=command)
    return page.html, page.left_out


def _command(output: str, names: tuple[str, ...], to: str) -> str:
    """What makes the page again, without the folders of this machine."""
    words = ["inferometer", "leaderboard", "-o", output if output == STDOUT else Path(output).name]
    words += [word for name in names for word in ("--device", name)]
    return shlex.join([*words, "--to", to])
