"""Who launched it: the chain of ops, modules, frames and named ranges behind each launch.

`attribution.attribute` is the way in, and says which file does what; `replays` finds the chains of graph
replays. `site_times`, `each_launch` and `call_tree` are the tables that people see of it.

`analyses/launched_by` follows each launch to its call and from there to all that stood around it on its thread
(`attribution.py` is the way in). `launched.py` ties launches to calls, or to ops by the id that they carry, and says
how, or why it can't. `host_side.py` makes ranges of ops, frames and named ranges, of which only those are kept that
hold a call. `chains.py` sweeps each thread once: a stack, and for each call the node of a tree (`chain_tree.py`) in
which equal chains are one node, so millions of launches share a few thousand. Recorded times are rounded, and cross:
of two calls that do, the later is inside if most of it is. `sites.py` says what each node shows in one pass from
callers to callees, `user_frames.py` which frames are the user's own, `names/module_paths.py` turns the profiler's
module names into paths of attributes.

Replays of graphs (`replays/counterparts.py`) are sequences of kernels, and so are captures and eager runs in the
order of their calls. `replays/alignment.py` finds the part of any reference that a sequence fits: a weighted common
subsequence, exact kernels before other grids before other tiles, over the whole reference by NumPy rows
(`replays/alignment_windows.py`), and once more for what concurrent branches reordered. `replays/search.py` looks for
equal sequences once, `replays/joined_chains.py` puts the reference's chain below the replay's. Where kernels name
their node, one aligned replay serves the others.

`site_times.py`, `each_launch.py` and `call_tree.py` are what users see of it, `reports/flames.py` what other viewers
read.
"""
