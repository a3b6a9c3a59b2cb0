"""Rules that read steps: their gaps, their first ones, those out of line."""
