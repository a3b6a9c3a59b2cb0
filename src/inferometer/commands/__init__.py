"""One file per command: options in, one analysis, one rendering out.

A command is a thin file: options, one analysis, one result. Data goes to stdout, everything else to stderr. Output is
coloured and names are cut only on a terminal. `--help` and usage errors load no data libraries.

Failures come from one tree (`errors.py`), and each class has its exit code. A message says where, what was wanted and
what was found; the hint below says what to do. A traceback is shown only with `--debug`.
"""
