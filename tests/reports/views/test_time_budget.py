"""The budget as a table: small parts are summed, and its rows still add up to the window."""

from tests.analyses.timeline.test_budget import GEMM, NORM, budget_of, kernel
from tests.traces import trace_of

from inferometer.reports.views.time_budget import budget_section


def test_the_table_shows_large_parts_and_sums_the_small_ones() -> None:
    rows = [kernel(GEMM, 0, 990), kernel(NORM, 990, 993), kernel("topk_kernel", 993, 996), kernel(GEMM, 996, 1_000)]
    section = budget_section(budget_of(trace_of(rows)), {"compute.gemm": "1, 3"})
    assert section.frame.select("part", "time_ns", "findings").rows() == [
        ("gemm kernels", 994, "1, 3"),
        ("2 smaller parts", 6, None),
    ]
    assert section.notes == ("The rows add up to 1.000 μs: the device's window.",)


def test_of_several_devices_the_sums_and_the_largest_share_are_shown() -> None:
    rows = [kernel(GEMM, 0, 100, device="gpu:0"), *(kernel(GEMM, s, s + 25, device="gpu:1") for s in (0, 75))]
    section = budget_section(budget_of(trace_of(rows)))
    told = section.frame.select("part", "time_ns", "share", "most", "most_of").rows()
    assert told == [
        ("gemm kernels", 150, 0.75, 1.0, "gpu:0"),
        ("idle: no host call recorded", 50, 0.25, 0.5, "gpu:1"),
    ]
    assert section.notes == ("The rows add up to 200 ns: the windows of 2 devices, summed.",)


def test_without_launches_there_is_nothing_to_add_up() -> None:
    section = budget_section(budget_of(trace_of()))
    assert (section.frame.height, section.notes) == (0, ())
