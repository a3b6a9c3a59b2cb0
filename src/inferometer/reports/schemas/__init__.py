"""What `--json` prints: `schema.py` says which document it is, the other files declare the types of its fields.

A file is named as the document, and declares its type as `DOCUMENT`. Nothing imports it but the reference and the
tests, which hold what commands print against it. `fields.py` has what several documents share, `serving_latency.py` a
part of one.
"""
