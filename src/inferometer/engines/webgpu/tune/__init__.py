"""Which kernel is the fastest for each matrix on an adapter: measured, and kept in a file."""
