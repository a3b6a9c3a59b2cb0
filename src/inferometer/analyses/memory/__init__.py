"""How much device memory an allocator held at most, what for, and how much of what it reserves lies idle.

`use.memory_use` is the way in, for a snapshot of PyTorch's allocator (`formats/torch_memory`); `history.py` finds out
from its events and its state at the end when each block was allocated and freed.
"""
