"""The views of steps: alone, and with what a benchmark of the server says beside them."""
