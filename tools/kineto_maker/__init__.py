"""A deterministic generator of PyTorch-profiler (Kineto) traces of LLM serving, with the truth about each.

`tools/make_kineto.py` is its command line; tests use `Options`, `make_trace` and `write_trace`.
"""

from .chains import Chain
from .launch_truth import CapturedCall, LaunchTruth, LaunchTruths, ReplayTruth
from .options import Options
from .truth import CallSite, StepTruth, Truth
from .writer import make_trace, write_trace

__all__ = [
    "CallSite",
    "CapturedCall",
    "Chain",
    "LaunchTruth",
    "LaunchTruths",
    "Options",
    "ReplayTruth",
    "StepTruth",
    "Truth",
    "make_trace",
    "write_trace",
]
