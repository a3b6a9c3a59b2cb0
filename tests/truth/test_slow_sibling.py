"""Every number that `slow_sibling` prints of real captures, by loops over the files' own events.

Where modules are recorded, siblings are other layers' launches; no capture here has a slow one, and only passes are
recomputed: replays of a graph, and steps of the profiler.
"""

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from tests.truth.raw import Capture, Launch, ask, capture, duration, share, stretches

from inferometer.analyses.groups.kernel_roles import role_of
from inferometer.names import decode

RULE = "slow_sibling"


def find_groups(found: Capture) -> list[list[Launch]]:
    """Launches of one kernel and grid between the same two roles in the one replay of a capture, by time."""
    groups: dict[Any, list[Launch]] = defaultdict(list)
    for part in stretches(found):
        roles: list[str | None] = [None, *(role_of(each.name).key for each in part), None]
        for number, each in enumerate(part):
            if "grid" not in each.args and decode(each.name).family not in ("collective", "memory", "other"):
                groups[each.stream, roles[number], each.name, roles[number + 2]].append(each)
    return list(groups.values())


def test_a_slow_launch_of_a_replay_is_what_the_file_says(shared_data: Path) -> None:
    found = capture(shared_data / "traces" / "kineto" / "mi300_sglang_qwen3-8b_decode.json.gz")
    finding = ask(found.path, RULE)
    assert finding is not None
    odd = []
    for group in find_groups(found):
        usual_ns = median(each.dur_ns for each in group)
        spread = max(median(abs(each.dur_ns - usual_ns) for each in group), 0.02 * usual_ns)
        slow = [each for each in group if each.dur_ns >= max(1.3 * usual_ns, usual_ns + 6 * 1.4826 * spread)]
        if len(group) >= 4 and 1 <= len(slow) <= max(1, len(group) // 8):
            odd += [(each.dur_ns - usual_ns, usual_ns, group.index(each) + 1, each, len(group)) for each in slow]
    odd.sort(key=lambda each: -each[0])
    times = [(each.dur_ns / usual_ns, place, each, places) for _, usual_ns, place, each, places in odd]
    ratio, place, first, places = times[0]
    extra_ns = sum(each[0] for each in odd)
    assert (len(odd), place) == (1, 7)
    name = decode(first.name).short_name
    where = f"{name} at the 7th of {places} like places in a pass"
    assert list(finding.evidence) == [
        f"{where}: {ratio:.2f}x the median of all {places}; 1 launch, {duration(first.dur_ns)} in all.",
        f"Together {duration(extra_ns)} beyond the median, {share(extra_ns / found.summed_ns)} of the GPU time.",
    ]
    assert finding.title == (f"{name} takes {ratio:.1f}x as long at the 7th of {places} like places in a pass as usual")
    assert (finding.severity, finding.size_ns) == ("info", first.dur_ns)
    assert finding.next == "Record more passes: so few slow launches may be chance."
