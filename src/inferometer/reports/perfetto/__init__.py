"""A trace in Perfetto's own format.

`slices` says what becomes a slice, `tracks` where it lies, `lanes` keeps slices of a track nested, `protobuf` makes
bytes of columns, `packets` writes the file.
"""
