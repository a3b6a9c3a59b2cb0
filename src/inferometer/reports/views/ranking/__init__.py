"""The views of kernels in order: the ranking of several runs, and the differences of two."""
