"""What each figure means; the formulas stand at `bench.score.score`."""

from inferometer.bench.ranking.changes import ALPHA, SMALLEST
from inferometer.bench.ranking.ranking import OWN
from inferometer.reports.page.blocks import Block, Facts, Words
from inferometer.units import format_share

_FIGURES = (
    (
        "Right",
        (
            "Shapes where every case was, of all that were asked for. A candidate with a wrong shape stands "
            "behind all without one."
        ),
    ),
    (
        "S",
        (
            "The bound over the median time with cold caches, of a right shape. Above 100 % something isn't as "
            "assumed; it is never clipped."
        ),
    ),
    (
        "Launch, Below launch",
        (
            "What a launch that does nothing takes on the device, as far as is known, is a reference and in no bound. "
            "Shapes whose bound is below it count as all others do; a low S of theirs may be mostly the launch."
        ),
    ),
    (
        "Score",
        (
            "The mean over operators of the median of S, weighted by importance: sum of w × median S / sum "
            "of w. A shape that is wrong or has no time counts as 0. The w are those of the file of --shapes, else "
            "shares of GPU time in production, normalised to 1 over the operators that have a figure: as published, "
            "those of all operators add up to 109.5 %."
        ),
    ),
    (
        "Right only",
        "The same over right shapes alone. `Right` and `Covered` say how much of all that is.",
    ),
    ("Geo mean, Mean", "As `Right only`, with the geometric or the plain mean of S in place of the median."),
    (
        "Time-weighted",
        "As `Right only`, with the sum of bounds over that of times in place of the median.",
    ),
    ("Pooled", "The sum of all bounds over the sum of all times, without importance: large shapes decide it."),
    ("Covered", "Importance of the operators that have an S, of that of all operators that were asked for."),
    (
        "Speedup",
        (
            "Geometric mean of the base's time over the candidate's, of right shapes. Both were timed in turns in one "
            "process."
        ),
    ),
    (
        "fast_p",
        (
            "Share of all shapes asked for that are right, whose verdict is faster and whose speedup is above p. "
            "A shape that nothing was timed against isn't faster."
        ),
    ),
    (
        "95 %",
        (
            "Of a shape: the interval of its median. Of an aggregate: from every shape at the slow end of its "
            "interval to every shape at the quick end, which is wider than an interval of the whole would be. "
            "Where it overlaps that of the first of a rank, it's a tie (=)."
        ),
    ),
    (
        "Own kernels",
        (
            f"Share of device time in kernels that the candidate's file defines; below {format_share(OWN)} it is "
            "marked library."
        ),
    ),
    (
        "Differences",
        (
            "A candidate's times are taken over those of a base that was timed in turns with it in both runs and is "
            "the same kernel there; without one, a common change within the smallest effect is taken for drift. How "
            "far medians spread between the two runs is estimated from all shapes. slower, faster: the change is "
            f"beyond the smallest effect ({format_share(SMALLEST)}, if none was named) and significant, with a false "
            f"discovery rate of {format_share(ALPHA)} over shapes, operators and candidates. same: the 95 % interval "
            "lies within the smallest effect. unclear: the rest."
        ),
    ),
)
_LEFT_OUT = (
    "Of a candidate's results of an operator only the newest timed run counts; times of warm caches are in the data "
    "and in no aggregate; devices are never put together."
)


def build_definitions() -> Block:
    """Figures, then what is in none."""
    return Block("definitions", "Definitions", [Facts(_FIGURES), Words(_LEFT_OUT)])
