"""The page about results of bench: candidates in order, operators, shapes, and what differs between two runs.

`page.py` puts the blocks together, of the kinds that `reports/page` renders; each other module makes one of them.
"""
