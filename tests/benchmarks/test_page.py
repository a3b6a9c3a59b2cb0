"""What the benchmark of the page says of what it measured, and which bars it holds."""

from dataclasses import replace

from benchmarks.page import Found, quantile, render, verdicts
from benchmarks.processes import Run

FOUND = Found(
    kernels=10**6,
    events=2_000_000,
    write=Run(wall_ns=15_000_000_000, user_ns=20_000_000_000, system_ns=10**9, peak_bytes=1_500_000_000),
    page_bytes=7_000_000,
    open_ms=1_999.0,
    busy_ms=1_030.0,
    gaps={"zoom": [16.7, 16.7, 33.4], "pan": [33.3, 33.4, 33.4]},
    heap=(10_000_000, 11_000_000),
)


def test_bars_are_those_that_were_set() -> None:
    held = [(what, said, good) for what, said, _, good in verdicts(FOUND)]
    assert held == [
        ("`inferometer report`, wall time, median of 3", "15.0 s", True),
        ("its largest peak of memory", "1.50 GB", True),
        ("the page", "7.00 MB", True),
        ("opened and drawn after, median of 3", "2.00 s", True),
        ("between frames, zoom, median", "16.7 ms (95 %: 33.4 ms)", True),
        ("between frames, pan, median", "33.4 ms (95 %: 33.4 ms)", False),
        ("heap after 200 zooms more", "+1.00 MB", True),
    ]
    assert not any(good for *_, good in verdicts(replace(FOUND, heap=(0, 2_000_001)))[-1:])


def test_the_results_say_their_place_and_how_to_repeat_them() -> None:
    machine = {"cpu": "C", "cores": 4, "cores_used": 2, "load_average_1min": 0.5}
    text = render(FOUND, machine, "Chrome/1")
    assert text.startswith("# The page of a million launches\n")
    assert "C, 2 of 4 cores; load average before: 0.5" in text
    assert "`tools/make_nsys.py --kernels 1000000`: 2,000,000 events on the time line" in text
    assert "| between frames, pan, median | 33.4 ms (95 %: 33.4 ms) | 33.3 ms | missed |" in text


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([1.0, 2.0, 3.0, 4.0], share) for share in (0, 0.5, 0.95, 1)] == [1, 3, 4, 4]


def test_the_processor_s_time_is_said_beside_the_bars() -> None:
    text = render(FOUND, {"cpu": "EPYC", "cores_used": 2, "cores": 2, "load_average_1min": 1}, "Chrome")
    assert "- CPU time: the command 21.0 s, drawing the page 1.03 s\n" in text
