"""Waits for the import of torch. Plain old Python that loads nothing: it also runs in Pythons that we don't know.

`say` is called where torch can't be followed.
"""

import sys

TYPE_CHECKING = False  # typing's own would have to be loaded
if TYPE_CHECKING:
    from typing import Any


class Watch:
    """An import finder that finds nothing itself: it calls `begin` when torch has been imported, then goes away."""

    def __init__(self, begin: "Any", say: "Any" = None) -> None:
        self.begin = begin
        self.say = say
        self.is_looking = False

    def watch(self) -> None:
        """From now on."""
        sys.meta_path.insert(0, self)

    def leave(self) -> bool:
        """Whether it was still waiting."""
        if self not in sys.meta_path:
            return False
        sys.meta_path.remove(self)
        return True

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """As the other finders would answer; torch's loader then calls `begin` when it is done, once."""
        if name != "torch" or self.is_looking:
            return None
        from importlib.util import find_spec

        self.is_looking = True
        try:
            spec = find_spec(name)
        finally:
            self.is_looking = False
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            self.follow(spec.loader)
        return spec

    def follow(self, loader: "Any") -> None:
        """Have `loader` tell when it has executed the module; afterwards it is as it was."""
        execute = loader.exec_module

        def exec_module(module: "Any") -> None:
            del loader.exec_module
            execute(module)
            if self.leave():
                # It is whole, though its import hasn't returned. Threads that `begin` waits for import it, too, and
                # PyTorch does so for every range; while this is set, they would wait for the import.
                module.__spec__._initializing = False
                self.begin()

        try:
            loader.exec_module = exec_module
        except AttributeError:
            if self.say is not None:
                self.say("torch is loaded by something that can't be followed: only counters are recorded")
