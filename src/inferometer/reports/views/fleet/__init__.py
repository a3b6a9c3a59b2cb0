"""Questions about a fleet: one file for each result."""
