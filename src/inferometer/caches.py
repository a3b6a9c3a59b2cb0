"""Where we keep what is only there to be fast again: in the user's folder of caches. It may be deleted."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder, which may not be there yet: below `XDG_CACHE_HOME` or `~/.cache`, on Windows `LOCALAPPDATA`."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home())
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "inferometer"
