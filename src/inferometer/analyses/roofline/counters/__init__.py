"""What counters of a profiler measured, set next to what is modelled of the same kernels in a trace.

`join.join_counters` is the way in. `metrics.py` makes one row of each counted launch, in whichever page of Nsight
Compute its metrics stand; `alike.py` finds which kernels of both files are one, however each writes its name; `join.py`
ties launches; `rows.py` sums what was counted by row of the table. Times of the counters' file stay there: its kernels
ran alone.
"""
