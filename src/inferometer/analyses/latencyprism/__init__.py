"""The comparison that LatencyPrism publishes, with its own formulas: for those who expected those numbers.

`comparison.published` is the way in: `runs` names and pairs, `processes` compares a pair, `table` has the
formulas, `p_values` the two tests.
"""
