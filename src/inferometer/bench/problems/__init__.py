"""Operators that other benchmarks define, run as ours are: definitions of flashinfer-bench, problems of KernelBench.

Each brings its reference, and its kernels, as code that isn't ours: both run in guarded processes (`bench/process`),
never in this one.

- `suite.py` finds what a path holds; `definition_operator.py` and `kernelbench.py` make operators of it;
- `solutions.py` and `packages.py` make candidates of kernels, with the texts of `adapters.py` after them;
- `reference.py` asks a reference; `judging.py` has what can't be compared by norm;
- `running.py` runs all, `traces.py` writes verdicts in flashinfer-bench's form.
"""
