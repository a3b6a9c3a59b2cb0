"""Which tests run one after the other in one process: those of a file, and in tests/truth those of one capture.

Reading a capture as plain rows takes seconds, and what a file's tests share is made once.
"""

import re

from tests.truth.raw import FILES
from xdist.scheduler.loadscope import LoadScopeScheduling

_CAPTURE = re.compile(r"\[(" + "|".join(sorted(map(re.escape, FILES), key=len, reverse=True)) + r")[\]-]")


class ByFileOrCapture(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """pytest-xdist's scheduling by scope, with these scopes."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/bench/builds/"):
            return "tests/bench/builds"  # they share kernels that take a minute to compile
        if nodeid.startswith("tests/docs/test_pages.py::test_a_page"):
            return nodeid  # each runs its page's commands, for up to half a minute
        capture = _CAPTURE.search(nodeid) if nodeid.startswith("tests/truth/") else None
        return capture[1] if capture else nodeid.partition("::")[0]
