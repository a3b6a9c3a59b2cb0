"""Conversations on the WebGPU engine, and what an answer of it took."""
