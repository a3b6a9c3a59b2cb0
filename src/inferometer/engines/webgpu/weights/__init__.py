"""A model's weights for the WebGPU engine: where they are, what they are called, and how they are read."""
