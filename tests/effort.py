"""How much the tests do: which ones `make test` leaves to `make test-all`, and how hard property tests search.

A property test draws its own number of examples, fewer in CI and in `make test`, 20 times as many in `make fuzz`.
"""

from typing import Final

from hypothesis import settings

LONG: Final = {
    "tests/truth/*.py": "recompute sentences about real captures in plain Python",
    "tests/analyses/call_sites/test_truth.py": "recompute where launches of real captures come from",
    "tests/findings/test_planted.py": "find every planted fault",
    "tests/faults/*.py": "compare pairs of runs with planted faults",
    "tests/benchmarks/test_*.py": "measure small runs, judge real captures",
    "tests/docs/test_pages.py": "run every command of the documentation",
    "tests/fuzz/test_campaign.py": "damage files of every format",
    "test_damage.py": "damage files of one format, anywhere",
    "tests/commands/test_hostile.py": "open hostile files, some of gigabytes",
    "tests/record/test_launching.py": "record programs that end in every way",
    "tests/record/test_journal_processes.py": "kill programs that are recorded",
    "tests/record/test_server.py": "record servers, of which each fails in its own way",
    "tests/commands/test_surroundings.py": "run commands in odd surroundings",
    "tests/commands/test_chat_webgpu.py": "chat with small models, in a browser too",
    "tests/tools/test_make_kineto.py": "make traces of every kind",
    "test_browser.py": "open pages in a browser",
}
"""Files of tests that `make test` leaves out, and what they do: `make test-all` and CI run them, with all extras."""


def examples(usual: int) -> settings:
    """A decorator: `usual` examples under the profile `dev`, which has 100 by default, fewer under `ci`."""
    return settings(max_examples=max(1, usual * settings().max_examples // 100))
