"""The views of steps: alone, and next to a benchmark of the server."""
