"""Our own Triton kernels, one file an operator, each with the function that launches it.

Kernels run on GPUs of NVIDIA and AMD, and on a CPU where Triton interprets them: `TRITON_INTERPRET=1` must be set
before `triton` is imported, so nothing here is imported by the package itself. A file is a candidate too: `inferometer
bench rms_norm --candidate rms_norm.py`; `_every.py` launches all of them for `--stage builds`.

Each rounds where plain PyTorch does and sums in float32. Tiles are fixed by dtype and size, and are not tuned: what
they are worth on a GPU is to be measured. Offsets are 64-bit, as tensors may have more than 2^31 elements.
"""
