"""What runs a program: `executor` says how, for wgpu, NumPy and a browser; adapters and their limits."""
