"""A synthetic program on AMD's GPUs, and the files that rocprofv3 would write of it."""
