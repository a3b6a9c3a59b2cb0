"""What hatchling asks when it makes a wheel: the library in C++ is built and put into it, where that works.

Without a compiler, or with `INFEROMETER_NATIVE=0`, the wheel has Python alone, and is for any system.
"""

import os
import platform
import runpy
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BUILD = Path("src", "inferometer", "formats", "native", "build.py")


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the library; an installation never fails by it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, then name the file and the system that it is for."""
        if os.environ.get("INFEROMETER_NATIVE") == "0":
            return
        build = runpy.run_path(str(Path(self.root) / _BUILD))
        library: Path = build["LIBRARY"]
        try:
            if not build["is_current"](library):
                build["build"]()
        except build["BuildError"] as error:
            self.app.display_warning(f"without its library in C++, Inferometer reads more slowly: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"
        build_data["artifacts"].append(library.relative_to(self.root).as_posix())


def _platform() -> str:
    """As wheels name the system: one architecture, also where Python is for several."""
    if sys.platform == "darwin":
        return f"macosx_11_0_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
