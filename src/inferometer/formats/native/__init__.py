"""The library in C++ that some formats are read by, where it is there; Python reads the same without it.

It is built where Inferometer is installed from its source and a C++ compiler is there (`hatch_build.py`, `build.py`),
from the sources of `kineto/native` and `databases/native`. `library` finds it; `INFEROMETER_NATIVE=0` turns it off.
"""
