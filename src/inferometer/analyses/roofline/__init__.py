"""How far is each launch from what the hardware allows: the work of its op's call, the bound, and how much is reached.

`table.roofline` is the way in. `calls.py` ties launches to calls of ops and gives equal ones a number, `contexts.py`
finds the lengths of sequences in steps' names, `inferred.py` what launches are that were queued before the window,
`work.py` asks `operators/framework` for each call's work and makes bounds of it; `gaps.py` sums what is above them.
`cut.py` keeps what is selected: a call that is selected in part has no bound.
`exchanges.py` finds what collectives exchange, and `collectives.py` sums that by kind and bytes.
`counters/` sets what a profiler counted of the same kernels next to that.
`sampled_clocks.py` sets the bound at the clocks that a recording sampled next to that, too.
Measured are times and counters alone; FLOPs, bytes and bounds are modelled.
"""
