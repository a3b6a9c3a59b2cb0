"""Options of the commands that say who launched it, and how they open what these name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from inferometer.commands.base import TraceArgument
from inferometer.commands.options.selection import Option, between_option, device_option, rank_option, stream_option

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.attribution import Attribution
    from inferometer.analyses.launched_by.user_frames import UserCode
    from inferometer.analyses.selection import Selection
    from inferometer.trace.builder import Wanted
    from inferometer.trace.trace import Trace


def capture_option() -> Option:
    """--capture, traces that show what replays don't; `open_captures` opens them."""
    return click.option(
        "--capture",
        "captures",
        metavar="FILE",
        multiple=True,
        help="Give replayed kernels the call sites of this trace: the capture of the graph, or an eager run of the "
        "same batch. May be given several times: each replay takes the one that fits best.",
    )


def open_captures(source: TraceArgument, paths: tuple[str, ...], needed: "Wanted | None" = None) -> "tuple[Trace, ...]":
    """The captures, with what attribution needs of them, or `needed`. `source`: of the trace that they explain.

    Raises:
        UsageError: Standard input is asked for twice.
    """
    if (source.path, *paths).count("-") > 1:
        raise click.UsageError("Standard input can be FILE or one --capture, not both.")
    from inferometer.analyses.launched_by.launched import NEEDED

    return tuple(TraceArgument(path, limited=source.limited).open(needed or NEEDED) for path in paths)


_OPTIONS = (
    capture_option(),
    click.option(
        "--my",
        metavar="PREFIX",
        multiple=True,
        help="User code is what is below this folder or package: --my sglang/srt/models. May be given several times.",
    ),
    click.option(
        "--framework",
        metavar="PREFIX",
        multiple=True,
        help="This package is no user code, as torch, triton and the standard library aren't.",
    ),
    device_option(),
    stream_option(),
    rank_option(),
    between_option("launches that begin in this window"),
)


class Attributing(msgspec.Struct, frozen=True):
    """What the options say."""

    captures: tuple[str, ...]
    my: tuple[str, ...]
    framework: tuple[str, ...]
    device: str | None
    stream: int | None
    rank: int | None
    between: tuple[int, int] | None

    @property
    def code(self) -> "UserCode":
        """What is the user's own code."""
        from inferometer.analyses.launched_by.user_frames import UserCode

        return UserCode(self.my, self.framework)

    def find(self, source: TraceArgument) -> "Attribution":
        """Open the source and the captures, and attribute the launches selected."""
        from inferometer.analyses.launched_by.launched import NEEDED

        return self.open(source, NEEDED)[1]

    @property
    def is_all(self) -> bool:
        """Whether no launch is left out."""
        return all(value is None for value in (self.device, self.stream, self.rank, self.between))

    @property
    def selection(self) -> "Selection":
        """Which launches are meant."""
        from inferometer.analyses.selection import Selection

        return Selection(self.device, self.stream, self.rank, self.between)

    def open(
        self, source: TraceArgument, needed: "Wanted", *, with_op_calls: bool = False
    ) -> "tuple[Trace, Attribution]":
        """The trace with these tables, too; with the calls of ops, captures have them, too.

        All launches of the rank are attributed then: of a call, `selection` may have only some.
        """
        from inferometer.analyses.launched_by.attribution import attribute
        from inferometer.analyses.selection import Selection

        captures = open_captures(source, self.captures, needed if with_op_calls else None)
        trace = source.open(None if self.between else needed, rank=None if self.between else self.rank)
        selection = Selection(rank=self.rank) if with_op_calls else self.selection
        found = attribute(trace, selection, captures=captures, code=self.code, with_op_calls=with_op_calls)
        return trace, found


def attributing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which captures, whose code, which launches; handed on as `how`."""

    def run(**given: Any) -> Any:
        names = Attributing.__struct_fields__
        how = Attributing(**{name: given.pop(name) for name in names})
        return function(how=how, **given)

    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        option(run)
    return run
