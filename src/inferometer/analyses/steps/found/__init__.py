"""Steps found in the order of kernels, for traces that mark none: `finding.find_steps` is the way in."""
