"""A folder for `PYTHONPATH`: its `sitecustomize` runs in every Python of a recorded program."""
