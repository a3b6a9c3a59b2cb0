"""Whose code it is, by its file: Python's own, an installed library's, or a candidate's, which is in neither."""

import os
import sys
import sysconfig
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")


class Libraries:
    """Where libraries lie. It is made before a candidate is loaded, which may change `sys.path`."""

    def __init__(self) -> None:
        paths = sysconfig.get_paths()
        ours = str(Path(__file__).resolve().parents[2])
        installed = [path for path in sys.path if path.rstrip(os.sep).endswith(_INSTALLED)]
        self._standard = tuple({paths["stdlib"] + os.sep, paths["platstdlib"] + os.sep})
        self._installed = tuple({path.rstrip(os.sep) + os.sep for path in (*installed, paths["purelib"], ours)})

    def is_installed(self, file: str) -> bool:
        """Whether it is of an installed library, or ours; Python's own folder may hold those."""
        return file.startswith(self._installed)

    def is_standard(self, file: str) -> bool:
        """Whether it is Python's own."""
        return file.startswith((*self._standard, "<frozen ")) and not self.is_installed(file)
