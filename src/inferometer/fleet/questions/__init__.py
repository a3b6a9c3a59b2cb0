"""Questions about all traces of a fleet: a file for each, which gives a frozen result; tables are read lazily.

Device time is summed over traces exactly. GPU-hours are times of GPUs in hours: `gpu_hours` of kernels is the time that
they ran, `held_gpu_hours` of traces the time for which they held their GPUs, idle included.
"""
