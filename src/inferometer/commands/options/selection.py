"""Options that mean the same in every command: which rows, of which rank and device, in which window, in what order."""

import math
from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

_MOST_ROWS = 2**31 - 1

_STATISTICS = {  # with Nsight's words next to ours
    "total": "total",
    "count": "count",
    "mean": "mean",
    "avg": "mean",
    "median": "median",
    "med": "median",
    "min": "min",
    "max": "max",
    "stddev": "stddev",
    "name": "name",
}


class Number(click.FloatRange):
    """A number in a range; `nan`, which is in every range, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class RowCount(click.IntRange):
    """A number of rows, at least 1; more than any table has is that many."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        return min(int(super().convert(value, param, ctx)), _MOST_ROWS)


def sort_option(count: str) -> Option:
    """--sort, of a table of statistics; `count` is a further word for its count."""
    words = {**_STATISTICS, count: "count"}
    return click.option(
        "--sort",
        type=click.Choice(tuple(words)),
        default="total",
        show_default=True,
        callback=lambda ctx, param, word: words[word],
        help="Largest first; names from A to Z.",
    )


def top_option(rows: str, *, default: int | None = None) -> Option:
    """--top, the number of `rows` to show."""
    what = f"Show the first N {rows}." if default is None else f"{rows} to list."
    rows_at_most = RowCount(min=1)
    return click.option(
        "--top", type=rows_at_most, metavar="N", help=what, default=default, show_default=default is not None
    )


def match_option(rows: str, *, of_kernels: str = "") -> Option:
    """--match, a regular expression that the names of `rows` are searched for; `of_kernels`: what else of kernels."""
    help_text = f"Show {rows} whose name{of_kernels} the regular expression finds."
    return click.option("--match", metavar="REGEX", help=help_text)


def device_option() -> Option:
    """--device."""
    return click.option("--device", metavar="DEVICE", help="Only this device: 0 or gpu:0.")


def renamed_option(old: str, new: str, meaning: str) -> Option:
    """An option that had this name before: it is refused with the new one, since `old` means something else now."""

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{old} is {new} here: {meaning}.", ctx)

    name = f"renamed_{old.strip('-').replace('-', '_')}"
    return click.option(old, name, hidden=True, expose_value=False, multiple=True, callback=refuse)


def hardware_option(help_text: str, *, multiple: bool = False) -> Option:
    """--hardware, which names a device of our data; --device, which chooses one of a trace, is refused with a hint."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        renamed = renamed_option("--device", "--hardware", "it names a device of our data, see `inferometer hardware`")
        return click.option("--hardware", metavar="NAME", multiple=multiple, help=help_text)(renamed(function))

    return declare


def hardware_file_option(help_text: str) -> Option:
    """--hardware-file, a device's own data."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        renamed = renamed_option("--device-file", "--hardware-file", "it holds a device's data")
        return click.option("--hardware-file", metavar="FILE", help=help_text)(renamed(function))

    return declare


def stream_option(more: str = "") -> Option:
    """--stream."""
    return click.option("--stream", type=int, metavar="N", help=f"Only this stream{more}.")


def rank_option() -> Option:
    """--rank."""
    return click.option("--rank", type=int, metavar="N", help="Only this rank.")


def between_option(what: str) -> Option:
    """--between, as ns from the trace's start or None; `what` says what is kept of the window."""
    return click.option(
        "--between",
        nargs=2,
        metavar="T1 T2",
        callback=_window,
        help=f"Only {what}, in seconds from the trace's start or with a unit: --between 1.5 2, --between 20ms 35ms.",
    )


def _window(ctx: click.Context, param: click.Parameter, value: tuple[str, str] | None) -> tuple[int, int] | None:
    if not value:
        return None
    from inferometer.units import parse_duration

    return parse_duration(value[0], default_unit="s"), parse_duration(value[1], default_unit="s")
