"""Samples of device and host metrics next to a run: one file per source, one thread that reads them (`sampler.py`)."""
