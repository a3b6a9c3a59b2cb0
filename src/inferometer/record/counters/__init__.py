"""Samples of device and host metrics beside a run: one file per source, one thread that reads them (`sampler.py`)."""
