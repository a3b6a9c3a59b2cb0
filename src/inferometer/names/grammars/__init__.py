"""How libraries name their kernels: one file for each family of names, which declares `GRAMMAR`."""
