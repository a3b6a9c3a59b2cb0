"""Who launched it: the chain of ops, modules, frames and named ranges behind each launch.

`attribution.attribute` is the way in, and says which file does what; `replays` finds the chains of graph
replays. `site_times`, `each_launch` and `call_tree` are the tables that people see of it.
"""
