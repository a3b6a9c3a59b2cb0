"""What runs in a candidate's process: loading, calling, timing, and what is refused there."""
