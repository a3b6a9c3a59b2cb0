"""The published operators: one file each, named after it, with its shapes in a JSON file next to it.

`delta_rule`, `draws` and `pieces` are what several of them share.
"""
