"""Our WGSL kernels: one file each, with its NumPy counterpart in `numpy_kernels`. `source` reads what a file declares.

A file says on lines of `//!` which operator it is of and what it needs; its `@binding` and `override` lines are the
rest of its interface. It has no `enable` line: `source.text_for` puts those in front that a compiler wants.
Functions that several kernels share are files of `include`; `includes` puts them in.
"""
