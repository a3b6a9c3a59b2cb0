"""Why an A/B ended early: the arm, where in the model, and the error. Exceptions are the backends'."""

from collections.abc import Iterator
from traceback import walk_tb
from types import FrameType

from inferometer.engines import arms, generation
from inferometer.engines.memory import is_out_of_memory
from inferometer.engines.paths import PathRecorder
from inferometer.errors import InferometerError, InputError, Unavailable, clean

_LONGEST = 300


def describe_failure(error: BaseException, during: str, recorder: PathRecorder | None = None) -> str:
    """`triton, repetition 3 of 10: in decode: completion.generate.decode.….silu_mul: RuntimeError: …`."""
    place = _place(error, recorder)
    return ": ".join((during, *(() if place is None else (place,)), _describe_error(error)))


def as_error(error: BaseException, text: str) -> BaseException:
    """What to raise where nothing whole was measured: of the same class where that is one of ours."""
    if isinstance(error, KeyboardInterrupt):
        return error
    if isinstance(error, InferometerError):
        kind = InputError if isinstance(error, InputError) else type(error)  # one of those has arguments of its own
        return kind(text, hint=error.hint)
    if is_out_of_memory(error):
        return Unavailable(text, hint="A smaller batch, and fewer prompt and new tokens, need less.")
    return InputError(text, hint="Choose another backend for this operator, such as OPERATOR=torch.")


def _describe_error(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    message = error.message if isinstance(error, InferometerError) else str(error)
    words = clean(message.strip().split("\n")[0])[:_LONGEST]
    if is_out_of_memory(error):
        return f"out of memory: {words}" if words else "out of memory"
    if isinstance(error, InferometerError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _place(error: BaseException, recorder: PathRecorder | None) -> str | None:
    """The operator's call that was open, by its path where a recorder knows it; else the phase; None: neither."""
    phase = site = operator = None
    for frame in _frames(error):
        if frame.f_code is generation.generate.__code__:
            phase = frame.f_locals.get("phase")
        elif frame.f_code is arms.call.__code__:
            operator = frame.f_locals["operator"]
            site = frame.f_locals["site"] or operator
    if operator is None:
        return None if phase is None else f"in {phase}"
    if recorder is not None and (key := _last_call(recorder, operator)) is not None:
        return f"in {key}"
    call = operator if site == operator else f"{operator} ({site})"
    return f"in {call}" if phase is None else f"in {phase}, {call}"


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Of the error, and of the one that was being handled when it came: a device tells an error late."""
    if error.__context__ is not None:
        yield from _frames(error.__context__)
    for frame, _ in walk_tb(error.__traceback__):
        yield frame


def _last_call(recorder: PathRecorder, operator: str) -> str | None:
    """The path of the operator's last call; after the one that failed, only those around it ended."""
    ended = (recorder.paths[node] for node in reversed(recorder.path_of))
    return next((path.key for path in ended if path.operator == operator), None)
