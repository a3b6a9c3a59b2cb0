"""How much device memory an allocator held at most, what for, and how much of what it reserves lies idle.

`use.memory_use` is the way in; `history.py` finds out who lived when from the events and the state at the end.
"""
