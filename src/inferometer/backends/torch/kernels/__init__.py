"""The operators in plain PyTorch, one file each: its fastest eager operations for the contract's dtypes.

They are what candidates are timed against, and the plain low-precision answer that tolerances are set by. Each rounds
where PyTorch does, waits for no device and leaves its inputs alone, so CUDA graphs can hold it and torch.compile can
take it whole; an exception says so in its file. A file needs torch and nothing else: it is a candidate too.
"""
