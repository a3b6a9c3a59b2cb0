"""Why is one run slower than another: may they be compared, what changed, and which cause explains it?

`comparison.compare` is the way in. `activity` reads what a run did and `causes` ranks metrics that moved.
`changes` goes function by function: `same_work`, `matches`, `replacements`, `contributions`, `class_ratios`,
`work_change`, each with samples of `sampling_units` and their `significance`. `phases` does so phase by phase,
`input_changes` looks at the weights. `slowdown`, `comparability` and `verdicts` draw the conclusions.

`analyses/compare/changes.py` compares two runs function by function. `activity/activity.py` makes functions and cycles
of whatever was recorded. `same_work.py` asks whether a cycle is the same work and repairs it: cycles between kernels
called once per step become whole steps, else times are divided by the ratio of calls. Where both runs mark their steps
alike nothing is repaired: `work_change.py` says what a step calls more often. `matches.py` and `replacements.py` say
which functions are the same, renamed, fused or split, each with its basis. `contributions.py` gives each its part:
lines of the device, idle and overlapped time add up to the change of the step, and host functions are next to it.
`kernels.py` makes of these lines the kernels of both runs side by side, with the totals of the whole runs.

`causes/counters.py` makes one series per metric and device, one value per tick, with its time; `causes/own_gpu.py`
finds the program's GPU among pooled samples, `causes/granularity.py` matches the series of both runs.
`causes/metric_roles.py` says which metric may be a cause and how bad a change of it is, `causes/causes.py` ranks
them, `slowdown.py` says what slowed and so which causes agree with it, `causes/explained.py` how much of a slower step
a wait accounts for, `causes/calibration.py` what halves of the normal run would score.
`comparability.py` and `verdicts.py` decide, `verdict_words.py` has the sentences;
`comparison.py` is the whole. All bounds are in `analyses/comparison_limits.py`. `tests/faults` makes labelled pairs.

Where there are launches, `activity/step_marks.py` takes their steps from where `steps` does and decides whether found
ones may be relied on, and `phases.py` sets both runs side by side phase by phase and chooses the one that the verdict
rests on. Where a source printed sums by step (`activity/printed_activity.py`), steps of the more frequent phase are
the cycles and classes of kernels the functions; only steps with a length of context that both runs have are compared.

Where a source times whole tests, or steps without what is in them, `tests.py` compares these by their repetitions
(`repetitions.py`), and nothing above is asked.

`call_trees.py` makes one tree of the call trees of both runs, with the change of each node.
"""
