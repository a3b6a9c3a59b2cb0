"""`inferometer leaderboard`: candidates in order by the results of bench, or a page about the operator catalogue."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, asked_theme, command, output_options
from inferometer.commands.options.pages import (
    STDOUT,
    check_output,
    choose_place,
    describe_page,
    say_page,
    warn_left_out,
    write_page,
)
from inferometer.commands.options.selection import Number, hardware_option
from inferometer.commands.settings import is_setting

if TYPE_CHECKING:
    from inferometer.analyses.operators.leaderboard import Leaderboard
    from inferometer.bench.ranking.given_weights import GivenWeights
    from inferometer.bench.ranking.ranking import Ranking
    from inferometer.bench.ranking.standing import NamedRun
    from inferometer.hardware.device import Device

_CATALOGUE_TITLE = "Operators of LLM inference: shapes, bounds and deployed kernels"
_RANKING_TITLE = "Kernels in order: right, and how fast"
_TWO = 2
_MOST_FILES = 200
_MOST_BYTES = 512_000_000  # of all files: 100,000 results are some 90 MB


@command(
    "leaderboard",
    group="Bench",
    help="Rank the kernels of RESULTS, or write one page about the operator catalogue.\n\n"
    "RESULTS are files of `inferometer bench -o`. Kernels are ranked, for each device apart: right before wrong, "
    "then by the importance-weighted score, or by speedup where no bound is known. Of two files the differences are "
    "shown too, by operator and shape by shape, over a base that both timed. With -o the ranking is a page as well.\n\n"
    "Without RESULTS the page has the catalogue's operators by importance, what H20, XPU-A and each --hardware allow, "
    "S of the deployed kernels next to the published figures, and rooflines. With --json and without -o, only the data "
    "are printed and no page is made. A page is HTML that needs no network, at most 8 MB; in .md, Markdown.",
    example="inferometer leaderboard before.json after.json -o leaderboard.html",
)
@click.argument("results", metavar="[RESULTS]...", nargs=-1)
@click.option("-o", "--output", metavar="OUT", help=(
    "The page to make; - is standard output.  [default, without RESULTS: leaderboard.html]"))  # fmt: skip
@click.option("--base", metavar="NAME", help="With RESULTS: the candidate that speedups are over.")
@click.option("--shapes", metavar="FILE", help=(
    "With RESULTS: weights from a file that `fleet importance -o` wrote, in place of the published importance; no "
    "other shapes count."))  # fmt: skip
@click.option("--check", is_flag=True, help=(
    "With two RESULTS: exit with 1 where a shape became wrong, or shapes or operators slower, for CI."))  # fmt: skip
@click.option("--smallest-effect", type=Number(0, 100, min_open=True), metavar="PERCENT", help=(
    "With two RESULTS: changes of time below this don't count.  [default: 3]"))  # fmt: skip
@hardware_option("Without RESULTS: one more device: 'H100 SXM'. Repeatable.", multiple=True)
@click.option("--to", type=click.Choice(("html", "markdown")), help="The form of the page.  [default: as OUT ends]")
@click.option("--title", metavar="TEXT", help="The page's heading.")
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@output_options(*FORMATS)
def run(
    results: tuple[str, ...],
    output: str | None,
    base: str | None,
    shapes: str | None,
    check: bool,
    smallest_effect: float | None,
    hardware: tuple[str, ...],
    to: str | None,
    title: str | None,
    force: bool,
    out: Output,
) -> int:
    if shapes is not None and not results:
        raise click.UsageError("--shapes needs RESULTS; `inferometer operators --shapes FILE` bounds the shapes.")
    _check_options(results, base, hardware, check=check, smallest=smallest_effect, out=out)
    has_page = not (out.form == "json" and output is None and to is None)
    if results:
        has_page = output is not None or to is not None
    place, form = choose_place(output, to, stem="leaderboard")
    page = _Page(place, form, title, force) if has_page else None
    if page is not None:
        check_output(place, form, force=force, out=out)
    if results:
        return _rank(results, base, shapes, page, check=check, smallest=smallest_effect, out=out)
    _describe_catalogue(hardware, page, out)
    return 0


class _Page:
    """A page to write: where, its form and heading."""

    def __init__(self, place: str, form: str, title: str | None, force: bool) -> None:
        self.place, self.form, self.title, self.force = place, form, title, force

    def write(self, text: str) -> None:
        write_page(self.place, text, self.form, force=self.force)

    def command(self, *words: str) -> str:
        """What makes the page again, without the folders of this machine."""
        output = self.place if self.place == STDOUT else Path(self.place).name
        return shlex.join(["inferometer", "leaderboard", "-o", output, *words, "--to", self.form])


def _check_options(
    results: tuple[str, ...],
    base: str | None,
    names: tuple[str, ...],
    *,
    check: bool,
    smallest: float | None,
    out: Output,
) -> None:
    if results and names and not is_setting("hardware"):
        raise click.UsageError("--hardware can't be used with RESULTS, which name the device that they ran on.")
    if not results and out.form not in (None, "json"):
        raise click.UsageError(f"--{out.form} needs RESULTS.")
    if not results and base is not None:
        raise click.UsageError("--base needs RESULTS.")
    if check and len(results) != _TWO:
        raise click.UsageError(f"--check needs two RESULTS, base and candidate; found {len(results)}.")
    if smallest is not None and len(results) != _TWO:
        found = f"found {len(results)}"
        raise click.UsageError(f"--smallest-effect needs two RESULTS, base and candidate; {found}.")
    if len(results) > _MOST_FILES:
        raise click.UsageError(f"at most {_MOST_FILES} RESULTS at a time, found {len(results)}.")


def _rank(
    paths: Sequence[str],
    base: str | None,
    shapes: str | None,
    page: _Page | None,
    *,
    check: bool,
    smallest: float | None,
    out: Output,
) -> int:
    from inferometer.bench.ranking.changes import SMALLEST
    from inferometer.bench.ranking.ranking import rank_runs

    ranking = rank_runs(
        _read(paths),
        base=base,
        smallest=SMALLEST if smallest is None else smallest / 100,
        given=None if shapes is None else _read_weights(shapes),
    )
    left_out: tuple[str, ...] = ()
    if page is not None:
        files = map(_name, paths)
        words = [*(("--base", base) if base else ())]
        words += [] if shapes is None else ["--shapes", _name(shapes)]
        words += [] if smallest is None else ["--smallest-effect", f"{smallest:g}"]
        text, left_out = _render_ranking(ranking, page, page.command(*files, *words))
        page.write(text)
    if out.form == "json":
        about = {} if page is None else {"page": describe_page(page.place, page.form, left_out)}
        out.show(ranking, about)
    elif page is None or out.form:
        out.show(ranking)
    elif page.place != STDOUT:
        say_page(page.place, out)
    warn_left_out(left_out)
    return 1 if check and (ranking.differences is None or ranking.differences.regressed) else 0


def _read(paths: Sequence[str]) -> "list[NamedRun]":
    """Each with the name of its file.

    Raises:
        InputError: A file isn't there, or together they are larger than results are.
        FormatError: It is no such file.
    """
    from inferometer.bench.results import read_run
    from inferometer.errors import InputError
    from inferometer.units import format_bytes

    room = _MOST_BYTES
    for path in paths:
        file = Path(path)
        size = file.stat().st_size if file.is_file() else 0
        if size > room:
            message = f"{path}: expected at most {format_bytes(room)} more of results, found {format_bytes(size)}"
            raise InputError(message, hint="Is it a trace? `inferometer summary` reads these.")
        room -= size
    return [(_name(path), read_run(path)) for path in paths]


def _read_weights(shapes: str) -> "GivenWeights":
    from inferometer.bench.exchange.workloads import read_given
    from inferometer.bench.ranking.given_weights import weigh_given
    from inferometer.errors import printable

    return weigh_given(printable(shapes), read_given(Path(shapes)))


def _name(path: str) -> str:
    """Name of the file, without its folder; what isn't text in it is replaced."""
    return Path(path).name.encode("utf-8", "replace").decode()


