"""Our own WebGPU engine: a model as one program of WGSL kernels, which wgpu, a browser or NumPy executes.

`program` says what a program is, `executor` who can run one; `planning` makes one of a model and a kernel path,
`generation` runs it token by token. What runs is the same everywhere: kernels, buffers and dispatches.
"""
