"""Which tests run one after the other in one process, and which of these groups first.

A group is the tests of a file, in tests/truth those of one capture: reading a capture as plain rows takes seconds, and
what a file's tests share is made once. The longest come first, so that all processes end at about the same time.
"""

import re
from collections import defaultdict
from typing import Any, Final

import pytest
from tests.slow import function_of, slow_tests
from tests.truth.raw import FILES
from xdist.scheduler.loadscope import LoadScopeScheduling

LONGEST: Final = (
    *("tests/bench/test_cheats.py", "tests/bench/problems/test_running.py", "tests/bench/builds"),
    *("tests/fuzz/test_campaign.py", "tests/engines/gguf/test_real_models.py", "tests/bench/test_candidates.py"),
    *("tests/reports/page/test_browser.py", "tests/commands/test_killed.py", "tests/engines/test_ab_models.py"),
    *("tests/record/workers/test_workers.py", "tests/bench/test_correct.py", "tests/engines/webgpu/test_browser.py"),
    *("tests/benchmarks/test_harness.py", "tests/commands/test_bench.py", "tests/conformance/test_mutants.py"),
    *("tests/benchmarks/test_growth.py", "tests/backends/test_wgsl_sampling.py", "tests/bench/test_isolation.py"),
    *("tests/formats/kineto/test_damage.py", "tests/commands/test_hostile.py", "tests/bench/test_published_form.py"),
    *("tests/bench/problems/test_kernelbench.py", "tests/backends/test_triton_kernels.py"),
    *("tests/commands/options/test_chat_webgpu.py", "tests/fleet/test_mining.py"),
)
"""Groups that take more than twenty seconds by the clock, the longest first; after them those of the most CPU time."""

_USUAL_S = 0.02  # of a test that tests/slow.py doesn't list

_CAPTURE = re.compile(r"\[(" + "|".join(sorted(map(re.escape, FILES), key=len, reverse=True)) + r")[\]-]")


def group_of(test: str) -> str:
    """The group of the test of this node id."""
    if test.startswith("tests/bench/builds/"):
        return "tests/bench/builds"  # they share kernels that take a minute to compile
    if test.startswith("tests/docs/test_pages.py::test_a_page"):
        return test  # each runs its page's commands, for up to half a minute
    capture = _CAPTURE.search(test) if test.startswith("tests/truth/") else None
    return capture[1] if capture else test.partition("::")[0]


def sort_longest_first(items: list[pytest.Item]) -> None:
    """Group by group, as `LONGEST` says."""
    groups = {item.nodeid: group_of(item.nodeid) for item in items}
    slow, seconds = slow_tests(), defaultdict[str, float](float)
    for test, group in groups.items():
        seconds[group] += slow.get(function_of(test), _USUAL_S)
    places = {group: place for place, group in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(groups[item.nodeid], len(places)), -seconds[groups[item.nodeid]]))


class ByFileOrCapture(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """pytest-xdist's scheduling by scope, with these groups in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False  # each process has sorted them already
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
