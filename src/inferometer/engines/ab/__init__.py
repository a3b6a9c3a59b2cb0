"""An A/B of one model with several kernel backends: the same work in turns, timed by call path, and checked."""

from inferometer.engines.ab.plan import Plan
from inferometer.engines.ab.running import measure_ab

__all__ = ["Plan", "measure_ab"]
