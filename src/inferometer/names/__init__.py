"""Kernel names: what a mangled or generated name tells."""
