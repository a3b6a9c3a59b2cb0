"""Digests as tasks of a Ray cluster: `workers` gives them out from this machine, `node` is what a node does."""
