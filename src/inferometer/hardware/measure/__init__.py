"""Measures the device at hand: what copies, products and launches reach. `measure` is the way in."""
