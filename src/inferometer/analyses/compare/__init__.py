"""Why is one run slower than another: may they be compared, what changed, and which cause explains it?

`comparison.compare` is the way in. `activity` reads what a run did and `causes` ranks metrics that moved.
`changes` goes function by function: `same_work`, `matches`, `replacements`, `contributions`, `class_ratios`,
each with samples of `sampling_units` and their `significance`. `phases` does so phase by phase. `slowdown`,
`comparability` and `verdicts` draw the conclusions, `sections` lays them out.
"""
