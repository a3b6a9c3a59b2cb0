"""The views of the WebGPU engine's profiles, and of what profiling costs."""
