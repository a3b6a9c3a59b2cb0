"""Regular expressions that are compiled when they are first used: a command needs few of those that modules declare."""

import re
from typing import Any, cast


def late_re(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, later. A mistake in it shows then, too."""
    return cast("re.Pattern[str]", _LatePattern(text, flags))


class _LatePattern:
    """Has the attributes of the compiled pattern, from the first question for each on."""

    def __init__(self, text: str, flags: int) -> None:
        self._made_of = text, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._made_of), name)
        setattr(self, name, value)
        return value