def _render_ranking(ranking: "Ranking", page: _Page, command: str) -> tuple[str, tuple[str, ...]]:
    from inferometer.reports.ranking.page import render_ranking, render_ranking_text

    title = page.title or _RANKING_TITLE
    if page.form == "markdown":
        return render_ranking_text(ranking, title=title, command=command), ()
    made = render_ranking(ranking, title=title, command=command, theme=asked_theme())
    return made.html, made.left_out


def _describe_catalogue(names: tuple[str, ...], page: _Page | None, out: Output) -> None:
    devices = _devices(names)

    from inferometer.analyses.operators.leaderboard import make_leaderboard
    from inferometer.hardware.known import require_device
    from inferometer.operators import operators

    board = make_leaderboard(list(operators().values()), devices, require_device)
    if page is None:
        out.show(board)
        return
    text, left_out = _render(board, page, page.command(*(word for name in names for word in ("--hardware", name))))
    page.write(text)
    if out.form == "json":
        out.show(board, {"page": describe_page(page.place, page.form, left_out)})
    elif page.place != STDOUT:
        say_page(page.place, out)
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
        raise click.UsageError(f"--hardware: at most {MOST_DEVICES} have room on one page, found {len(devices)}.")
    return list(devices.values())


def _render(board: "Leaderboard", page: _Page, command: str) -> tuple[str, tuple[str, ...]]:
    from inferometer.reports.leaderboard.page import render_leaderboard, render_leaderboard_text

    title = page.title or _CATALOGUE_TITLE
    if page.form == "markdown":
        return render_leaderboard_text(board, title=title, command=command), ()
    made = render_leaderboard(board, title=title, command=command, theme=asked_theme())
    return made.html, made.left_out
