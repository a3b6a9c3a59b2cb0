"""How long are an engine's steps, how do they grow with context, and which of them are out of line?

`table.step_table` is the way in, and says which file does what. `sources` finds recorded and marked steps,
`found` those that nothing marks, `printed` those of a log. `serving` sets a benchmark beside the steps.
"""
