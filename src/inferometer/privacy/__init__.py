"""What a file holds that nobody meant to share: secrets, and the names of people and machines.

`privacy` knows secrets by their form or by the name before them (`secret_kinds.json`, each kind with its source),
searches the fields next to a profile's events, and blanks texts for a copy to share. A secret never enters a trace:
`TraceBuilder` puts `*` in its place in the texts of tables and facts (`trace/private.py`), losses do so in examples
and categories, and errors in what they quote. So no analysis, report, store or export has to. What was found is a
loss: its kind and place, never its value. Names of kernels and calls are taken as they are. A store that was made by
an earlier version is not searched again, but `export --redact` is `reports/redacted.py` on any trace: every other
text, the same one always alike. Pages and exports name a file, not its folders (`Trace.under_name`), and so does a
store of what was named by an absolute path.
"""
