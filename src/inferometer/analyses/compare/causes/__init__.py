"""Which of the metrics that changed may have slowed a run?

`causes` ranks them. `counters` makes the series, `metric_roles` says which may be a cause at all,
`explained` how much of a slower step a wait accounts for, `resampling` how sure a ratio is, and `calibration` what
scores come up where nothing is wrong.
"""
