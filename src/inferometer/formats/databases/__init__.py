"""Files that are databases: tables with columns of any type, read in batches of columns, never trusting a schema.

For formats that are SQLite or look like it; it knows none of them.
"""
