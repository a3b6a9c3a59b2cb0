"""A replay as a Python script: what it runs, and the harness that runs it.

Nothing of a trace gets into the code but numbers, and the name of an op that `refusals` has checked.
"""

import math
from importlib.resources import files
from typing import Any, Final

from inferometer.reports.replay.arguments import Argument, replayed_call
from inferometer.reports.replay.harness import Strided
from inferometer.units import format_duration

_NOT_RECORDED: Final = """\
Tensors have the recorded sizes, strides and types, and random values: profilers record no values of tensors. Texts
aren't recorded either: an op's default stands for them. What is filled in for want of a record says so next to it."""
BEGINNING: Final = '"""Replay of '
"""How every script begins."""


def replay_script(row: dict[str, Any]) -> str:
    """The script that runs the op of a row of `roofline` again.

    Raises:
        InputError: It can't be run again; the message says why.
    """
    replayed = replayed_call(row)
    inputs = "".join(_line(argument) for argument in replayed.inputs)
    harness = (files(__package__) / "harness.py").read_text("utf-8").partition('"""\n\n')[2]
    return (
        f"{BEGINNING}{replayed.op}, as a trace recorded it. Run it with a Python that has torch.\n\n"
        f"{_recorded(row)}\n\n{_NOT_RECORDED}\n"
        f'"""\n\n{harness}\n\n'
        f"CALL = Call(\n    {_text(replayed.op)},\n    (\n{inputs}    ),\n    {_text(replayed.libraries)},\n)\n\n"
        'if __name__ == "__main__":\n    main(CALL)\n'
    )


def _recorded(row: dict[str, Any]) -> str:
    """What was measured of it."""
    calls, total_ns = int(row["calls"]), int(row["total_ns"])
    each = f"{calls:,} calls, {format_duration(total_ns / calls)} each" if calls > 1 else "1 call"
    return f"Recorded: {each}, {format_duration(total_ns)} in all, of {int(row['launches']):,} launches."


def _line(argument: Argument) -> str:
    value, remark = argument.value, f"  # {argument.remark}" if argument.remark else ""
    if isinstance(value, list) and any(isinstance(each, Strided) for each in value):
        parts = "".join(f"            {_text(each)},\n" for each in value)
        return f"        [{remark}\n{parts}        ],\n"
    return f"        {_text(value)},{remark}\n"


def _text(value: Any) -> str:
    """Python for a value."""
    if isinstance(value, Strided):
        given = [_text(part) for part in value[:3]]
        given += [] if value.fill is None else [f"{type(value.fill).__name__}{tuple(value.fill)!r}".replace(",)", ")")]
        given += ["on_host=True"] if value.on_host else []
        return f"Strided({', '.join(given)})"
    if isinstance(value, list):
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_text(each) for each in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return f'"{value}"' if isinstance(value, str) else repr(value)
