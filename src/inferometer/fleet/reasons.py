"""Why a place has no digest: the same words wherever, and under whatever name, it was read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from inferometer.errors import InputError, Unavailable, clean, printable
from inferometer.privacy.secrets import blank_secrets

_LONGEST: Final = 500


class SetAside(Exception):
    """A place, or its content, has no digest; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def setting_aside(name: str, *also: type[Exception]) -> Iterator[None]:
    """Turn errors about the file at `name` into `SetAside`: those that readers raise, and the classes `also`."""
    expected: tuple[type[Exception], ...] = (InputError, Unavailable, *also)
    try:
        yield
    except expected as error:
        raise SetAside(_reason(error, name)) from error


def _reason(error: Exception, name: str) -> str:
    """What went wrong, without the name: the same content has the same reason under all of them."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else getattr(error, "message", str(error))
    text = clean(why.removeprefix(f"{printable(name)}: ").replace(printable(name), "the file"))
    return blank_secrets(text)[:_LONGEST]
