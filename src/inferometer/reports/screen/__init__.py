"""What a person reads: tables as wide as the screen, in which every row shows what it is about.

`screen.py` says how wide it is and how much was asked for. `table.py` is the one component that all commands print
their tables with: `widths.py` chooses the columns that fit and their widths, `shown_names.py` the names in their cells.
"""
