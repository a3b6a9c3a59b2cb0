"""`--memory SIZE`: how much a process that reads or runs what nobody vouches for may take."""

from collections.abc import Callable

import click


def parse_memory(what: str) -> Callable[[click.Context, click.Parameter, str | None], int | None]:
    """A callback that gives bytes, and refuses less than `what` takes by itself."""

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        from inferometer.guarded import LEAST_BYTES
        from inferometer.units import parse_bytes

        found = parse_bytes(value)
        if found < LEAST_BYTES:
            raise click.BadParameter(f"expected at least {LEAST_BYTES >> 20}MiB: {what} takes as much.", ctx, param)
        return found

    return parse
