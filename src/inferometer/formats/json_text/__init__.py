"""JSON text of any size and any damage: a moving window, arrays of records in chunks, and the repair of one record.

For formats that are JSON; it knows none of them.
"""
