"""What a program runs, seen from inside: ops with shapes, modules, the user's functions, the steps that it marks."""

from inferometer.record.interception.interceptor import Interception
from inferometer.record.interception.steps import step

__all__ = ["Interception", "step"]
