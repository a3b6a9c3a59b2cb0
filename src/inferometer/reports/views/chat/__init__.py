"""The views of one answer of a model: of any engine, and what the WebGPU engine adds."""
