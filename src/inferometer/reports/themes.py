"""Which colors a reader wants: as the terminal or the system has them, for a light or a dark background, or none."""

from typing import Final, Literal, get_args

Theme = Literal["auto", "light", "dark", "none"]
THEMES: Final[tuple[Theme, ...]] = get_args(Theme)
