"""One file per rendering: a result to text. Only here do numbers become pretty.

`reports/chrome` writes the Trace Event Format as PyTorch does, with times as decimals of exact nanoseconds.
`reports/perfetto` writes Perfetto's own protocol with a small encoder (the `perfetto` package, used in the tests to
decode it, took several times as long to write). Slices that cross on one track go to sibling tracks. Everything is
written in batches next to its place and then moved there; rows without a place in the form are counted and reported.
"""
