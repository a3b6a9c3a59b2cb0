"""CPU seconds of each test file, dearest first: of pytest and of all processes below it.

    python -m pytest -p tools.cpu_of_tests tests/docs

Times by the clock say little on a machine that does other work; these grow by half there. Linux only, without
pytest-xdist. What a process took whose parent ended before it is missing. With --note-slow, the list of slow tests
(tests/slow.py) has what was measured, with all extras.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

_MOST_ROWS = 20
_SPENT = defaultdict[str, float](float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--note-slow", action="store_true", help="Note which tests are slow in tests/slow_tests.tsv.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = cpu_s(os.getpid())
    done = yield
    _SPENT[item.nodeid] += cpu_s(os.getpid()) - before
    return done


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    by_file = defaultdict[str, float](float)
    for test, seconds in _SPENT.items():
        by_file[test.partition("::")[0]] += seconds
    terminalreporter.section(f"{sum(by_file.values()):.1f} CPU seconds")
    for file, seconds in sorted(by_file.items(), key=lambda each: -each[1])[:_MOST_ROWS]:
        terminalreporter.write_line(f"{seconds:8.1f}  {file}")
    if config.getoption("--note-slow"):
        from tests.slow import write_slow

        write_slow(_SPENT)


def cpu_s(root: int) -> float:
    """What a process took so far, with its children that ended and all below it that run."""
    ticks: dict[int, int] = {}
    below = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
        below[int(fields[1])].append(int(folder.name))
    found, todo = 0, [root]
    while todo:
        process = todo.pop()
        found += ticks.get(process, 0)
        todo += below[process]
    return found / os.sysconf("SC_CLK_TCK")
