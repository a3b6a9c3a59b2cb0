"""A script that runs one op of a trace again, by itself, and times it.

`script.py` is the way in: it writes what `arguments.py` makes of the recorded arguments after the text of
`harness.py`, which draws tensors, finds the op and times it. `fillings.py` chooses values where a profiler records
none, `refusals.py` says which ops can't be replayed and which libraries register the others.
"""
