"""The page of a fleet: all its questions, and filters that work without a server.

Tables are those of the views, of all traces. Behind them the page has sums for each combination of what traces are
filtered by (`cells.py`), of the things that matter (`sums.py`): the script adds up those of the combinations that are
chosen (`reports/page/filters`), so a filter's numbers are the same sums as the command's. What can't be added up is
chosen by rows (`rows.py`). `page.py` puts it together.
"""
