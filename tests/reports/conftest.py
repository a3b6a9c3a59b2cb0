"""Results that reports are asked to render: a plain one, and one full of malice; and a browser for pages."""

from collections.abc import Iterator

import pytest
from tests.reports.page.browser import Tab, chromium
from tests.traces import trace_of

from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.analyses.tables.summary import Summary, summarize
from inferometer.trace.facts import Device
from inferometer.trace.trace import Trace

HOSTILE = [
    "<script>alert(1)</script>",
    "a | b",
    "\x1b[31mred\x1b[0m\x9b2J",
    "two\nlines\r\nand\ttabs",
    '=HYPERLINK("http://evil")',
    "+1",
    "-1",
    "@SUM(A1)",
    "`code` *bold* _it_ [a](b) ![i](j) # h ~s~ \\",
    "\u202eevil\u2066",
    "</td></tr></table>{{ 7*7 }}{% raw %}",
    "&amp; 'single' \"double\"",
    "[bold red]markup[/]",
    "μs 😀",
    "",
]


@pytest.fixture
def trace() -> Trace:
    launches = [
        {"kernel": "void gemm<128, 64>(float*)", "dur_ns": 84_724, "start_ns": 0},
        {"kernel": "void gemm<128, 64>(float*)", "dur_ns": 84_000, "start_ns": 100_000},
        {"kernel": "rms_norm", "dur_ns": 960, "start_ns": 190_000},
        {"kernel": "Memcpy HtoD", "kind": "memcpy", "dur_ns": 2_000, "start_ns": 200_000},
    ]
    facts = {"source": "trace.json", "tool": "PyTorch profiler (Kineto)", "devices": (Device("gpu:0", "NVIDIA H100"),)}
    trace = trace_of(launches, facts=facts)
    trace.losses.count("truncated", category=None, example="at byte 7")
    trace.losses.count("flow_event", 5, category="ac2g")
    return trace


@pytest.fixture
def table(trace: Trace) -> KernelTable:
    return kernel_table(trace)


@pytest.fixture
def summary(trace: Trace) -> Summary:
    return summarize(trace)


@pytest.fixture
def hostile() -> Summary:
    """Names from a file that nobody should trust, in every place that names reach."""
    launches = [{"kernel": name, "device": name, "dur_ns": 100, "start_ns": 1000 * i} for i, name in enumerate(HOSTILE)]
    facts = {"source": HOSTILE[2] + HOSTILE[0], "hosts": tuple(HOSTILE), "devices": (Device(HOSTILE[0], HOSTILE[1]),)}
    trace = trace_of(launches, facts=facts)
    for name in HOSTILE:
        trace.losses.count("truncated", category=name, example=name)
    return summarize(trace, top=100)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    """Ends with the proof that nothing went wrong and nothing was asked for but the page."""
    features = [{"name": "prefers-color-scheme", "value": "light"}]
    browser.call("Emulation.setEmulatedMedia", media="", features=features)
    yield browser
    assert browser.run("1") == 1  # what was said until now has come
    assert browser.problems == []
    assert [url[:40] for url in browser.requests if not url.startswith("data:")] == [browser.run("location.href")[:40]]
