"""A printed table of time by call path: what in it can be wrong."""
