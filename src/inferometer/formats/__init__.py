"""One file a profile format: bytes to a trace."""
