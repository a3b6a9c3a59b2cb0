"""Records pairs of runs of one program on this machine, the second of which has a known fault."""
