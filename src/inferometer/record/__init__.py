"""Record a live run: framework ops with shapes, modules and lines, kernels, counters of device and host, steps."""
