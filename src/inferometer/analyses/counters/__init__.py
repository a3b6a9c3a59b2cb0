"""What a profiler counted of each launch that it ran alone, and which launches of a timeline these are.

`launches.launch_counters` is the table of a file of counters, `kernels.kernel_counters` sets it next to the kernels of
a trace. `metrics.py` makes one row of each counted launch, in whichever page of Nsight Compute its metrics stand;
`stalls.py` says what warps waited for; `alike.py` finds which kernels of both files are one, however each writes its
name; `join.py` ties launches. Times of the counters' file stay there: its kernels ran alone.
"""
