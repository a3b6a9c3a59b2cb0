"""Rules that read an engine's log, its totals and its choices of kernels."""
