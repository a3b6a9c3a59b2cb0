"""A folder with one profile a rank: not a format, but files of any format that open as one trace.

Modules: `listing` finds the profiles in the folder, `numbering` tells whose each is, `skew` estimates how far their
clocks are apart, `reading` opens them.
"""
