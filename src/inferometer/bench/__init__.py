"""The evaluator: does a kernel build, is it right, is it fast."""
