"""Which kernel of a capture, or of an eager run, is each kernel of a graph's replay?

`counterparts.attribute_replays` is the way in: `search` finds the part of a reference that fits best, by
`alignment` (with `alignment_windows` for its scores); `joined_chains` makes the chains. `created_nodes`
answers where the trace says when each node of a graph was made.
"""
