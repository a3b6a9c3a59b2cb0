"""What was not read is a list of just that; what was mended or noted stands apart, folded."""

import pytest
from tests.traces import trace_of

from inferometer.reports.page.blocks import Folds, Points
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import losses
from inferometer.trace.losses import KINDS


def texts(**counts: int) -> tuple[list[str], list[str]]:
    """Points about what was not read, and those that are folded away."""
    trace = trace_of()
    for name, count in counts.items():
        trace.losses.count(name, count)
    parts = losses.SECTION.build(PageData(trace)).parts  # type: ignore[union-attr]
    (points,) = [part for part in parts if isinstance(part, Points)]
    folds = [fold for part in parts if isinstance(part, Folds) for fold in part.folds]
    folded = [point.text for fold in folds for part in fold.parts if isinstance(part, Points) for point in part.points]
    return [point.text for point in points.points], folded


def test_dropped_events_are_listed_and_remarks_are_folded() -> None:
    unread, noted = texts(without_name=3, launch_before_window=509, masked_secret=1, zero_duration_launch=2)
    assert unread == ["3 without_name: An event without a name."]
    assert [text.split(":")[0] for text in noted] == [
        *("509 launch_before_window", "2 zero_duration_launch", "1 masked_secret")
    ]


def test_a_file_of_which_everything_was_read_says_so_whatever_was_noted() -> None:
    unread, noted = texts(launch_before_window=5)
    assert unread == ["Everything in the file was read."]
    assert len(noted) == 1


def test_events_without_a_place_are_no_news() -> None:
    unread, noted = texts(flow_event=7)
    assert unread == ["Everything that has a place in the trace was read; 7 events of the file have none."]
    assert noted == []


@pytest.mark.parametrize("name", sorted(losses.UNREAD))
def test_what_counts_as_unread_is_a_loss_that_drops_no_event(name: str) -> None:
    """Those that do are listed anyway."""
    assert not KINDS[name].dropped
    unread, noted = texts(**{name: 1})
    assert unread[0].startswith(f"1 {name}: ")
    assert noted == []
