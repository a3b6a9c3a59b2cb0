"""What did a run do: the time and calls of each function in each cycle, whatever the source recorded.

`activity.activity` is the way in. `launch_activity` reads launches, with the steps of `step_marks`;
`printed_activity` sums that were printed step by step.
"""
