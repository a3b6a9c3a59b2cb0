"""Exchange with flashinfer-bench: results out as its dataset, its workloads in as shapes to run."""

from inferometer.bench.exchange.traces import left_out, write_exchange
from inferometer.bench.exchange.workloads import read_workloads

__all__ = ["left_out", "read_workloads", "write_exchange"]
