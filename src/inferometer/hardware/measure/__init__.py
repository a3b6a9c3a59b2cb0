"""Measures the device at hand: what copies, products and launches reach. `measure` is the way in.

`measure.py` times what a backend offers (`torch*.py`, `numpy.py`: a `Task` for each fact), by the method in
`timing.py`, and puts it together with what our data file and the driver know. The result is a `Device` whose sources
show how.
"""
