"""Whether a file lost so much that sums of what was read would mislead: parts of it, or the times of many events.

A verdict on such a file is one on its damage: half of the launches look like a step that calls everything half as
often. What a recorder dropped by its own count isn't looked at here: it is counted in the losses that are shown.
"""

from inferometer.trace.losses import Losses

_PARTS = ("truncated", "broken_compression", "changed_while_read", "unreadable_file", "unreadable_plane")
_HOLES = ("unreadable_event", "event_too_large", "not_an_object", "unreadable_packet")  # each of any size and kind
_WITHOUT_TIME = ("without_timestamp", "without_duration", "negative_duration", "time_out_of_range")
_MANY = 0.01  # of the events of a category: more would move a sum by more than noise does


def say_lost_work(losses: Losses) -> str | None:
    """What is missing, to follow "the file": "is cut off or damaged", "has 2 places …"; None where little can be."""
    if any(map(losses.total, _PARTS)):
        return "is cut off or damaged"
    if ranks := losses.total("unreadable_rank_file"):
        return f"lacks {ranks:,} rank{'' if ranks == 1 else 's'}, whose file can't be read"
    if holes := sum(map(losses.total, _HOLES)):
        return f"has {holes:,} place{'' if holes == 1 else 's'} that can't be read"
    found = max(((_timeless(losses, category), category) for category in losses.seen), default=(0, ""))
    lost, category = found
    if lost > _MANY * losses.seen[category]:
        return f"has no usable time for {lost:,} of {losses.seen[category]:,} events ({category})"
    return None


def _timeless(losses: Losses, category: str) -> int:
    return sum(losses.total(name, category=category) for name in _WITHOUT_TIME)
